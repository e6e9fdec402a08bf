"""Grants for hand-outs from queues with a rate (spec/pulse 5.1).

The free grants are known here and are sent with the Get. They are in flight until the jobs are written to their client;
as for grants of PULSE WAIT, that is checked once more when they are written.

A numbered Get may be answered with jobs that were handed out before, which need room like any other unless they are in
the window still. If there is none, the answer is held until there is; then the Get is proposed again with grants for
these jobs, as by then the stamp of its entry is too old. If the pulse now gives fewer grants at once than there are
jobs, the surplus jobs are returned first: otherwise the answer, which is written as a whole, could never be written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.cluster.api import Cluster
from sockpqd.core import Allowance, Get, GetWith, Handed, HandedMany, Reply, Return, Taking
from sockpqd.gateway.limits import LINES_PER_COMMAND, LOOKED_PER_COMMAND, PULSE_COMMANDS
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.protocol.responses import AtWriting, answer
from sockpqd.gateway.pulses.window import GrantId
from sockpqd.gateway.pulses.windows import GrantClaim, PulseWindows
from sockpqd.gateway.waiting.slots import IGNORED, NoReply, Outcome, ProposingClient, jobs_of, return_jobs

Grants = dict[str, tuple[GrantId, ...]]     # the jobs handed out with grants, by their pulse


class GrantReservations:
    """Reserves grants for Gets of all clients of this node. `charge` is called with the cost, in plain commands."""

    def __init__(self, windows: PulseWindows, charge: Callable[[int], None]) -> None:
        self.cluster: Cluster = windows.cluster
        self.windows = windows
        self.charge = charge

    def pulse_of(self, queue: str) -> str | None:
        """The pulse of a queue with a rate."""
        settings = self.cluster.machine.queue_settings(queue)
        return None if settings is None else settings.pulse

    def free(self, pulse: str) -> int:
        """Return the number of the pulse's grants that are free for its queues."""
        found = self.cluster.machine.pulses.get(pulse)
        return 0 if found is None or found.deny else self.windows.free(found)

    def take(self, taking: Taking, queue: str | None = None, *, numbered: bool) -> GrantReservation | None:
        """Take free grants for a Get, of queues with jobs or the `queue` it is sent for.

        None: there are none, and the answer cannot be a repeated one.
        """
        get = taking if isinstance(taking, Get) else taking.get
        count = 1 if isinstance(taking, Get) or taking.count is None else taking.count
        claims = {}
        pulses: Collection[str | None] = self._asked(get.queues) if queue is None else (self.pulse_of(queue),)
        self.charge(PULSE_COMMANDS * len(pulses))
        for pulse in filter(None, pulses):
            free = min(count, self.free(pulse))
            if not free:
                self.windows.await_grants(pulse, shut=True)
            else:
                claims[pulse] = self.windows.claim(pulse, free)
        return GrantReservation(self, claims, numbered) if claims or numbered else None

    def _asked(self, queues: tuple[str, ...] | None) -> Collection[str]:
        """Return the pulses that may have a grant for the queues among these (None: among all) that have jobs."""
        machine, shut = self.cluster.machine, self.windows.shut
        if queues is None:
            self.charge(len(machine.ready_of_pulse) // LOOKED_PER_COMMAND)
            return [pulse for pulse in machine.ready_of_pulse if pulse not in shut]
        found = machine.with_rate(queues)
        self.charge(len(found) // LINES_PER_COMMAND)
        return {pulse: None for pulse, _ in found if pulse not in shut}

    def grants_of(self, jobs: tuple[Handed, ...]) -> Grants:
        """Return the jobs among these that were handed out with grants."""
        used: Grants = {}
        for job in jobs:
            pulse = self.cluster.machine.pulse_of_job(job.id)
            if pulse is not None:
                used[pulse] = (*used.get(pulse, ()), GrantId("job", job.id))
        return used


class GrantReservation:
    """The grants of one Get, until its outcome is known."""

    __slots__ = ("_claims", "_numbered", "_reservations")

    def __init__(self, reservations: GrantReservations, claims: dict[str, GrantClaim], numbered: bool) -> None:
        self._reservations = reservations
        self._claims = claims
        self._numbered = numbered

    def around(self, taking: Taking) -> Taking:
        """Return the Get with these grants."""
        if not self._claims:
            return taking
        free = tuple([Allowance(pulse, claim.count) for pulse, claim in self._claims.items()])
        return GetWith(taking, free=free) if isinstance(taking, Get) else replace(taking, free=free)

    def release(self) -> None:
        """Release the grants, as none was used."""
        claims, self._claims = self._claims, {}
        for claim in claims.values():
            claim.release()

    def settle(self, outcome: Outcome, deliver: Callable[[Outcome], None], again: Callable[[], None]) -> None:
        """Deliver the outcome of the Get: jobs with a grant are written only while that is allowed.

        If its jobs were handed out before and there is no room for them now, calls `again` when there may be, which
        proposes the Get with the grants free by then.
        """
        if isinstance(outcome, Handed | HandedMany) and (used := self._reservations.grants_of(jobs_of(outcome))):
            self._settle_rated(outcome, used, deliver, again)
        else:
            self.release()
            deliver(outcome)

    def _settle_rated(
        self, reply: Handed | HandedMany, used: Grants, deliver: Callable[[Outcome], None], again: Callable[[], None],
    ) -> None:
        windows, claims = self._reservations.windows, self._claims
        own = {pulse: claim.count for pulse, claim in claims.items() if claim.window is windows.of(pulse)}
        if self._numbered and not all(
            windows.room(pulse, own.get(pulse, 0), numbers) and not windows.beyond(pulse, numbers)
            for pulse, numbers in used.items()
        ):
            self.release()
            self._ask_again(used, again)
            return
        of_jobs = []
        for pulse, numbers in used.items():
            window = claims[pulse].window if pulse in claims else None
            of_jobs.append((windows.claim(pulse, len(numbers), window), numbers if self._numbered else ()))
        self.release()
        pending = PendingJobs(reply, of_jobs, windows.cluster.machine.clock_ms, self._numbered)
        deliver(AtWriting(pending.write, pending.drop, reply))

    def _ask_again(self, used: Grants, again: Callable[[], None]) -> None:
        """Request these jobs once more, with grants, as soon as there is room."""
        windows, cluster = self._reservations.windows, self._reservations.cluster
        for pulse, numbers in used.items():
            if not windows.room(pulse, 0, numbers):
                windows.hold(pulse, lambda: self._ask_again(used, again))
                return
        for pulse, numbers in used.items():
            beyond = windows.beyond(pulse, numbers)
            for number in beyond:
                cluster.propose(Return(number.number), IGNORED)
            self._claims[pulse] = windows.claim(pulse, len(numbers) - len(beyond))
        again()


class PendingJobs(Struct, eq=False):
    """Jobs with grants, handed out to a client and not written yet.

    `claims`: their claims, with the numbers of those that may be requested again.
    """

    reply: Handed | HandedMany
    claims: list[tuple[GrantClaim, tuple[GrantId, ...]]]
    stamp_ms: int               # replicated time of their entry
    numbered: bool

    def write(self) -> bytes:
        """Return the answer.

        If it is too late to write it, the jobs go back, unless their session will request them again.
        """
        if not all(claim.may_write(self.stamp_ms, numbers) for claim, numbers in self.claims):
            self.drop()
            return responses.OFFLINE_MODE
        for claim, numbers in self.claims:
            claim.write(numbers)
        return answer(self.reply)

    def drop(self) -> None:
        """Drop the answer: the client is gone, or its rights are."""
        if not self.numbered:
            return_jobs(self.claims[0][0].windows.cluster, jobs_of(self.reply))
        for claim, _ in self.claims:
            claim.release()


class RatedGetSlot(Struct, gc=False, eq=False):
    """A GET with grants: the slot of its answer. `note`: called with the reply, for the connection."""

    client: ProposingClient
    cluster: Cluster
    grants: GrantReservation
    taking: Taking
    note: Callable[[Reply], Reply]
    numbering: Numbering | None = None
    outcome: Outcome | None = None

    @property
    def numbered(self) -> bool:
        return self.numbering is not None

    def propose(self) -> None:
        """Propose the GET with its grants."""
        operation = self.grants.around(self.taking)
        request = operation if self.numbering is None else self.numbering.request(operation)
        self.client.over_share = self.cluster.propose_for(self.client, request, self)

    def applied(self, reply: Reply) -> None:
        """Record that the operation was executed."""
        self._end(self.note(reply))

    def refused(self) -> None:
        """Record that the operation was not executed."""
        self._end(NoReply.REFUSED)

    def overdue(self) -> None:
        """Record that the operation was dropped: the node is overloaded."""
        self._end(responses.BUSY)

    def unknown(self) -> None:
        """Record that the outcome is unknown."""
        self._end(NoReply.UNKNOWN_REQUEST if self.numbered else NoReply.UNKNOWN)

    def _end(self, outcome: Outcome) -> None:
        self.grants.settle(outcome, self._deliver, self.propose)

    def _deliver(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.client.wake()
