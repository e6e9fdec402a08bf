"""Grants for hand-outs from queues with a rate (spec/pulse 5.1).

Which grants are free is known here and travels with the Get. They are under way until the jobs are written to their
client; then it is decided, as for turns, whether this node may still do that.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from cluster.api import Cluster
from core import Allowance, Get, GetAllowed, Handed, HandedMany, Reply, Return, Taking
from gateway.protocol import responses
from gateway.protocol.request_id import Numbering
from gateway.protocol.responses import AtWriting, answer
from gateway.pulses.turns import Turns
from gateway.pulses.window import Window
from gateway.waiting.party import WaitingClient
from gateway.waiting.slots import IGNORED, NoReply, Outcome


class Allowances:
    """Gives out grants to Gets, for all clients of this node."""

    def __init__(self, cluster: Cluster, turns: Turns) -> None:
        self._cluster = cluster
        self.turns = turns

    def pulse_of(self, queue: str) -> str | None:
        """The pulse of a queue with a rate."""
        settings = self._cluster.machine.queue_settings(queue)
        return None if settings is None else settings.pulse

    def free(self, pulse: str) -> int:
        """How many grants of the pulse are free for its queues."""
        found = self._cluster.machine.pulses.get(pulse)
        return 0 if found is None or found.deny else self.turns.free(found)

    def take(self, taking: Taking, queue: str | None = None) -> Allowed | None:
        """Take free grants for a Get, of queues with jobs or the `queue` it is sent for; None: there are none."""
        get = taking if isinstance(taking, Get) else taking.get
        count = 1 if isinstance(taking, Get) or taking.count is None else taking.count
        machine, taken = self._cluster.machine, {}
        for pulse, queues in machine.rated.items():
            asked = queues if get.queues is None else [name for name in get.queues if name in queues]
            if queue is None and not any(machine.ready(name) for name in asked):
                continue
            if queue is not None and queue not in queues:
                continue
            free = min(count, self.free(pulse))
            if free:
                window = self.turns.window(pulse)
                window.under_way += free
                taken[pulse] = (window, free)
        return Allowed(self, taken) if taken else None

    def starve(self, pulse: str, queue: str) -> None:
        """Clients wait for jobs that are there, but no grant is free: tell when one may be."""
        self.turns.starve(pulse, queue)

    def may_write(self, stamp_ms: int) -> bool:
        """See Turns."""
        return self.turns.may_write(stamp_ms)

    @property
    def now_ms(self) -> int:
        """The stamp of the entry that was just applied."""
        return self._cluster.machine.clock_ms

    def pulses_of(self, jobs: tuple[Handed, ...]) -> list[str | None]:
        """The pulses that granted these hand-outs."""
        return [self._cluster.machine.pulse_of_job(job.id) for job in jobs]

    def give_back(self, jobs: tuple[Handed, ...]) -> None:
        """Return jobs that cannot be delivered to their queues."""
        for job in jobs:
            self._cluster.propose(Return(job.id), IGNORED)


class Allowed:
    """The grants of one Get, until its outcome is known."""

    __slots__ = ("_allowances", "_taken")

    def __init__(self, allowances: Allowances, taken: dict[str, tuple[Window, int]]) -> None:
        self._allowances = allowances
        self._taken = taken

    def around(self, taking: Taking) -> GetAllowed:
        """The Get with these grants."""
        return GetAllowed(taking, tuple([Allowance(pulse, count) for pulse, (_, count) in self._taken.items()]))

    def release(self) -> None:
        """None of them was used."""
        taken, self._taken = self._taken, {}
        for pulse, (window, count) in taken.items():
            window.under_way -= count
            self._allowances.turns.look_at(pulse)
            self._allowances.turns.feed(pulse)

    def settled(self, outcome: Outcome, *, numbered: bool) -> Outcome:
        """The outcome of the Get: jobs with a grant are written only while that is allowed."""
        if not isinstance(outcome, Handed | HandedMany):
            self.release()
            return outcome
        jobs = (outcome,) if isinstance(outcome, Handed) else outcome.jobs
        used: dict[str, int] = {}
        for pulse in self._allowances.pulses_of(jobs):
            if pulse is not None:
                used[pulse] = used.get(pulse, 0) + 1
        if not used:
            self.release()
            return outcome
        going: dict[str, tuple[Window, int]] = {}
        for pulse, count in used.items():
            window = self._taken[pulse][0] if pulse in self._taken else self._allowances.turns.window(pulse)
            window.under_way += count
            going[pulse] = (window, count)
        self.release()
        jobs_going = _Going(self._allowances, going, outcome, jobs, self._allowances.now_ms, numbered)
        return AtWriting(jobs_going.write, jobs_going.drop)


class _Going(Struct, eq=False):
    """Jobs with grants on their way to a client."""

    allowances: Allowances
    going: dict[str, tuple[Window, int]]
    reply: Handed | HandedMany
    jobs: tuple[Handed, ...]
    stamp_ms: int
    numbered: bool

    def write(self) -> bytes:
        """The answer. If it is too late for that the jobs go back, unless their session will ask for them again."""
        if not self.allowances.may_write(self.stamp_ms):
            self.drop()
            return responses.OFFLINE_MODE
        for pulse, (window, count) in self.going.items():
            self.allowances.turns.written(pulse, window, count)
        return answer(self.reply)

    def drop(self) -> None:
        """The client is gone, or may not be told."""
        if not self.numbered:
            self.allowances.give_back(self.jobs)
        for pulse, (window, count) in self.going.items():
            window.under_way -= count
            self.allowances.turns.look_at(pulse)
            self.allowances.turns.feed(pulse)


class AllowedSlot(Struct, gc=False, eq=False):
    """A GET with grants: the slot of its answer. `tell`: what the connection notes of the reply."""

    client: WaitingClient
    allowed: Allowed
    tell: Callable[[Reply], Reply]
    numbering: Numbering | None = None
    outcome: Outcome | None = None

    @property
    def numbered(self) -> bool:
        """See Slot."""
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

    def _end(self, outcome: Outcome) -> None:
        self.outcome = self.allowed.settled(outcome, numbered=self.numbered)
        self.client.wake()
