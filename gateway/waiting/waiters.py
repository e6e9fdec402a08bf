"""Blocked clients: GETB, GETBE and PUT .. WAIT on the serving leader (spec/state-machine 4.6).

Whoever comes when the applied state has nothing for it joins the lines at once, without an entry of the log: not to
answer is always correct. But behind a PUT that is not in an entry yet, its Get goes into the same one. A waiter is
woken by proposing its Get. What it gets is decided by that operation's position in the log, so a Get can come back
empty; the waiter then returns to its old place in line. While its Get is in flight it is not in line. Only the log says
that there is nothing: when the time of WITHIN is over, and when all work is finished (GETBE), the Get is proposed and
its outcome is the answer.

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

The rights of a client may be taken from it while it waits, and its user deleted: they are looked up when its Get is
sent, and when it has a job, which otherwise goes back to its old place.

A number counts from its proposal: a number that has an answer, or may get one from a command in flight, is asked about
at once, and so is a session that would end before the waiter uses it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from sockpqd.cluster.api import Cluster
from sockpqd.core import Effects, Empty, Handed, HandedMany, Operation, Put, Reply, Request, Return, TouchSession
from sockpqd.gateway.waiting.claims import Claims
from sockpqd.gateway.waiting.coming_jobs import ComingJobs
from sockpqd.gateway.waiting.finish_watch import Watchers
from sockpqd.gateway.waiting.idle_queues import IdleQueues
from sockpqd.gateway.waiting.rates import Rates
from sockpqd.gateway.waiting.slots import IGNORED, NoReply, Outcome
from sockpqd.gateway.waiting.wait_lists import WaitLists
from sockpqd.gateway.waiting.waiter import Waiter
from sockpqd.gateway.waiting.wanted import Wanted


class Waiters:
    """All waiters of this node, first come first served; those for an item before the others."""

    def __init__(self, cluster: Cluster, rates: Rates) -> None:
        self._cluster = cluster
        self._rates = rates
        self._last_number = 0
        self._standing: dict[int, Waiter] = {}
        self._lines = WaitLists()
        self._claims = Claims()
        self._requests: dict[tuple[int, int], dict[int, Waiter]] = {}   # session, request: numbered waiters
        self._watchers = Watchers()
        self.coming = ComingJobs(cluster)
        self.idle_queues = IdleQueues(cluster, self.waiting)

    def __len__(self) -> int:
        return len(self._standing)

    def waiting(self, queue: str) -> int:
        """Return how many clients wait for this queue by name."""
        return self._lines.waiting(queue)

    def queues(self) -> list[str]:
        """Return the queues for which clients wait by name; some perhaps twice."""
        return self._lines.queues()

    # ---- coming and going

    def come(self, waiter: Waiter, *, ask: bool = False) -> None:
        """Let a blocked command join the lines, or propose its Get if there is something to take or to be told.

        `ask`: propose it in any case, because its number may be that of a command in flight: only the log can tell.
        """
        self._last_number += 1
        waiter.number = self._last_number
        wanted = waiter.wanted
        if ask or self._must_ask(waiter):
            self._propose(waiter)
            return
        queue, free = self._free_jobs_for(wanted)
        if queue is None:
            self._come_before_job(waiter)
        elif self._someone_stands_before(queue, wanted.get.item):
            self._stand(waiter)                 # within an entry: its effects have not been told yet
        else:
            self._claim(waiter, queue, free)
            self._propose(waiter)

    def _come_before_job(self, waiter: Waiter) -> None:
        """Stand in line; but behind a PUT whose entry is not closed yet, the Get goes into that one."""
        get = waiter.wanted.get
        queue = None if self._cluster.machine.rate_limited_queues else self.coming.queue_for(get)
        if queue is None or self._someone_stands_before(queue, get.item):
            self._stand(waiter)
        else:
            self.coming.take(queue, get.item)
            self._claim(waiter, queue, 1)
            self._propose(waiter)

    def claim_for_get(self, queues: tuple[str, ...]) -> str | None:
        """Claim a ready job for a Get that is proposed without a waiter; returns its queue.

        None: there is none, or others come first, so it has to `come`. Ends by `settle_claim` or `drop_claim`.
        """
        machine = self._cluster.machine
        if machine.rate_limited_queues:
            return None
        for queue in queues:
            ready = machine.ready(queue)
            if ready and ready > self._claims.of(queue) and self._lines.first(queue) is None:
                self._claims.add(queue, None, 1)
                return queue
        return None

    def settle_claim(self, queue: str, reply: Reply | None) -> None:
        """End the claim of such a Get, which was executed, or had no turn (None)."""
        self._claims.end(queue, None, 1)
        if type(reply) is not Handed or reply.queue != queue:
            self.job_ready(queue)

    def drop_claim(self, queue: str) -> None:
        """End the claim of such a Get, as this node does not serve any more."""
        self._claims.end(queue, None, 1)

    def come_behind_put(self, waiter: Waiter) -> None:
        """Propose the Get of a PUT .. WAIT right behind its PUT, which has just been proposed."""
        self._last_number += 1
        waiter.number = self._last_number
        waiter.asked = True
        self._cluster.propose_for(waiter.client, waiter.wanted.operation, waiter, behind=True)

    def come_after_put(self, waiter: Waiter) -> None:
        """Let the waiter of a PUT .. WAIT come, now that its PUT is done, unless its client is gone."""
        if waiter.outcome is not None:
            return
        if waiter.client.ended and not self.has_job_for(waiter.wanted):
            waiter.end(NoReply.CANCELLED)
        else:
            self.come(waiter)

    def has_job_for(self, wanted: Wanted) -> bool:
        """Whether the Get would find a job in the applied state that nobody was sent for."""
        return self._free_jobs_for(wanted)[0] is not None

    def _must_ask(self, waiter: Waiter) -> bool:
        """Whether the log has to answer now although there may be no job."""
        cluster, wanted = self._cluster, waiter.wanted
        if waiter.late or waiter.client.ended or not cluster.serving:
            return True
        request = wanted.request
        number = wanted.get.session if request is None else request.session
        if number is not None:
            session = cluster.machine.session(number)
            # It is used again after a third of its TTL.
            if session is None or 2 * (session.deadline_ms - cluster.time_ms) < session.ttl_ms:
                return True
            if request is not None and session.answers(request.number, request.digest, request.part):
                return True
        return wanted.until_finished and self._watchers.unfinished(wanted.get, cluster.machine) is None

    def _free_jobs_for(self, wanted: Wanted) -> tuple[str | None, int]:
        """A queue that could hand out jobs to which nobody was sent, and how many; None and 0: there is none."""
        item = wanted.get.item
        for queue in self._cluster.machine.offering(wanted.get.queues, item):
            free = self._free(queue, item)
            if free > 0 or not self._claims:
                return queue, free
        if self._cluster.machine.rate_limited_queues:
            for queue in self._with_rate(wanted.get.queues):
                free = self._free(queue, item)
                if free > 0:
                    return queue, free
        return None, 0

    def _with_rate(self, queues: tuple[str, ...] | None) -> Iterable[str]:
        """Those of the queues (None: of all with a READY job) that have a rate."""
        if queues is not None:
            return (queue for queue in queues if self._rates.pulse_of(queue) is not None)
        return (queue for of_pulse in self._cluster.machine.ready_of_pulse.values() for queue in of_pulse)

    def _free(self, queue: str, item: str | None) -> int:
        """How many jobs of the queue (of the item) could be handed out and are not claimed."""
        machine = self._cluster.machine
        if item is None:
            free = machine.ready(queue) - self._claims.of(queue)
        else:
            free = machine.ready_of_item(queue, item) - self._claims.of_item(queue, item)
        return self._granted(queue, free) if machine.rate_limited_queues and free > 0 else free

    def _granted(self, queue: str, free: int) -> int:
        """How many of the free jobs a grant is free for; if there are fewer, look again when there may be more."""
        pulse = self._rates.pulse_of(queue)
        if pulse is None:
            return free
        granted = self._rates.free(pulse)
        if granted < free:
            self._rates.starve(pulse, queue)
        return min(free, granted)

    def _someone_stands_before(self, queue: str, item: str | None) -> bool:
        return (self._lines.first(queue) if item is None else self._lines.first_of_item(queue, item)) is not None

    def limit(self, waiter: Waiter, within_ms: int) -> None:
        """Limit how long the waiter waits, from now on."""
        if within_ms:
            waiter.timer = asyncio.get_running_loop().call_later(within_ms / 1000, self._time_over, waiter)
        else:
            waiter.late = True

    def _time_over(self, waiter: Waiter) -> None:
        waiter.timer = None
        waiter.late = True
        if waiter.number in self._standing:
            self._send(waiter, None)

    def settle(self, waiter: Waiter, reply: Reply) -> None:
        """Handle the reply to a waiter's Get: the waiter gets its answer, or joins the lines."""
        queue, claimed = self._unclaim(waiter)
        refusal = waiter.refusal if isinstance(reply, Handed | HandedMany) else None
        if refusal is not None:
            self._give_back(reply)
            waiter.end(refusal)
        elif waiter.silent:
            waiter.end(b"")
        elif type(reply) is not Empty or (waiter.wanted.until_finished and not reply.unfinished):
            waiter.end(reply)
        elif waiter.client.ended:
            waiter.end(NoReply.CANCELLED)
        elif waiter.late:
            waiter.end(waiter.too_late)
        elif not self._cluster.serving:
            waiter.end(NoReply.REFUSED)
        else:
            self._stand(waiter)
        if waiter.outcome is not None:
            waiter.client.wake()
        if waiter.wanted.request is not None:
            self._request_settled(waiter, waiter.wanted.request)
            taken = 0
        else:
            taken = _taken(reply, queue)
        if queue is not None and taken < claimed:
            self._claim_ended(waiter, queue)

    def _give_back(self, reply: Reply) -> None:
        for job in reply.jobs if isinstance(reply, HandedMany) else (reply,) if isinstance(reply, Handed) else ():
            self._cluster.propose(Return(job.id), IGNORED)

    def _claim_ended(self, waiter: Waiter, queue: str) -> None:
        """Send others for jobs of the queue that the waiter had claimed and did not take."""
        if waiter.wanted.get.item is not None:
            self.item_ready(queue, waiter.wanted.get.item)
        self.job_ready(queue)

    def _request_settled(self, waiter: Waiter, request: Request) -> None:
        """Send the other waiters of a numbered command that has its answer: they get the same one."""
        if waiter.number not in self._standing and not isinstance(waiter.outcome, NoReply):
            for same in list(self._requests.get((request.session, request.number), {}).values()):
                self._send(same, None)

    def give_up(self, waiter: Waiter, outcome: Outcome) -> None:
        """End a waiter whose Get was not executed, or whose outcome is unknown."""
        self._unclaim(waiter)
        waiter.end(outcome)
        waiter.client.wake()

    def drop(self, waiter: Waiter, outcome: Outcome) -> None:
        """End a waiter whose Get had no turn; this node still serves the others."""
        queue, _ = self._unclaim(waiter)
        waiter.end(outcome)
        waiter.client.wake()
        if queue is not None:
            self._claim_ended(waiter, queue)

    def ask_anew(self, waiter: Waiter) -> None:
        """Propose a waiter's Get again: it had no turn."""
        self._propose(waiter)

    def ask_granted(self, waiter: Waiter) -> None:
        """Propose a waiter's Get with the grants that it has."""
        assert waiter.allowed is not None
        waiter.asked = True
        self._cluster.propose_for(waiter.client, waiter.wanted.within(waiter.allowed), waiter)

    def end_of_input(self, waiter: Waiter) -> None:
        """Handle that the client has sent its last byte, while commands before this one have no answer yet.

        They may make the job that this one would get, so it is asked for once, as if it stood right behind them.
        """
        if waiter.number in self._standing:
            self._send(waiter, None)

    def cancel(self, waiter: Waiter) -> None:
        """Remove the waiter of a client that is gone. If its Get is in flight, its pipeline gives the jobs back."""
        if waiter.number in self._standing:
            self._leave(waiter)
            waiter.end(NoReply.CANCELLED)
        elif not waiter.asked and waiter.outcome is None:       # the PUT before it is in flight
            waiter.end(NoReply.CANCELLED)

    def stop(self) -> None:
        """Refuse all waiters, as this node no longer serves."""
        for waiter in list(self._standing.values()):
            self._leave(waiter)
            waiter.end(NoReply.REFUSED)
            waiter.client.wake()

    # ---- reasons to send a waiter's Get

    def ask_again(self, waiter: Waiter) -> None:
        """Propose the waiter's Get although nothing has happened, because that counts as a use of its session."""
        if waiter.number in self._standing:
            self._send(waiter, None)
        elif not waiter.asked and waiter.wanted.request is not None:       # there is no room for its answer yet
            self._cluster.propose(TouchSession(waiter.wanted.request.session), IGNORED)

    def follow(self, put: Put, client: object) -> None:
        """Propose a waiter's Get right behind a `put` just proposed for this client, whose job will be ready
        immediately: the whole hand-off takes a single commit. If nobody waits, whoever comes before that takes the job.
        """
        if not self._standing:
            self.coming.note(put)
            return
        number = None
        if put.item is not None:
            number = self._lines.first_of_item(put.queue, put.item)
        if number is None:
            number = self._lines.first(put.queue)
        if number is None:
            self.coming.note(put)
        elif not self._cluster.machine.rate_limited_queues or self._grants(put.queue):
            self._send(self._standing[number], put.queue, behind=client)

    def _grants(self, queue: str) -> bool:
        """Whether the queue could hand out a job as far as its rate is concerned."""
        pulse = self._rates.pulse_of(queue)
        return pulse is None or self._rates.free(pulse) > 0

    def effects(self, effects: Effects) -> None:
        """Send the waiters that an applied entry concerns."""
        if not self._standing:
            return
        if self._lines.of_items:
            for queue, item in effects.ready_items:
                self.item_ready(queue, item)
        for queue in effects.ready:
            self.job_ready(queue)
        for queue in effects.reopened:
            self.reopened(queue)
        for waiter in self._watchers.after(effects, self._cluster.machine):
            self._watch(waiter)
        if effects.restored:
            self._restored()

    def job_ready(self, queue: str) -> None:
        """Send a waiter for each ready job not claimed yet."""
        if self._lines.first(queue) is None:
            return
        free = self._free(queue, None)
        while free > 0 and (number := self._lines.first(queue)) is not None:
            free -= self._send(self._standing[number], queue, free)

    def item_ready(self, queue: str, item: str) -> None:
        """Send waiters for jobs of this item; they take precedence over the others."""
        if self._lines.first_of_item(queue, item) is None:
            return
        free = self._free(queue, item)
        while free > 0 and (number := self._lines.first_of_item(queue, item)) is not None:
            free -= self._send(self._standing[number], queue, free)

    def reopened(self, queue: str) -> None:
        """Send waiters for a queue in which jobs of any item may have become eligible."""
        for item in self._lines.items(queue):
            self.item_ready(queue, item)
        self.job_ready(queue)

    def _restored(self) -> None:
        """Check all queues again after the state was replaced (CLONE)."""
        for queue in (*self._cluster.machine.nonempty(), *self._with_rate(None)):
            self.reopened(queue)
        for waiter in self._watchers.restored(self._cluster.machine):
            self._watch(waiter)

    # ---- lines

    def _send(self, waiter: Waiter, queue: str | None, free: int = 1, behind: object | None = None) -> int:
        """Propose the waiter's Get because `queue` has `free` jobs for it; None: for some other reason.

        `behind`: the client whose operation it follows. Returns how many of the jobs it claims: none if its client may
        not have them any more.
        """
        self._leave(waiter)
        if (refusal := waiter.refusal) is not None:
            waiter.end(refusal)
            waiter.client.wake()
            return 0
        claimed = 0 if queue is None else self._claim(waiter, queue, free)
        self._propose(waiter, behind)
        return claimed

    def _claim(self, waiter: Waiter, queue: str, free: int) -> int:
        """Note that the Get about to be proposed takes jobs of `queue`, of which `free` are left; returns how many."""
        waiter.sent_for = queue
        waiter.claimed = claimed = min(waiter.wanted.count, free)
        self._claims.add(queue, waiter.wanted.get.item, claimed)
        return claimed

    def _propose(self, waiter: Waiter, behind: object | None = None) -> None:
        """Propose the waiter's Get, `behind` the operation just proposed for that client if one is named."""
        waiter.asked = True
        if waiter.numbered:             # a job handed out to a number stays with it, so its client must hear of it
            waiter.stood = False
        operation = self._allowed(waiter) if self._cluster.machine.rate_limited_queues else waiter.wanted.operation
        if behind is None:
            self._cluster.propose_for(waiter.client, operation, waiter)
        else:
            self._cluster.propose_for(behind, operation, waiter, behind=True)

    def _allowed(self, waiter: Waiter) -> Operation:
        """The waiter's operation, with the grants that are free for queues with a rate."""
        if waiter.allowed is not None:          # it had no turn
            waiter.allowed.release()
            waiter.allowed = None
        wanted, queue = waiter.wanted, waiter.sent_for
        if queue is not None and not waiter.numbered and self._rates.pulse_of(queue) is None:
            return wanted.operation
        waiter.allowed = self._rates.take(wanted.pick or wanted.get, queue, numbered=waiter.numbered)
        return wanted.operation if waiter.allowed is None else wanted.within(waiter.allowed)

    def _unclaim(self, waiter: Waiter) -> tuple[str | None, int]:
        """Drop the claim of a Get no longer in flight; returns the queue it was sent for and how many it claimed."""
        waiter.asked = False
        queue, waiter.sent_for = waiter.sent_for, None
        if queue is not None:
            self._claims.end(queue, waiter.wanted.get.item, waiter.claimed)
        return queue, waiter.claimed

    def _stand(self, waiter: Waiter) -> None:
        """Add the waiter to its lines, at its place in the order of arrival."""
        waiter.stood = True
        self._standing[waiter.number] = waiter
        self._lines.stand(waiter.wanted.get, waiter.number)
        request = waiter.wanted.request
        if request is not None:
            self._requests.setdefault((request.session, request.number), {})[waiter.number] = waiter
        if waiter.wanted.until_finished:
            self._watch(waiter)
        if waiter.allowed is not None:
            allowed, waiter.allowed = waiter.allowed, None
            allowed.release()

    def _leave(self, waiter: Waiter) -> None:
        number = waiter.number
        del self._standing[number]
        self._lines.leave(waiter.wanted.get, number)
        if self._cluster.machine.expiring:
            self.idle_queues.waited(waiter.wanted.get.queues)
        request = waiter.wanted.request
        if request is not None:
            same = self._requests[request.session, request.number]
            del same[number]
            if not same:
                del self._requests[request.session, request.number]
        if waiter.wanted.until_finished:
            self._watchers.unwatch(waiter)

    def _watch(self, waiter: Waiter) -> None:
        """GETBE: watch something unfinished; if there is nothing, propose the Get, whose reply will end the wait."""
        if not self._watchers.watch(waiter, self._cluster.machine):
            self._send(waiter, None)


def _taken(reply: Reply, queue: str | None) -> int:
    """Return how many jobs of this queue were handed out."""
    if type(reply) is Handed:
        return int(reply.queue == queue)
    return sum(job.queue == queue for job in reply.jobs) if type(reply) is HandedMany else 0
