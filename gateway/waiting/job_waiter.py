"""A command that is blocked until there is a job; job_waiters.py explains how it waits."""

from __future__ import annotations

from sockpqd.core import Reply
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.waiting.rates import ReservedGrants
from sockpqd.gateway.waiting.round_robin import RoundRobin
from sockpqd.gateway.waiting.slots import NoReply, Outcome
from sockpqd.gateway.waiting.wait_request import WaitRequest
from sockpqd.gateway.waiting.waiting_line import RequestKey, Waiter


class JobWaiter(Waiter, gc=False, eq=False, kw_only=True):
    """A GETB, GETBE or PUT .. WAIT, whose operation is a Get."""

    wants: WaitRequest
    suppressed: bool = False            # the answer of its PUT covers it too
    in_flight: bool = False             # its Get is; then `was_queued` of a numbered one is false
    claimed_queue: str | None = None    # the queue whose jobs its Get in flight claims
    claimed: int = 0                    # how many
    watched: tuple[str | None, str | None] | None = None    # GETBE: the unfinished queue or item it waits on
    grants: ReservedGrants | None = None    # for queues with a rate, while its Get is in flight
    round_robin: RoundRobin | None = None   # of the connection
    timeout_answer: bytes = responses.QUEUE_EMPTY

    @property
    def held_bytes(self) -> int:
        """The memory that the waiter uses, beyond what any command does."""
        return self.wants.held_bytes

    @property
    def request_key(self) -> RequestKey | None:
        """The session and number of a numbered command, None for other commands."""
        request = self.wants.request
        return None if request is None else (request.session, request.number)

    @property
    def numbered(self) -> bool:
        """Return whether it is a command with REQ."""
        return self.wants.request is not None

    @property
    def refusal(self) -> bytes | None:
        """Return the answer if its client may not have its jobs any more, else None."""
        return self.client.guard.refusal_to_take(self.wants.get)

    def end(self, outcome: Outcome) -> None:
        """Set its answer, at once or when jobs with grants may be written."""
        if self.grants is None:
            Waiter.end(self, outcome)
        else:
            grants, self.grants = self.grants, None
            grants.settle(outcome, self._end_later, lambda: self._propose_with(grants))

    def _propose_with(self, grants: ReservedGrants) -> None:
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
        """Give it an empty answer: the PUT before it was not executed, and that answer covers both."""
        self.suppressed = True
        if not self.in_flight:
            self.end(b"")

    # ---- the outcome of its Get

    def applied(self, reply: Reply) -> None:
        if self.round_robin is not None:
            self.round_robin.note(reply, named=self.wants.get.queues is not None)
        self.line.settle(self, reply)

    def refused(self) -> None:
        """End it: this node no longer serves."""
        self.line.give_up(self, b"" if self.suppressed else NoReply.REFUSED)

    def overdue(self) -> None:
        """Propose its Get again, which had no turn for too long: a client willing to wait need not be refused."""
        if self.suppressed:
            self.line.drop(self, b"")
        elif self.client.ended:
            self.line.drop(self, NoReply.CANCELLED)
        else:
            Waiter.overdue(self)
