"""Outcomes of operations, as known to the client that sent them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sockpqd.cluster.api import Pending
from sockpqd.core import Empty, NotYet, Operation, Reply, Request
from tests.sim.world.trace import Violation


class Outcome(Pending):
    """An operation in flight. `state`: open, applied, refused, unknown, or lost with its node."""

    def __init__(self, operation: Operation, told: Callable[[Outcome], None]) -> None:
        self.operation = operation
        self.state = "open"
        self.reply: Reply | None = None
        self.entry: int | None = None           # the entry that carries it, by its seed
        self.place = 0                          # and where in it
        self.ended: Callable[[Outcome], Any] = lambda outcome: None     # the node forgets it
        self._told = told

    def _end(self, state: str) -> None:
        if self.state != "open":
            raise Violation(f"{self.operation} is {state} and was {self.state}")
        self.state = state
        if state != "lost":
            self.ended(self)
        self._told(self)

    def applied(self, reply: Reply) -> None:
        """Implement Pending."""
        self.reply = reply
        self._end("refused" if isinstance(reply, NotYet) else "applied")

    def refused(self) -> None:
        """Implement Pending."""
        self._end("refused")

    def unknown(self) -> None:
        """Implement Pending."""
        self._end("unknown")

    def overdue(self) -> None:
        """Implement Pending."""
        self._end("refused")

    def lost(self) -> None:
        """Handle the end of the connection to the node."""
        self._end("lost")


def waits(request: Request, reply: Reply | None) -> bool:
    """Return whether this is no answer yet, because the client keeps waiting."""
    return isinstance(reply, Empty) and request.keep_waiting and (reply.unfinished or not request.until_finished)
