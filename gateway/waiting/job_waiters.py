"""Blocked clients: GETB, GETBE and PUT .. WAIT on the serving leader (spec/state-machine 4.6).

A waiter for which the applied state has no job joins the lines at once, without an entry of the log: not to answer is
always correct. But if a PUT before it is not in an entry yet, its Get goes into the same one. A waiter is woken by
proposing its Get. Its result is decided by the operation's position in the log, so a Get can come back empty; the
waiter then returns to its old place in line. While its Get is in flight it is not in line. Only the log decides that
there is nothing: when the time of WITHIN has passed, and when all work is finished (GETBE), the Get is proposed and its
outcome is the answer.

No waiter is forgotten. A Get is sent for one queue and claims ready jobs of it: one, or with COUNT as many unclaimed
ones as it can take. `job_ready(queue)` is called whenever a job becomes eligible, and whenever a claim ends with fewer
jobs of that queue taken than claimed; it sends Gets until there are as many claims as ready jobs, or no waiters left.
A Get that takes more than it claimed takes jobs that others were sent for: those come back empty, and no Get is sent
for jobs that are gone. A waiter that (re)joins a line does so at some log position at which its queues had no job that
is not claimed, and every job that becomes ready after that position, and every claim that takes less, calls `job_ready`
again. For waiters for an item, `item_ready(queue, item)` does the same.

A numbered command (REQ) can wait on two connections at once, if its client has given up the first. Whichever of its
waiters is sent first gets the job, and the machine gives the same one to the others, so these are sent as soon as one
has its answer. And since an answer can be a stored one, it says nothing about the jobs claimed: the claim of such a
waiter always counts as having taken none.

A client may lose its rights or its user while it waits: they are checked when its Get is sent and again when it has a
job, which goes back to its old place if they are gone.

A number counts from its proposal: if a number has an answer, or may get one from a command in flight, the Get is
proposed at once, as it is if the session would end before the waiter uses it again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice

from sockpqd.cluster.api import Cluster
from sockpqd.core import Effects, Empty, Get, Handed, HandedMany, Operation, Policy, Put, Reply
from sockpqd.gateway.limits import (
    CLAIMS_LOOKED_AT_MAX,
    CLOSED_LOOKED_AT_MAX,
    ENDS_TOLD_AT_ONCE,
    FINISHED_LOOKED_AT_MAX,
    FINISHED_RESTS,
    LINES_LEFT_AT_ONCE,
    NAMES_SENT_AT_ONCE,
    OPENED_RESTS,
    QUEUES_OPENED_AT_ONCE,
)
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.waiting.finish_watch import Watchers
from sockpqd.gateway.waiting.idle_queues import IdleQueues
from sockpqd.gateway.waiting.job_grants import GrantReservations
from sockpqd.gateway.waiting.job_waiter import JobWaiter, WaitRequest
from sockpqd.gateway.waiting.lines import Lines
from sockpqd.gateway.waiting.pending_puts import PendingPuts
from sockpqd.gateway.waiting.rated_waiters import RatedQueues
from sockpqd.gateway.waiting.slots import NoReply, Outcome, jobs_of, return_jobs
from sockpqd.gateway.waiting.wait_lists import MANY_NAMES, Claims, WaitLists
from sockpqd.gateway.waiting.waiting_line import WaitingLine


class JobWaiters(WaitingLine[JobWaiter]):
    """All waiters of this node, first come first served; those for an item before the others."""

    def __init__(self, cluster: Cluster, grants: GrantReservations) -> None:
        super().__init__(cluster)
        self._grants = grants
        self._rated = RatedQueues(cluster, grants)
        self._feeding: set[str] = set()     # pulses for which that goes on soon
        self.idle_queues = IdleQueues(cluster, lambda queue: self._wait_lists.in_line(queue))
        self._wait_lists = WaitLists(self.idle_queues.left)
        self._clearing = False              # those that have left them, soon
        self._of_outputs: Lines[str] = Lines()      # those that wait for the output of an item, by it,
        self._cancelled: dict[int, None] = {}       # and those of cancelled items, which are answered
        self._ending_soon = False                   # soon
        self._opened: dict[str, Iterator[str | None]] = {}  # groups that have opened: queues to look at, in portions,
        self._opened_again: dict[str, None] = {}        # and those of them that have opened again since
        self._opening_soon = False
        self._due: deque[JobWaiter] = deque()       # waiters for many queues whose Gets are to be proposed,
        self._sending_due = False                   # soon
        self._claims = Claims()
        self._watchers = Watchers()
        self._unwatched: deque[int] = deque()       # GETBE: what these watched has finished
        self._watching_soon = False
        self.pending_puts = PendingPuts(cluster)

    def waiting(self, queue: str) -> int:
        """Return how many clients wait for this queue by name."""
        return self._wait_lists.waiting(queue)

    def queues(self) -> list[str]:
        """Return the queues for which clients wait by name; some perhaps twice."""
        return self._wait_lists.queues()

    # ---- coming and going

    def add(self, waiter: JobWaiter, *, propose_now: bool = False) -> None:
        """Let a blocked command join the lines, or propose its Get if there is a job to take or an answer in the log.

        `propose_now`: propose in any case, because a command in flight may have its number: only the log can tell.
        """
        self.arrive(waiter)
        wants = waiter.wants
        if propose_now or self._must_propose(waiter) or self._is_crowded(wants.get):
            self.propose(waiter)
            return
        queue, free = self._free_jobs_for(wants)
        if queue is None and free:
            self.propose(waiter)
        elif queue is None:
            self._add_to_queue(waiter)
        elif self._others_come_first(queue, wants.get.item):
            self.enqueue(waiter)                 # within an entry: its effects have not been reported yet
        else:
            self._claim(waiter, queue, free)
            self.propose(waiter)

    def _add_to_queue(self, waiter: JobWaiter) -> None:
        """Add the waiter to the line, or propose its Get at once behind a PUT whose entry is not closed yet."""
        get = waiter.wants.get
        queue = None if self.cluster.machine.rate_limited_queues else self.pending_puts.queue_for(get)
        if queue is None or self._others_come_first(queue, get.item):
            self.enqueue(waiter)
        else:
            self.pending_puts.take(queue, get.item)
            self._claim(waiter, queue, 1)
            self.propose(waiter)

    def claim_for_get(self, queues: tuple[str, ...]) -> str | None:
        """Claim a ready job for a Get that is proposed without a waiter; returns its queue.

        None: there is none, or others come first, so it must wait its turn. Ends by `settle_claim` or `drop_claim`.
        """
        machine = self.cluster.machine
        if machine.rate_limited_queues:
            return None
        for queue in queues:
            ready = machine.ready(queue)
            if ready and ready > self._claims.of(queue) and self._wait_lists.first(queue) is None:
                self._claims.add(queue, None, 1)
                return queue
        return None

    def settle_claim(self, queue: str, reply: Reply | None) -> None:
        """End a claim of `claim_for_get`. Unless its Get took a job of the queue, waiters may have that job.

        `reply`: None if the Get had no turn.
        """
        self._claims.end(queue, None, 1)
        if type(reply) is not Handed or reply.queue != queue:
            self.job_ready(queue)

    def drop_claim(self, queue: str) -> None:
        """End a claim of `claim_for_get` and send no waiter for its job: this node no longer serves."""
        self._claims.end(queue, None, 1)

    def add_with_put(self, waiter: JobWaiter) -> None:
        """Propose the Get of a PUT .. WAIT right after its PUT, which has just been proposed."""
        self.arrive(waiter)
        waiter.in_flight = True
        self.cluster.propose_for(waiter.client, waiter.wants.operation, waiter, behind=True)

    def add_after_put(self, waiter: JobWaiter) -> None:
        """Add the waiter of a PUT .. WAIT, now that its PUT is done, unless its client is gone."""
        if waiter.outcome is not None:
            return
        if waiter.client.ended and not self.has_job_for(waiter.wants):
            waiter.end(NoReply.CANCELLED)
        elif self.cluster.machine.is_cancelled(waiter.wants.get.item):
            waiter.end(responses.ITEM_CANCELLED)
        else:
            self.add(waiter)

    def has_job_for(self, wants: WaitRequest) -> bool:
        """Return whether the applied state has, or may have, a job for the Get that no other waiter has claimed."""
        return self._free_jobs_for(wants) != (None, 0)

    def _must_propose(self, waiter: JobWaiter) -> bool:
        """Return whether the Get must be proposed now although there may be no job."""
        cluster, wants = self.cluster, waiter.wants
        if waiter.timed_out or waiter.client.ended or not cluster.serving:
            return True
        request = wants.request
        number = wants.get.session if request is None else request.session
        if number is not None:
            session = cluster.machine.session(number)
            # It is used again after a third of its TTL.
            if session is None or 2 * (session.deadline_ms - cluster.time_ms) < session.ttl_ms:
                return True
            if request is not None and session.answers(request.number, request.digest, request.part):
                return True
        return wants.until_finished and self._watchers.unfinished(wants.get, cluster.machine) is None

    def _is_crowded(self, get: Get) -> bool:
        """Return whether the search for an unclaimed job may take long, so that the Get is sent without a claim."""
        return get.queues is None and len(self._claims) > CLAIMS_LOOKED_AT_MAX

    def _free_jobs_for(self, wants: WaitRequest) -> tuple[str | None, int]:
        """Return a queue with free jobs that no waiter was sent for, and their number; None and 0 without one.

        None and 1: it would take long to find out, because so many queues have jobs of closed groups only.
        """
        item, closed = wants.get.item, 0
        for queue in self.cluster.machine.offering(wants.get.queues, item):
            if queue is None or self._is_closed_to(wants, queue):
                closed += 1
                if closed == CLOSED_LOOKED_AT_MAX:
                    return None, 1
                continue
            free = self._free(queue, item)
            if free > 0 or not self._claims:
                return queue, free
        if self.cluster.machine.rate_limited_queues:
            for queue in self._rated.asked(wants.get):
                free = self._free(queue, item)
                if free > 0:
                    return queue, free
        return None, 0

    def _is_closed_to(self, wants: WaitRequest, queue: str) -> bool:
        """Return whether the waiter chooses by FAIR and the queue's groups are closed, so that it would get nothing."""
        machine, pick = self.cluster.machine, wants.pick
        policy = machine.settings.policy if pick is None or pick.policy is None else pick.policy
        return policy is Policy.FAIR and not machine.open_to_fair(queue, wants.get.item)

    def _free(self, queue: str, item: str | None) -> int:
        """Return how many jobs of the queue (of the item) could be handed out and are not claimed."""
        machine = self.cluster.machine
        if item is None:
            free = machine.ready(queue) - self._claims.of(queue)
        else:
            free = machine.ready_of_item(queue, item) - self._claims.of_item(queue, item)
        return self._rated.granted(queue, free) if machine.rate_limited_queues and free > 0 else free

    def _others_come_first(self, queue: str, item: str | None) -> bool:
        lists = self._wait_lists
        return (lists.first(queue) if item is None else lists.first_of_item(queue, item)) is not None

    def last_chance(self, waiter: JobWaiter) -> None:
        """Propose the Get of a queued waiter whose time is up: its outcome is the answer."""
        self._send_soon(waiter)

    def settle(self, waiter: JobWaiter, reply: Reply) -> None:
        """Handle the reply to a waiter's Get: the waiter gets its answer, or joins the lines."""
        queue, claimed = self._unclaim(waiter)
        if isinstance(reply, Handed | HandedMany) and self.finish_if_refused(waiter):
            return_jobs(self.cluster, jobs_of(reply))
        elif waiter.suppressed:
            self.finish(waiter, b"")
        elif type(reply) is not Empty or (waiter.wants.until_finished and not reply.unfinished):
            self.finish(waiter, reply)
        elif waiter.timed_out and not waiter.client.ended:
            self.finish(waiter, waiter.timeout_answer)
        elif waiter.waits_for_output and self.cluster.machine.is_cancelled(waiter.wants.get.item):
            self.finish(waiter, responses.ITEM_CANCELLED)
        else:
            self.enqueue_or_end(waiter)
            if self.cluster.machine.rate_limited_queues and self.is_queued(waiter):
                self._look_again(waiter)
        if waiter.wants.request is not None:
            self._request_settled(waiter)
            taken = 0
        else:
            taken = _taken(reply, queue)
        if queue is not None and taken < claimed:
            self._claim_ended(waiter, queue)

    def _look_again(self, waiter: JobWaiter) -> None:
        """Send waiters for queues with a rate that this one waits for: the Get had no grants for these."""
        for queue in self._rated.asked(waiter.wants.get):
            if not self.is_queued(waiter):
                break
            if self._free(queue, waiter.wants.get.item) > 0:
                self._claim_ended(waiter, queue)

    def _claim_ended(self, waiter: JobWaiter, queue: str) -> None:
        """Send others for jobs of the queue that the waiter had claimed and did not take."""
        if waiter.wants.get.item is not None:
            self.item_ready(queue, waiter.wants.get.item)
        self.job_ready(queue)

    def _request_settled(self, waiter: JobWaiter) -> None:
        """Send the other waiters of a numbered command that has its answer; they get the same answer."""
        if not self.is_queued(waiter) and not isinstance(waiter.outcome, NoReply):
            for same in self.same_request(waiter):
                self._send(same, None)

    def drop(self, waiter: JobWaiter, outcome: Outcome) -> None:
        """End a waiter whose Get had no turn; this node still serves the others."""
        queue, _ = self._unclaim(waiter)
        self.finish(waiter, outcome)
        if queue is not None:
            self._claim_ended(waiter, queue)

    def release(self, waiter: JobWaiter) -> None:
        """Drop the claim of a Get that is no longer in flight."""
        self._unclaim(waiter)

    def end_of_input(self, waiter: JobWaiter) -> None:
        """Handle that the client has sent its last byte, while commands before this one have no answer yet.

        These may create the job for this one, so its Get is proposed once, as if it directly followed them.
        """
        if self.is_queued(waiter):
            self._send(waiter, None)

    def cancel(self, waiter: JobWaiter) -> None:
        """Remove the waiter of a client that is gone. If its Get is in flight, its pipeline gives the jobs back."""
        if not waiter.in_flight and waiter.outcome is None:     # it is in line, or the PUT before it is in flight
            super().cancel(waiter)

    def stop(self) -> None:
        """Refuse all queued waiters: this node no longer serves."""
        super().stop()
        self._rated.clear()
        for waiting in (self._unwatched, self._cancelled, self._due, self._opened, self._opened_again):
            waiting.clear()

    # ---- reasons to send a waiter's Get

    def keep_session(self, waiter: JobWaiter) -> None:
        """Propose the waiter's Get without a new job, because that counts as a use of its session."""
        if self.is_queued(waiter) and waiter.wants.in_session:
            self._send_soon(waiter)
        elif not waiter.in_flight:              # there is no room for its answer yet
            super().keep_session(waiter)

    def follow(self, put: Put, client: object) -> None:
        """Propose a waiter's Get right after a `put` just proposed for this client, whose job will be ready
        immediately: the whole hand-off takes a single commit. Without waiters, the next Get before that takes the
        job.
        """
        if not self._queued:
            self.pending_puts.note(put)
            return
        number = None
        if put.item is not None:
            number = self._wait_lists.first_of_item(put.queue, put.item)
        if number is None:
            number = self._wait_lists.first(put.queue)
        if number is None:
            self.pending_puts.note(put)
        elif not self.cluster.machine.rate_limited_queues or self._rated.has_grant(put.queue):
            self._send(self._queued[number], put.queue, behind=client)

    def effects(self, effects: Effects) -> None:
        """Send the waiters that an applied entry concerns."""
        if not self._queued:
            return
        machine = self.cluster.machine
        if self._wait_lists.of_items:
            for queue, item in effects.ready_items:
                self.item_ready(queue, item)
        for queue in effects.ready:
            self.job_ready(queue)
        for queue in effects.reopened:
            self.reopened(queue)
        for item in effects.cancelled_items or ():
            self._cancelled.update(dict.fromkeys(self._of_outputs.numbers(item)))
        if self._cancelled and not self._ending_soon:
            self._end_cancelled()
        for group in effects.opened_groups or ():
            self._group_opened(group)
        if effects.restored:
            for queue in (*machine.nonempty(), *chain.from_iterable(machine.ready_of_pulse.values())):
                self.reopened(queue)
        for number in self._watchers.after(effects, machine):
            self._queued[number].watched = None
            self._unwatched.append(number)
        if self._unwatched and not self._watching_soon:
            self._watch_some()

    def feed(self, pulse: str) -> None:
        """Send waiters for jobs of the queues of a pulse that may have grants again, a portion of them at once."""
        if not self._queued:
            self._rated.forget(pulse)
            return
        more = self._rated.feed(pulse, self.reopened, for_any=self._wait_lists.for_any_job)
        if more and pulse not in self._feeding:
            self._feeding.add(pulse)
            asyncio.get_running_loop().call_soon(self._feed_on, pulse)

    def _feed_on(self, pulse: str) -> None:
        self._feeding.discard(pulse)
        self.feed(pulse)

    def _end_cancelled(self) -> None:
        """Answer a portion of the clients that wait for the output of cancelled items."""
        self._ending_soon = False
        for number in list(islice(self._cancelled, ENDS_TOLD_AT_ONCE)):
            del self._cancelled[number]
            waiter = self._queued.get(number)
            if waiter is not None:
                self.remove(waiter)
                self.finish(waiter, responses.ITEM_CANCELLED)
        if self._cancelled:
            self._ending_soon = True
            asyncio.get_running_loop().call_soon(self._end_cancelled)

    def _group_opened(self, group: str) -> None:
        """Send waiters for jobs of a group that may have jobs again, in portions, as these may be in very many queues.

        If it opens again before the last portion, all of its queues are looked at once more after that.
        """
        if group in self._opened:
            self._opened_again[group] = None
            return
        self._opened[group] = self._queues_to_look_at(group)
        if self._look_at_some(group):
            self._open_soon()

    def _queues_to_look_at(self, group: str) -> Iterator[str | None]:
        """Return the queues of the group, or all that waiters named if these are fewer, None in place of others."""
        queues, lists = self.cluster.machine.queues_of_group(group), self._wait_lists
        if lists.for_any or len(queues) <= lists.lines:
            return iter([*queues])
        return (queue if queue in queues else None for queue in dict.fromkeys(lists.queues()))

    def _look_at_some(self, group: str) -> bool:
        """Send waiters for a portion of the queues of a group that has opened; returns False after the last one."""
        portion = list(islice(self._opened[group], QUEUES_OPENED_AT_ONCE))
        for queue in portion:
            if queue is not None:
                self.reopened(queue)
        if len(portion) == QUEUES_OPENED_AT_ONCE:
            return True
        del self._opened[group]
        return False

    def _open_soon(self, rest_s: float = 0.0) -> None:
        if not self._opening_soon:
            self._opening_soon = True
            asyncio.get_running_loop().call_later(rest_s, self._open_some)

    def _open_some(self) -> None:
        """Send waiters for a portion of the queues of the group that has waited for it longest."""
        self._opening_soon, begun = False, time.monotonic()
        if not self._queued:
            self._opened.clear()
            self._opened_again.clear()
        if not self._opened:
            return
        group = next(iter(self._opened))
        self._opened[group] = self._opened.pop(group)           # it is last now
        if not self._look_at_some(group) and group in self._opened_again:
            del self._opened_again[group]
            self._opened[group] = self._queues_to_look_at(group)
        if self._opened:
            self._open_soon(OPENED_RESTS * (time.monotonic() - begun))

    def reopened(self, queue: str) -> None:
        """Send waiters for a queue in which jobs of any item may have become eligible."""
        for item in self._wait_lists.items(queue):
            self.item_ready(queue, item)
        self.job_ready(queue)

    def job_ready(self, queue: str) -> None:
        """Send a waiter for each ready job not claimed yet."""
        if self._wait_lists.first(queue) is None:
            return
        self._send_waiters(queue, self._free(queue, None), partial(self._wait_lists.first, queue))

    def item_ready(self, queue: str, item: str) -> None:
        """Send waiters for jobs of this item; they take precedence over the others."""
        if self._wait_lists.first_of_item(queue, item) is None:
            return
        self._send_waiters(queue, self._free(queue, item), partial(self._wait_lists.first_of_item, queue, item))

    def _send_waiters(self, queue: str, free: int, first: Callable[[], int | None]) -> None:
        """Send the `first` waiter repeatedly while there are `free` jobs; skip waiters to which the queue is closed."""
        passed: list[JobWaiter] = []
        while free > 0 and (number := first()) is not None:
            waiter = self._queued[number]
            if self._is_closed_to(waiter.wants, queue):
                passed.append(waiter)
                if self._wait_lists.remove(waiter.wants.get, number):
                    self._clear_soon()
            else:
                free -= self._send(waiter, queue, free)
        for waiter in passed:
            self._wait_lists.add(waiter.wants.get, waiter.number)

    # ---- lines

    def _send(self, waiter: JobWaiter, queue: str | None, free: int = 1, behind: object | None = None) -> int:
        """Propose the waiter's Get because `queue` has `free` jobs for it (None: for some other reason).

        `behind`: the client whose operation it follows. Returns how many of the jobs it claims: none if its client may
        no longer have them.
        """
        self.remove(waiter)
        if waiter.number in self._cancelled:        # or it would take the next job of an item of this name
            del self._cancelled[waiter.number]
            self.finish(waiter, responses.ITEM_CANCELLED)
            return 0
        if self.finish_if_refused(waiter):
            return 0
        claimed = 0 if queue is None else self._claim(waiter, queue, free)
        self.propose(waiter, behind)
        return claimed

    def _send_soon(self, waiter: JobWaiter) -> None:
        """Propose the Get of a queued waiter for no job; if it names many queues, in a portion.

        A thousand may be due at once, and each takes a third of a millisecond: to check rights to that many names, and
        its cost.
        """
        if len(waiter.wants.get.queues or ()) <= MANY_NAMES:
            self._send(waiter, None)
            return
        self._due.append(waiter)
        if not self._sending_due:
            self._sending_due = True
            asyncio.get_running_loop().call_soon(self._send_due)

    def _send_due(self) -> None:
        self._sending_due = False
        names = NAMES_SENT_AT_ONCE
        while self._due and names > 0:
            waiter = self._due.popleft()
            if self.is_queued(waiter):
                names -= len(waiter.wants.get.queues or ())
                self._send(waiter, None)
        if self._due:
            self._sending_due = True
            asyncio.get_running_loop().call_soon(self._send_due)

    def _claim(self, waiter: JobWaiter, queue: str, free: int) -> int:
        """Record that the Get about to be proposed takes jobs of `queue`, with `free` left; returns how many."""
        waiter.claimed_queue = queue
        waiter.claimed = claimed = min(waiter.wants.count, free)
        self._claims.add(queue, waiter.wants.get.item, claimed)
        return claimed

    def propose(self, waiter: JobWaiter, behind: object | None = None) -> None:
        """Propose the waiter's Get, `behind` the operation just proposed for that client if one is named."""
        waiter.in_flight = True
        if waiter.numbered:             # a job handed out to a number stays with it, so its client must hear of it
            waiter.was_queued = False
        operation = self._with_grants(waiter) if self.cluster.machine.rate_limited_queues else waiter.wants.operation
        if behind is None:
            self.cluster.propose_for(waiter.client, operation, waiter)
        else:
            self.cluster.propose_for(behind, operation, waiter, behind=True)

    def _with_grants(self, waiter: JobWaiter) -> Operation:
        """The waiter's operation, with the grants that are free for queues with a rate."""
        if waiter.grants is not None:          # it had no turn
            waiter.grants.release()
            waiter.grants = None
        wants, queue = waiter.wants, waiter.claimed_queue
        if queue is not None and not waiter.numbered and self._grants.pulse_of(queue) is None:
            return wants.operation
        waiter.grants = self._grants.take(wants.pick or wants.get, queue, numbered=waiter.numbered)
        return wants.operation if waiter.grants is None else wants.within(waiter.grants)

    def _unclaim(self, waiter: JobWaiter) -> tuple[str | None, int]:
        """Drop the claim of a Get no longer in flight; returns the queue it was sent for and how many it claimed."""
        waiter.in_flight = False
        queue, waiter.claimed_queue = waiter.claimed_queue, None
        if queue is not None:
            self._claims.end(queue, waiter.wants.get.item, waiter.claimed)
        return queue, waiter.claimed

    def enqueue(self, waiter: JobWaiter) -> None:
        """Put the waiter in the lines of its queues, at its place in the order of arrival."""
        super().enqueue(waiter)
        wants = waiter.wants
        self._wait_lists.add(wants.get, waiter.number)
        if waiter.waits_for_output and wants.get.item is not None:
            self._of_outputs.add(wants.get.item, waiter.number)
        if wants.until_finished:
            self._watch(waiter)
        if waiter.grants is not None:
            grants, waiter.grants = waiter.grants, None
            grants.release()

    def remove(self, waiter: JobWaiter) -> None:
        """Take the waiter out of the lines of its queues."""
        super().remove(waiter)
        wants = waiter.wants
        if self._wait_lists.remove(wants.get, waiter.number):
            self._clear_soon()
        if waiter.waits_for_output and wants.get.item is not None:
            self._of_outputs.discard(wants.get.item, waiter.number)
        if wants.until_finished:
            self._watchers.unwatch(waiter)

    def _clear_soon(self) -> None:
        if not self._clearing:
            self._clearing = True
            asyncio.get_running_loop().call_soon(self._clear)

    def _clear(self) -> None:
        """Remove, from a portion of the lines, waiters that have left."""
        self._clearing = False
        if self._wait_lists.clear(LINES_LEFT_AT_ONCE):
            self._clear_soon()

    def _watch_some(self) -> None:
        """GETBE: make a portion of the waiters whose queue or item has finished watch something else.

        Thousands may have watched the same queue, and each may have thousands of names to look at.
        """
        self._watching_soon = False
        left, begun = FINISHED_LOOKED_AT_MAX, time.monotonic()
        while self._unwatched and left > 0:
            waiter = self._queued.get(self._unwatched.popleft())
            if waiter is not None and waiter.watched is None:
                left -= 1 + len(waiter.wants.get.queues or ())
                self._watch(waiter)
        if self._unwatched:
            self._watching_soon = True
            rest_s = FINISHED_RESTS * (time.monotonic() - begun)
            asyncio.get_running_loop().call_later(rest_s, self._watch_some)

    def _watch(self, waiter: JobWaiter) -> None:
        """GETBE: watch something unfinished; if there is nothing, propose the Get, whose reply will end the wait."""
        if not self._watchers.watch(waiter, self.cluster.machine):
            self._send(waiter, None)


def _taken(reply: Reply, queue: str | None) -> int:
    """Return how many jobs of this queue were handed out."""
    if type(reply) is Handed:
        return int(reply.queue == queue)
    return sum(job.queue == queue for job in jobs_of(reply))
