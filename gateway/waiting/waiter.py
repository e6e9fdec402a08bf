"""One blocked command; waiters.py tells how it waits."""

from __future__ import annotations

from asyncio import TimerHandle
from typing import Protocol

from msgspec import Struct

from core import Reply
from gateway.protocol import responses
from gateway.waiting.party import Party
from gateway.waiting.rotation import Rotation
from gateway.waiting.slots import Fate, Outcome
from gateway.waiting.wanted import Wanted


class Place(Protocol):
    """Where waiters wait; see waiters.py."""

    def settle(self, waiter: Waiter, reply: Reply) -> None:
        """Its Get was executed."""

    def give_up(self, waiter: Waiter, outcome: Outcome) -> None:
        """Its Get was not executed, or nobody knows."""

    def ask_anew(self, waiter: Waiter) -> None:
        """Its Get had no turn: propose it once more."""


class Waiter(Struct, gc=False, eq=False):
    """A blocked command: the slot of its answer, and where the outcome of its Get goes."""

    client: Party
    place: Place
    wanted: Wanted
    outcome: Outcome | None = None
    silent: bool = False                # the line of its PUT speaks for it too
    number: int = 0                     # order of arrival; 0: it has not had to wait yet
    sent_for: str | None = None         # the queue its Get in flight claims jobs of
    claimed: int = 0                    # how many
    watched: tuple[str | None, str | None] | None = None    # GETBE: what is unfinished: why it goes on waiting
    timer: TimerHandle | None = None    # of WITHIN
    late: bool = False                  # its time is over: its Get in flight is the last
    rotation: Rotation | None = None    # among queues, that notes which gave a job
    too_late: bytes = responses.QUEUE_EMPTY       # what is said then

    @property
    def held_bytes(self) -> int:
        """What it costs to wait."""
        return self.wanted.held_bytes

    @property
    def numbered(self) -> bool:
        """See Slot."""
        return self.wanted.request is not None

    @property
    def unknown_fate(self) -> Fate:
        """What becomes of the command when nobody knows the outcome of an operation."""
        return Fate.UNKNOWN if self.wanted.request is None else Fate.UNKNOWN_REQUEST

    def end(self, outcome: Outcome) -> None:
        """This is its answer."""
        self.outcome = outcome
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def applied(self, reply: Reply) -> None:
        """Its Get came back."""
        if self.rotation is not None:
            self.rotation.note(reply)
        self.place.settle(self, reply)

    def refused(self) -> None:
        """Its Get was not executed, and this node serves no more."""
        self.place.give_up(self, b"" if self.silent else Fate.REFUSED)

    def unknown(self) -> None:
        """Nobody knows whether a job was handed out to it."""
        self.place.give_up(self, self.unknown_fate)

    def overdue(self) -> None:
        """Its Get had no turn for long. Who is willing to wait need not be refused."""
        if self.silent:
            self.place.give_up(self, b"")
        elif self.client.ended:
            self.place.give_up(self, Fate.CANCELLED)
        elif self.late:
            self.place.give_up(self, responses.BUSY)
        else:
            self.place.ask_anew(self)

    def silence(self) -> None:
        """The PUT before it was not executed: that line speaks for the wait as well."""
        self.silent = True
        if self.outcome is Fate.REFUSED:
            self.outcome = b""
