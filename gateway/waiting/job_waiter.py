"""A command that is blocked until there is a job, and its request; job_waiters.py explains how it waits."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.core import Get, GetWith, Operation, Reply, Request
from sockpqd.gateway.limits import FEW_QUEUES, WAITER_QUEUE_BYTES
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.waiting.job_grants import GrantReservation
from sockpqd.gateway.waiting.round_robin import RoundRobin
from sockpqd.gateway.waiting.slots import NoReply, Outcome
from sockpqd.gateway.waiting.waiting_line import Waiter


class WaitRequest(Struct, gc=False, eq=False):
    """The operation of a blocked command: `get`, possibly with options or in a Request."""

    get: Get
    until_finished: bool = False        # GETBE
    pick: GetWith | None = None         # if it is more than a Get
    request: Request | None = None      # of a numbered command

    @property
    def operation(self) -> Operation:
        return self.request or self.pick or self.get

    def within(self, grants: GrantReservation) -> Operation:
        """The operation with these grants for queues with a rate."""
        allowed = grants.around(self.pick or self.get)
        return allowed if self.request is None else replace(self.request, operation=allowed)

    @property
    def count(self) -> int:
        """The maximum number of jobs."""
        return 1 if self.pick is None or self.pick.count is None else self.pick.count

    @property
    def in_session(self) -> bool:
        """True if the request belongs to a session."""
        return self.request is not None or self.get.session is not None

    def narrow(self, get: Get) -> None:
        """Replace the Get once it is known more precisely; only for PUT .. WAIT, which is never a GetWith."""
        self.get = get
        if self.request is not None:
            self.request = replace(self.request, operation=get)


class JobWaiter(Waiter, gc=False, eq=False, kw_only=True):
    """A GETB, GETBE or PUT .. WAIT, whose operation is a Get."""

    wants: WaitRequest
    suppressed: bool = False            # the answer of its PUT covers it too
    in_flight: bool = False             # its Get is; then `was_queued` of a numbered one is false
    claimed_queue: str | None = None    # the queue whose jobs its Get in flight claims
    claimed: int = 0                    # how many
    watched: tuple[str | None, str | None] | None = None    # GETBE: the unfinished queue or item it waits on
    grants: GrantReservation | None = None    # for queues with a rate, while its Get is in flight
    round_robin: RoundRobin | None = None   # of the connection
    timeout_answer: bytes = responses.QUEUE_EMPTY

    def __post_init__(self) -> None:
        request = self.wants.request
        if request is not None:
            self.request_key = request.session, request.number

    @property
    def held_bytes(self) -> int:
        """The memory used for waiting for many queues, in bytes; 0 for a few queues."""
        queues = self.wants.get.queues
        return 0 if queues is None or len(queues) <= FEW_QUEUES else len(queues) * WAITER_QUEUE_BYTES

    @property
    def waits_for_output(self) -> bool:
        """True if it is a PUT .. WAIT, which ends without output if its item is cancelled."""
        return self.timeout_answer == responses.WAIT_TIMEOUT

    @property
    def operation(self) -> Operation:
        return self.wants.operation

    @property
    def refusal(self) -> bytes | None:
        """Return the refusal if its client may no longer have the jobs, otherwise None."""
        return self.client.guard.refusal_to_take(self.wants.get)

    def end(self, outcome: Outcome) -> None:
        """Set its answer: at once or, for jobs with grants, as soon as they may be written."""
        if self.grants is None:
            Waiter.end(self, outcome)
        else:
            grants, self.grants = self.grants, None
            grants.settle(outcome, self._end_later, lambda: self._propose_with(grants))

    def _propose_with(self, grants: GrantReservation) -> None:
        """Propose its Get with these grants."""
        if self.outcome is None:
            self.grants = grants
            self.in_flight = True
            self.line.cluster.propose_for(self.client, self.wants.within(grants), self)
        else:                                               # its client has gone by now
            grants.release()

    def _end_later(self, outcome: Outcome) -> None:
        if self.outcome is None:
            Waiter.end(self, outcome)
            self.client.wake()
        elif isinstance(outcome, responses.AtWriting):      # its client has gone by now
            outcome.drop()

    def suppress(self) -> None:
        """Give it an empty answer, as the PUT before it was not executed and its answer covers both."""
        self.suppressed = True
        if not self.in_flight:
            self.end(b"")

    def applied(self, reply: Reply) -> None:
        if self.round_robin is not None:
            self.round_robin.note(reply, named=self.wants.get.queues is not None)
        self.line.settle(self, reply)


    def refused(self) -> None:
        """End it: this node no longer serves."""
        self.line.give_up(self, b"" if self.suppressed else NoReply.REFUSED)

    def overdue(self) -> None:
        """Propose its Get again, which the overloaded node has dropped, as the client is willing to wait."""
        if self.suppressed:
            self.line.drop(self, b"")
        elif self.client.ended:
            self.line.drop(self, NoReply.CANCELLED)
        else:
            Waiter.overdue(self)
