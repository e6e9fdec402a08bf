"""Clients that wait for a job: GETB, GETBE and PUT .. WAIT on the serving leader (CLUSTER.md 2.5, A23 to A39).

A waiter is woken by proposing its Get. What it gets is decided where that operation stands in the log, so a Get may
come back empty: the waiter then stands at its old place again. While its Get is in flight it stands nowhere.

Nobody is forgotten: a Get is sent for one queue, of which it claims a ready job. `job_ready(queue)` is called whenever
a job becomes ready and whenever a claim ends without a job of that queue being taken; it sends Gets until there are as
many claims as ready jobs, or nobody left to send. Who comes (back) to his place was told that his queues are empty at
a position of the log after which every new ready job calls `job_ready` again. For those who wait for an item
`item_ready(queue, item)` does the same; an item's claim that ends without a job was told that there is none.

A numbered command (REQ) may wait on two connections at once, when its client has given up the first. Whichever of its
waiters is sent first gets the job, and the machine would give the same one to the others: so these are sent as soon as
one has its answer. And since an answer may be an old one, it says nothing about the job that was claimed: the claim of
such a waiter always counts as one that took none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from sortedcontainers import SortedList

from core import Effects, Empty, Get, Handed, Operation, Put, Reply, Request
from gateway.pending import Fate, Outcome

if TYPE_CHECKING:
    from cluster.api import Cluster
    from gateway.conversation import Conversation


class Waiter(Struct, gc=False, eq=False):
    """A blocked command: the slot of its answer, and where the outcome of its Get goes."""

    conversation: Conversation
    get: Get
    until_finished: bool = False        # GETBE
    request: Request | None = None      # of a numbered command: the operation around `get`
    outcome: Outcome | None = None
    silent: bool = False                # the line of its PUT speaks for it too
    number: int = 0                     # order of arrival; 0: it has not had to wait yet
    sent_for: str | None = None         # the queue its Get in flight claims a job of
    watched: str | None = None          # GETBE: a queue with unfinished jobs, the reason why it goes on waiting

    @property
    def operation(self) -> Operation:
        """What is proposed for it."""
        return self.get if self.request is None else self.request

    @property
    def numbered(self) -> bool:
        """See Slot."""
        return self.request is not None

    @property
    def in_session(self) -> bool:
        """Does it wait in the name of a session?"""
        return self.request is not None or self.get.session is not None

    @property
    def unknown_fate(self) -> Fate:
        """What becomes of the command when nobody knows the outcome of an operation."""
        return Fate.UNKNOWN if self.request is None else Fate.UNKNOWN_REQUEST

    def wait_for(self, get: Get) -> None:
        """What it waits for is known more exactly now."""
        self.get = get
        if self.request is not None:
            self.request = replace(self.request, operation=get)

    def applied(self, reply: Reply) -> None:
        """Its Get came back."""
        self.conversation.hub.waiters.settle(self, reply)

    def refused(self) -> None:
        """Its Get was not executed, and this node serves no more."""
        self.conversation.hub.waiters.give_up(self, b"" if self.silent else Fate.REFUSED)

    def unknown(self) -> None:
        """Nobody knows whether a job was handed out to it."""
        self.conversation.hub.waiters.give_up(self, self.unknown_fate)

    def silence(self) -> None:
        """The PUT before it was not executed: that line speaks for the wait as well."""
        self.silent = True
        if self.outcome is Fate.REFUSED:
            self.outcome = b""


class Waiters:
    """All waiters of this node, first come first served; those for an item before the others (A27)."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last_number = 0
        self._standing: dict[int, Waiter] = {}
        # Lines hold the numbers of those who stand in them, in order of arrival.
        self._any: SortedList = SortedList()                            # for a job of any queue
        self._queues: dict[str, SortedList] = {}                        # for a job of this queue, among others
        self._items: dict[str, dict[str, SortedList]] = {}              # queue, item: for a job of both
        self._claims: dict[str, int] = {}                               # Gets in flight sent for this queue
        self._item_claims: dict[tuple[str, str], int] = {}
        self._requests: dict[tuple[int, int], dict[int, Waiter]] = {}   # session, request: numbered waiters
        self._watchers: dict[str, dict[int, Waiter]] = {}               # GETBE waiters by the queue they watch
        self._watchers_of_all: dict[int, Waiter] = {}                   # the same of GETBE without names

    def __len__(self) -> int:
        return len(self._standing)

    # ---- coming and going

    def settle(self, waiter: Waiter, reply: Reply) -> None:
        """A waiter's Get was executed: the waiter has its answer, or stands in line."""
        queue = self._unclaim(waiter)
        if type(reply) is not Empty or (waiter.until_finished and not reply.unfinished):
            waiter.outcome = b"" if waiter.silent else reply
        elif waiter.conversation.ended:
            waiter.outcome = Fate.CANCELLED
        elif not self._cluster.serving:
            waiter.outcome = Fate.REFUSED
        else:
            self._stand(waiter)
        if waiter.outcome is not None:
            waiter.conversation.wake()
        if waiter.request is not None:
            self._request_settled(waiter, waiter.request, queue)
        elif queue is not None and not (type(reply) is Handed and reply.queue == queue):
            self.job_ready(queue)

    def _request_settled(self, waiter: Waiter, request: Request, queue: str | None) -> None:
        """The same for a numbered command, whose answer may be an old one, and that of others as well."""
        if waiter.outcome is not None and not isinstance(waiter.outcome, Fate):
            for same in list(self._requests.get((request.session, request.number), {}).values()):
                self._send(same, None)
        if queue is not None:
            if waiter.get.item is not None:
                self.item_ready(queue, waiter.get.item)
            self.job_ready(queue)

    def give_up(self, waiter: Waiter, outcome: Outcome) -> None:
        """A waiter's Get was not executed, or nobody knows."""
        self._unclaim(waiter)
        waiter.outcome = outcome
        waiter.conversation.wake()

    def cancel(self, waiter: Waiter) -> None:
        """The client has gone. When its Get is in flight, the conversation undoes what comes of it."""
        if waiter.number in self._standing:
            self._leave(waiter)
            waiter.outcome = Fate.CANCELLED

    def stop(self) -> None:
        """This node serves no more: no job will ever come from it (A38)."""
        for waiter in list(self._standing.values()):
            self._leave(waiter)
            waiter.outcome = Fate.REFUSED
            waiter.conversation.wake()

    # ---- reasons to send a waiter's Get

    def ask_again(self, waiter: Waiter) -> None:
        """Nothing has happened, but to ask is a use of its session."""
        if waiter.number in self._standing:
            self._send(waiter, None)

    def follow(self, put: Put) -> None:
        """`put` was just proposed: the Get of its waiter goes right behind it, one commit for the whole hand-off."""
        waiter = None
        if put.item is not None and (items := self._items.get(put.queue)) and (line := items.get(put.item)):
            waiter = self._standing[line[0]]
        if waiter is None:
            waiter = self._first(put.queue)
        if waiter is not None:
            self._send(waiter, put.queue)

    def effects(self, effects: Effects) -> None:
        """An entry was applied."""
        if not self._standing:
            return
        if self._items:
            for queue, item in effects.ready_items:
                self.item_ready(queue, item)
        for queue in effects.ready:
            self.job_ready(queue)
        for queue in effects.ended:
            self._queue_ended(queue)
        if effects.restored:
            self._restored()

    def job_ready(self, queue: str) -> None:
        """Send as many waiters as there are ready jobs that nobody was sent for."""
        free = self._cluster.machine.ready(queue) - self._claims.get(queue, 0)
        while free > 0 and (waiter := self._first(queue)) is not None:
            self._send(waiter, queue)
            free -= 1

    def item_ready(self, queue: str, item: str) -> None:
        """The same among those who wait for a job of this item; they come before the others (A27)."""
        items = self._items.get(queue)
        if items is None or item not in items:
            return
        free = self._cluster.machine.ready_of_item(queue, item) - self._item_claims.get((queue, item), 0)
        while free > 0 and (line := items.get(item)):
            self._send(self._standing[line[0]], queue)
            free -= 1

    def _queue_ended(self, queue: str) -> None:
        """A running job of `queue` ended: those who wait until it is finished look again (A24)."""
        if self._unfinished(queue):
            return
        for waiter in self._watchers.pop(queue, {}).values():
            waiter.watched = None
            self._watch(waiter)
        if self._watchers_of_all and not self._unfinished(None):
            for waiter in list(self._watchers_of_all.values()):
                self._send(waiter, None)

    def _restored(self) -> None:
        """Another state took the place of this one (CLONE): everybody looks again."""
        for queue, items in list(self._items.items()):
            for item in list(items):
                self.item_ready(queue, item)
        for queue in list(self._cluster.machine.nonempty()):
            self.job_ready(queue)
        for queue in list(self._watchers):
            self._queue_ended(queue)
        if self._watchers_of_all and not self._unfinished(None):
            for waiter in list(self._watchers_of_all.values()):
                self._send(waiter, None)

    # ---- lines

    def _first(self, queue: str) -> Waiter | None:
        """Who has waited longest for a job of this queue, of whatever item."""
        line = self._queues.get(queue)
        if line is None:
            return self._standing[self._any[0]] if self._any else None
        number = min(line[0], self._any[0]) if self._any else line[0]
        return self._standing[number]

    def _send(self, waiter: Waiter, queue: str | None) -> None:
        """Propose the waiter's Get because `queue` has a job for it; None: for another reason."""
        self._leave(waiter)
        if queue is not None:
            waiter.sent_for = queue
            self._claims[queue] = self._claims.get(queue, 0) + 1
            if waiter.get.item is not None:
                key = (queue, waiter.get.item)
                self._item_claims[key] = self._item_claims.get(key, 0) + 1
        self._cluster.propose(waiter.operation, waiter)

    def _unclaim(self, waiter: Waiter) -> str | None:
        """The waiter's Get is no longer in flight; returns the queue it had been sent for."""
        queue, waiter.sent_for = waiter.sent_for, None
        if queue is not None:
            _count_down(self._claims, queue)
            if waiter.get.item is not None:
                _count_down(self._item_claims, (queue, waiter.get.item))
        return queue

    def _stand(self, waiter: Waiter) -> None:
        """To the end of the lines, or to the old place when it stood there before."""
        if not waiter.number:
            self._last_number += 1
            waiter.number = self._last_number
        self._standing[waiter.number] = waiter
        get = waiter.get
        if get.queues is None:
            self._any.add(waiter.number)
        elif get.item is not None:
            self._items.setdefault(get.queues[0], {}).setdefault(get.item, SortedList()).add(waiter.number)
        else:
            for queue in get.queues:
                line = self._queues.get(queue)
                if line is None:
                    line = self._queues[queue] = SortedList()
                line.add(waiter.number)
        request = waiter.request
        if request is not None:
            self._requests.setdefault((request.session, request.number), {})[waiter.number] = waiter
        if waiter.until_finished:
            self._watch(waiter)

    def _leave(self, waiter: Waiter) -> None:
        number = waiter.number
        del self._standing[number]
        get = waiter.get
        if get.queues is None:
            self._any.remove(number)
        elif get.item is not None:
            items = self._items[get.queues[0]]
            _leave_line(items, get.item, number)
            if not items:
                del self._items[get.queues[0]]
        else:
            for queue in get.queues:
                _leave_line(self._queues, queue, number)
        request = waiter.request
        if request is not None:
            same = self._requests[request.session, request.number]
            del same[number]
            if not same:
                del self._requests[request.session, request.number]
        if waiter.until_finished:
            self._unwatch(waiter)

    # ---- GETBE

    def _watch(self, waiter: Waiter) -> None:
        """Keep an eye on one unfinished queue of the waiter's: it cannot be told the end before that one has ended.

        One is enough, and makes the end of a queue cheap for all who wait for other queues as well.
        """
        if waiter.get.queues is None:
            if self._unfinished(None):
                self._watchers_of_all[waiter.number] = waiter
                return
        else:
            for queue in waiter.get.queues:
                if self._unfinished(queue):
                    waiter.watched = queue
                    self._watchers.setdefault(queue, {})[waiter.number] = waiter
                    return
        self._send(waiter, None)

    def _unwatch(self, waiter: Waiter) -> None:
        self._watchers_of_all.pop(waiter.number, None)
        queue, waiter.watched = waiter.watched, None
        if queue is not None:
            watchers = self._watchers[queue]
            del watchers[waiter.number]
            if not watchers:
                del self._watchers[queue]

    def _unfinished(self, queue: str | None) -> int:
        totals = self._cluster.machine.total(queue)
        return totals.jobs + totals.running


def _count_down(counts: dict[Any, int], key: Any) -> None:
    if counts[key] == 1:
        del counts[key]
    else:
        counts[key] -= 1


def _leave_line(lines: dict[str, SortedList], name: str, number: int) -> None:
    line = lines[name]
    line.remove(number)
    if not line:
        del lines[name]
