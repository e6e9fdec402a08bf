"""A single blocked command; job_waiters.py explains how it waits."""

from __future__ import annotations

from asyncio import TimerHandle
from typing import Protocol

from msgspec import Struct

from sockpqd.core import Reply
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.waiting.interfaces import WaitingClient
from sockpqd.gateway.waiting.rates import ReservedGrants
from sockpqd.gateway.waiting.round_robin import RoundRobin
from sockpqd.gateway.waiting.slots import NoReply, Outcome
from sockpqd.gateway.waiting.wait_request import WaitRequest


class WaiterQueue(Protocol):
    """The interface of `JobWaiters` to a waiter; see job_waiters.py."""

    def settle(self, waiter: JobWaiter, reply: Reply) -> None:
        """Handle the reply to the waiter's Get."""

    def give_up(self, waiter: JobWaiter, outcome: Outcome) -> None:
        """End the waiter: its Get was not executed, or the outcome is unknown."""

    def drop(self, waiter: JobWaiter, outcome: Outcome) -> None:
        """End the waiter, whose Get had no turn, while others may still have one."""

    def repropose(self, waiter: JobWaiter) -> None:
        """Propose the waiter's Get again: it had no turn."""

    def propose_granted(self, waiter: JobWaiter) -> None:
        """Propose the waiter's Get with the grants that it has."""

    def keep_session(self, waiter: JobWaiter) -> None:
        """Propose the waiter's Get although nothing has happened."""

    def end_of_input(self, waiter: JobWaiter) -> None:
        """Handle that the client has sent its last byte."""

    def cancel(self, waiter: JobWaiter) -> None:
        """Remove the waiter of a client that is gone."""

    def add_after_put(self, waiter: JobWaiter) -> None:
        """Let the waiter of a PUT .. WAIT wait, or propose its Get if there is an output."""


class JobWaiter(Struct, gc=False, eq=False):
    """A blocked command: the slot of its answer, which receives the outcome of its Get."""

    client: WaitingClient
    place: WaiterQueue
    wants: WaitRequest
    outcome: Outcome | None = None
    suppressed: bool = False                # the answer of its PUT covers it too
    number: int = 0                     # order of arrival; 0: it does not wait yet
    was_queued: bool = False                 # it has stood in line; False again while a numbered Get is in flight
    in_flight: bool = False                 # its Get is in flight
    claimed_queue: str | None = None         # the queue whose jobs its Get in flight claims
    claimed: int = 0                    # how many
    watched: tuple[str | None, str | None] | None = None    # GETBE: the unfinished queue or item it waits on
    timer: TimerHandle | None = None    # of WITHIN
    timed_out: bool = False                  # its time is up: the Get in flight is its last
    allowed: ReservedGrants | None = None  # for queues with a rate, while its Get is in flight
    round_robin: RoundRobin | None = None    # the turns of the connection
    timeout_answer: bytes = responses.QUEUE_EMPTY       # the answer when its time is up

    @property
    def held_bytes(self) -> int:
        """Memory that the waiter uses."""
        return self.wants.held_bytes

    @property
    def numbered(self) -> bool:
        """See Slot."""
        return self.wants.request is not None

    @property
    def refusal(self) -> bytes | None:
        """The answer if its client may not have its jobs any more, else None."""
        return self.client.guard.refusal_to_take(self.wants.get)

    @property
    def unknown_outcome(self) -> NoReply:
        """The fate of the command if the outcome of an operation is unknown."""
        return NoReply.UNKNOWN if self.wants.request is None else NoReply.UNKNOWN_REQUEST

    def end(self, outcome: Outcome) -> None:
        """Set its answer, or wait until that may be written."""
        if self.allowed is None:
            self._end(outcome)
        else:
            allowed, self.allowed = self.allowed, None
            allowed.settle(outcome, self._told, lambda: self._granted(allowed))

    def _end(self, outcome: Outcome) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.outcome = outcome

    def _granted(self, allowed: ReservedGrants) -> None:
        if self.outcome is None:
            self.allowed = allowed
            self.place.propose_granted(self)
        else:                                               # its client has gone meanwhile
            allowed.release()

    def _told(self, outcome: Outcome) -> None:
        if self.outcome is None:
            self._end(outcome)
            self.client.wake()
        elif isinstance(outcome, responses.AtWriting):      # its client has gone meanwhile
            outcome.drop()

    def applied(self, reply: Reply) -> None:
        """Handle the reply to its Get."""
        if self.round_robin is not None:
            self.round_robin.note(reply, named=self.wants.get.queues is not None)
        self.place.settle(self, reply)

    def refused(self) -> None:
        """End it: its Get was not executed, and this node no longer serves."""
        self.place.give_up(self, b"" if self.suppressed else NoReply.REFUSED)

    def unknown(self) -> None:
        """End it: whether a job was handed out to it is unknown."""
        self.place.give_up(self, self.unknown_outcome)

    def overdue(self) -> None:
        """Try again, as its Get had no turn for too long: a client willing to wait need not be refused."""
        if self.suppressed:
            self.place.drop(self, b"")
        elif self.client.ended:
            self.place.drop(self, NoReply.CANCELLED)
        elif self.timed_out:
            self.place.drop(self, responses.BUSY)
        else:
            self.place.repropose(self)

    def end_of_input(self) -> None:
        """Ask for a job once more, then wait no longer: the client has sent its last byte."""
        self.place.end_of_input(self)

    def leave(self) -> None:
        """Stop waiting: the client is gone."""
        self.place.cancel(self)

    def keep_session(self) -> None:
        """Ask again, which counts as a use of its session."""
        if self.wants.in_session:
            self.place.keep_session(self)

    def suppress(self) -> None:
        """Suppress its answer: the PUT before it was not executed, and that answer covers both."""
        self.suppressed = True
        if not self.in_flight:
            self.end(b"")
