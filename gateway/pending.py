"""Slots: the places where answers wait for their turn. One per command, in the order of the commands (A9)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from core import Get, Reply, Stored
from gateway.answers import wait_for_output

if TYPE_CHECKING:
    from gateway.conversation import Conversation
    from gateway.waiters import Waiter


class Fate(Enum):
    """What became of a command that was not executed, or of which nobody knows."""

    REFUSED = "surely not executed: 500 Offline Mode"
    UNKNOWN = "perhaps executed: the connection is closed without an answer (A61)"
    CANCELLED = "a blocked command whose client sent its last byte (A9): likewise"


Outcome = Reply | Fate | bytes      # bytes: the answer itself


class Slot(Protocol):
    """The place of one command's answer; `outcome` is None until it is known."""

    outcome: Outcome | None


class Said(Struct, gc=False, eq=False):
    """An answer that was known at once."""

    outcome: Outcome | None


class Awaited(Struct, gc=False, eq=False):
    """A command that is one operation."""

    conversation: Conversation
    outcome: Outcome | None = None

    def applied(self, reply: Reply) -> None:
        """The operation was executed."""
        self.outcome = reply
        self.conversation.wake()

    def refused(self) -> None:
        """The operation was not executed."""
        self.outcome = Fate.REFUSED
        self.conversation.wake()

    def unknown(self) -> None:
        """Nobody knows."""
        self.outcome = Fate.UNKNOWN
        self.conversation.wake()


class PutOfWait(Awaited):
    """The PUT of a PUT .. WAIT; the waiter's slot stands behind it."""

    waiter: Waiter | None = None

    def applied(self, reply: Reply) -> None:
        """The job is queued; from now on the waiter asks for its item by name."""
        assert self.waiter is not None
        assert type(reply) is Stored
        if reply.item is not None:
            get = self.waiter.get
            self.waiter.get = Get(get.queues, get.expire_ms, get.then, reply.item)
        self.outcome = wait_for_output(reply)
        self.conversation.wake()

    def refused(self) -> None:
        """Neither operation was executed: one line speaks of both."""
        assert self.waiter is not None
        self.waiter.silence()
        super().refused()


class Nobody:
    """Takes the outcome of an operation no client asked for."""

    def applied(self, reply: Reply) -> None:
        """Nothing to tell."""

    def refused(self) -> None:
        """Nothing to tell."""

    def unknown(self) -> None:
        """Nothing to tell."""


NOBODY = Nobody()
