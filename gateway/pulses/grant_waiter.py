"""A client that waits for a turn: the slot of its answer, and what becomes of the grant that it gets."""

from __future__ import annotations

from asyncio import TimerHandle
from typing import Protocol

from msgspec import Struct

from sockpqd.core import Grant, Operation, Reply, TakeTurn
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.pulses.window import Window
from sockpqd.gateway.waiting.interfaces import WaitingClient
from sockpqd.gateway.waiting.slots import NoReply, Outcome


class PendingGrant(Struct, gc=False, eq=False):
    """A grant on its way to a client: it counts as written from the moment when the answer is written.

    It does not know its waiter, whose outcome it makes: the garbage collector would see nothing of that circle.
    """

    place: GrantQueue
    pulse: str
    window: Window
    ticket: int
    stamp_ms: int               # replicated time of its entry
    numbered: bool = False
    over: bool = False          # it was written, or never will be

    def write(self) -> bytes:
        """The answer, at the moment when it is written."""
        self.over = True
        return self.place.write(self)

    def drop(self) -> None:
        """Its client is gone."""
        if not self.over:
            self.over = True
            self.place.drop(self)


class GrantQueue(Protocol):
    """The interface of `GrantWaiters` to a waiter and its grant; see grant_waiters.py."""

    def write(self, pending: PendingGrant) -> bytes:
        """The answer that gives this grant, if this node may still write it."""

    def drop(self, pending: PendingGrant) -> None:
        """Give the grant to the next: it was not written."""

    def settle(self, waiter: GrantWaiter, reply: Reply) -> None:
        """Handle the reply to the waiter's operation."""

    def give_up(self, waiter: GrantWaiter, outcome: Outcome) -> None:
        """End the waiter: its operation was not executed, or the outcome is unknown."""

    def repropose(self, waiter: GrantWaiter) -> None:
        """Propose the waiter's operation again: it had no turn."""

    def cancel(self, waiter: GrantWaiter) -> None:
        """Remove the waiter of a client that is gone."""

    def touch_session(self, session: int) -> None:
        """Let the session know that it is used."""


class GrantWaiter(Struct, gc=False, eq=False):
    """A PULSE WAIT: the slot of its answer."""

    client: WaitingClient
    place: GrantQueue
    pulse: str
    numbering: Numbering | None = None  # of a numbered command
    outcome: Outcome | None = None
    number: int = 0                     # order of arrival; 0: it has not had to wait yet
    was_queued: bool = False                 # it has stood in line
    timer: TimerHandle | None = None    # of WITHIN
    timed_out: bool = False                  # its time is up: what is under way is its last chance
    claimed: Window | None = None       # where the operation under way has a grant
    pending: PendingGrant | None = None          # its grant, until that is written

    @property
    def held_bytes(self) -> int:
        """Memory that the waiter uses, beyond that of any command."""
        return 0

    @property
    def numbered(self) -> bool:
        """See Slot."""
        return self.numbering is not None

    @property
    def operation(self) -> Operation:
        """The operation to propose: of a numbered command its request, else a look whether there is such a pulse."""
        if self.numbering is None:
            return Grant(self.pulse, 0)
        return self.numbering.request(TakeTurn(self.pulse, self.claimed is not None), keep_waiting=True)

    def refused_meanwhile(self) -> bool:
        """Whether its client may not have a turn any more: then this ends it."""
        refusal = self.client.guard.refusal_of_turn(self.pulse)
        if refusal is not None:
            self.end(refusal)
        return refusal is not None

    def end(self, outcome: Outcome) -> None:
        """Set its answer."""
        self.outcome = outcome
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.client.wake()

    def end_of_input(self) -> None:
        """Wait no longer: the client has sent its last byte."""
        self.place.cancel(self)

    def leave(self) -> None:
        """The client is gone."""
        self.place.cancel(self)

    def keep_session(self) -> None:
        """Use its session, which must not end while it waits."""
        if self.numbering is not None:
            self.place.touch_session(self.numbering.session)

    # ---- the outcome of its operation

    def applied(self, reply: Reply) -> None:
        """Handle the reply."""
        self.place.settle(self, reply)

    def refused(self) -> None:
        """End it: this node no longer serves."""
        self.place.give_up(self, NoReply.REFUSED)

    def unknown(self) -> None:
        """End it: whether it has a grant is unknown."""
        self.place.give_up(self, NoReply.UNKNOWN if self.numbering is None else NoReply.UNKNOWN_REQUEST)

    def overdue(self) -> None:
        """Try again."""
        if self.timed_out:
            self.place.give_up(self, responses.BUSY)
        else:
            self.place.repropose(self)
