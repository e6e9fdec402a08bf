"""Grants for hand-outs from queues with a rate (spec/pulse 5.1).

Which grants are free is known here and travels with the Get. They are in flight until the jobs are written to their
client; then it is decided, as for grants of PULSE WAIT, whether this node may still do that.

A numbered Get may be answered with jobs that were handed out before, which need room like any other unless they are in
the window still. If there is none, the answer is held until there is; then the Get is proposed again with grants for
these jobs, as by then the stamp of its entry is too old. If they are more than the pulse gives at once by now, those
beyond that are returned before it: otherwise the answer, which is one, could never be written.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.cluster.api import Cluster
from sockpqd.core import Allowance, Get, GetWith, Handed, HandedMany, Reply, Return, Taking
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.protocol.responses import AtWriting, answer
from sockpqd.gateway.pulses.grant_waiters import GrantWaiters
from sockpqd.gateway.pulses.window import GrantId, Window
from sockpqd.gateway.waiting.slots import IGNORED, NoReply, Outcome, WaitingClient


class GrantReservations:
    """Gives out grants to Gets, for all clients of this node."""

    def __init__(self, cluster: Cluster, waiters: GrantWaiters) -> None:
        self.cluster = cluster
        self.waiters = waiters

    def pulse_of(self, queue: str) -> str | None:
        """The pulse of a queue with a rate."""
        settings = self.cluster.machine.queue_settings(queue)
        return None if settings is None else settings.pulse

    def free(self, pulse: str) -> int:
        """Return the number of the pulse's grants that are free for its queues."""
        found = self.cluster.machine.pulses.get(pulse)
        return 0 if found is None or found.deny else self.waiters.free(found)

    def take(self, taking: Taking, queue: str | None = None, *, numbered: bool) -> GrantReservation | None:
        """Take free grants for a Get, of queues with jobs or the `queue` it is sent for.

        None: there are none, and the answer cannot be one that was given before.
        """
        get = taking if isinstance(taking, Get) else taking.get
        count = 1 if isinstance(taking, Get) or taking.count is None else taking.count
        machine, taken = self.cluster.machine, {}
        for pulse, queues in machine.rate_limited_queues.items():
            if get.queues is None:
                asked = machine.ready_of_pulse.get(pulse, ())
            else:
                asked = [name for name in get.queues if name in queues]
            if queue is None and not any(machine.ready(name) for name in asked):
                continue
            if queue is not None and queue not in queues:
                continue
            free = min(count, self.free(pulse))
            if free:
                window = self.waiters.window(pulse)
                window.claim(free, self.waiters.now_s)
                taken[pulse] = (window, free)
        return GrantReservation(self, taken, numbered) if taken or numbered else None

    def starve(self, pulse: str, queue: str) -> None:
        """Have clients looked at again when a grant may be free: they wait for jobs that are there."""
        self.waiters.starve(pulse, queue)

    @property
    def now_ms(self) -> int:
        """The stamp of the entry that was just applied."""
        return self.cluster.machine.clock_ms

    def pulses_of(self, jobs: tuple[Handed, ...]) -> list[str | None]:
        """The pulses that granted these hand-outs."""
        return [self.cluster.machine.pulse_of_job(job.id) for job in jobs]

    def give_back(self, jobs: list[int]) -> None:
        """Return jobs that cannot be delivered to their queues."""
        for job in jobs:
            self.cluster.propose(Return(job), IGNORED)


class GrantReservation:
    """The grants of one Get, until its outcome is known."""

    __slots__ = ("_numbered", "_reservations", "_taken")

    def __init__(self, reservations: GrantReservations, taken: dict[str, tuple[Window, int]], numbered: bool) -> None:
        self._reservations = reservations
        self._taken = taken
        self._numbered = numbered

    @property
    def cluster(self) -> Cluster:
        """Return the cluster to which Gets are proposed."""
        return self._reservations.cluster

    def around(self, taking: Taking) -> Taking:
        """Return the Get with these grants."""
        if not self._taken:
            return taking
        free = tuple([Allowance(pulse, count) for pulse, (_, count) in self._taken.items()])
        return GetWith(taking, free=free) if isinstance(taking, Get) else replace(taking, free=free)

    def release(self) -> None:
        """None of them was used."""
        taken, self._taken = self._taken, {}
        for pulse, (window, count) in taken.items():
            self._reservations.waiters.free_again(pulse, window, count)

    def settle(self, outcome: Outcome, tell: Callable[[Outcome], None], again: Callable[[], None]) -> None:
        """Tell the outcome of the Get: jobs with a grant are written only while that is allowed.

        Or call `again` when there may be room for them, which proposes the Get with the grants that there are then.
        """
        if not isinstance(outcome, Handed | HandedMany):
            self.release()
            tell(outcome)
            return
        jobs = (outcome,) if isinstance(outcome, Handed) else outcome.jobs
        used: dict[str, tuple[GrantId, ...]] = {}
        for job, pulse in zip(jobs, self._reservations.pulses_of(jobs), strict=True):
            if pulse is not None:
                used[pulse] = (*used.get(pulse, ()), GrantId("job", job.id))
        if not used:
            self.release()
            tell(outcome)
        else:
            self._go(_RatedJobs(outcome, jobs, used, self._reservations.now_ms), tell, again)

    def _go(self, granted: _RatedJobs, tell: Callable[[Outcome], None], again: Callable[[], None]) -> None:
        """Answer with the jobs if there is room for their grants, otherwise ask for them again once there is."""
        waiters = self._reservations.waiters
        own = {pulse: count for pulse, (window, count) in self._taken.items() if window is waiters.window(pulse)}
        if self._numbered and not all(
            waiters.room(pulse, own.get(pulse, 0), numbers) and not waiters.beyond(pulse, numbers)
            for pulse, numbers in granted.used.items()
        ):
            self.release()
            self._go_again(granted.used, again)
            return
        pending = _PendingJobs(self._reservations, {}, granted, self._numbered)
        for pulse, numbers in granted.used.items():
            window = pending.windows[pulse] = self._taken[pulse][0] if pulse in self._taken else waiters.window(pulse)
            window.claim(len(numbers), waiters.now_s)
        self.release()
        tell(AtWriting(pending.write, pending.drop))

    def _go_again(self, used: dict[str, tuple[GrantId, ...]], again: Callable[[], None]) -> None:
        """Ask for these jobs once more, with grants, as soon as there is room."""
        waiters = self._reservations.waiters
        for pulse, numbers in used.items():
            if not waiters.room(pulse, 0, numbers):
                waiters.hold(pulse, lambda: self._go_again(used, again))
                return
        for pulse, numbers in used.items():
            beyond = waiters.beyond(pulse, numbers)
            self._reservations.give_back([number.number for number in beyond])
            self._take(pulse, len(numbers) - len(beyond))
        again()

    def _take(self, pulse: str, count: int) -> None:
        window = self._reservations.waiters.window(pulse)
        window.claim(count, self._reservations.waiters.now_s)
        self._taken[pulse] = window, count


class _RatedJobs(Struct, eq=False):
    """Jobs handed out with grants. `used`: the jobs of each pulse."""

    reply: Handed | HandedMany
    jobs: tuple[Handed, ...]
    used: dict[str, tuple[GrantId, ...]]
    stamp_ms: int


class _PendingJobs(Struct, eq=False):
    """Jobs with grants in flight to a client. `windows`: the windows of these grants."""

    reservations: GrantReservations
    windows: dict[str, Window]
    granted: _RatedJobs
    numbered: bool

    def write(self) -> bytes:
        """The answer. If it is too late for that the jobs go back, unless their session will ask for them again."""
        waiters, stamp_ms = self.reservations.waiters, self.granted.stamp_ms
        used = self.granted.used if self.numbered else {}
        if not all(waiters.may_write(stamp_ms, pulse, window, used.get(pulse, ()))
                   for pulse, window in self.windows.items()):
            self.drop()
            return responses.OFFLINE_MODE
        for pulse, window in self.windows.items():
            numbers = self.granted.used[pulse]
            waiters.written(pulse, window, len(numbers), numbers if self.numbered else ())
        return answer(self.granted.reply)

    def drop(self) -> None:
        """Drop the answer: the client is gone, or its rights are."""
        if not self.numbered:
            self.reservations.give_back([job.id for job in self.granted.jobs])
        for pulse, window in self.windows.items():
            self.reservations.waiters.free_again(pulse, window, len(self.granted.used[pulse]))


class RatedGetSlot(Struct, gc=False, eq=False):
    """A GET with grants: the slot of its answer. `tell`: what the connection notes of the reply."""

    client: WaitingClient
    allowed: GrantReservation
    taking: Taking
    tell: Callable[[Reply], Reply]
    numbering: Numbering | None = None
    outcome: Outcome | None = None

    @property
    def numbered(self) -> bool:
        return self.numbering is not None

    def applied(self, reply: Reply) -> None:
        """Note that the operation was executed."""
        self._end(self.tell(reply))

    def refused(self) -> None:
        """Note that the operation was not executed."""
        self._end(NoReply.REFUSED)

    def overdue(self) -> None:
        """Note that the operation was dropped: the node is overloaded."""
        self._end(responses.BUSY)

    def unknown(self) -> None:
        """Note that the outcome is unknown."""
        self._end(NoReply.UNKNOWN_REQUEST if self.numbered else NoReply.UNKNOWN)

    def propose(self) -> None:
        """Propose the GET with its grants."""
        operation = self.allowed.around(self.taking)
        request = operation if self.numbering is None else self.numbering.request(operation)
        self.allowed.cluster.propose_for(self.client, request, self)

    def _end(self, outcome: Outcome) -> None:
        self.allowed.settle(outcome, self._told, self.propose)

    def _told(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.client.wake()
