"""A client that waits for a grant, and the grant on its way to it; grant_waiters.py explains how it waits."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from sockpqd.core import Grant, Operation, TakeTurn
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.pulses.window import Window
from sockpqd.gateway.waiting.waiting_line import Waiter


class PendingGrant(Struct, gc=False, eq=False):
    """A grant on its way to a client: it counts as written from the moment when the answer is written.

    It does not refer to its waiter, whose outcome refers to it: the garbage collector would not see that cycle.
    """

    queue: GrantQueue
    pulse: str
    window: Window
    ticket: int
    stamp_ms: int               # replicated time of its entry
    numbered: bool = False
    over: bool = False          # it was written, or never will be

    def write(self) -> bytes:
        """Return the answer, at the moment when it is written."""
        self.over = True
        return self.queue.write_grant(self)

    def drop(self) -> None:
        """Pass it on: its client is gone."""
        if not self.over:
            self.over = True
            self.queue.drop_grant(self)


class GrantQueue(Protocol):
    """The interface of `GrantWaiters` to a pending grant."""

    def write_grant(self, pending: PendingGrant) -> bytes:
        """Return the answer that gives this grant, if this node may still write it."""

    def drop_grant(self, pending: PendingGrant) -> None:
        """Give the grant to the next waiter: it was not written."""


class GrantWaiter(Waiter, gc=False, eq=False, kw_only=True):
    """A PULSE WAIT."""

    pulse: str
    numbering: Numbering | None = None      # of a numbered command
    claimed: Window | None = None           # where the operation in flight has a grant

    def __post_init__(self) -> None:
        if self.numbering is not None:
            self.request_key = self.numbering.session, self.numbering.number

    @property
    def operation(self) -> Operation:
        """Return the operation to propose: a numbered command's own, else one that looks up the pulse."""
        if self.numbering is None:
            return Grant(self.pulse, 0)
        return self.numbering.request(TakeTurn(self.pulse, self.claimed is not None), keep_waiting=True)

    @property
    def refusal(self) -> bytes | None:
        """Return the answer if its client may not have a grant any more, else None."""
        return self.client.guard.refusal_of_turn(self.pulse)
