"""The interface of the pulses to blocked clients of queues with a rate; gateway/pulses implements it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sockpqd.core import Taking
from sockpqd.gateway.waiting.slots import Outcome


class ReservedGrants(Protocol):
    """Grants for one Get, until its outcome is known."""

    def around(self, taking: Taking) -> Taking:
        """Return the Get with these grants."""

    def release(self) -> None:
        """None of them was used."""

    def settle(self, outcome: Outcome, tell: Callable[[Outcome], None], again: Callable[[], None]) -> None:
        """Tell the outcome of the Get; grants that were not used are free again.

        Or call `again` later, to propose the Get with the grants that there are then: its jobs were handed out before,
        and there is no room for them now.
        """


class GrantSource(Protocol):
    """The free grants of the pulses of queues."""

    def pulse_of(self, queue: str) -> str | None:
        """Return the pulse of a queue with a rate."""

    def free(self, pulse: str) -> int:
        """Return the number of the pulse's grants that are free for its queues."""

    def take(self, taking: Taking, queue: str | None = None, *, numbered: bool) -> ReservedGrants | None:
        """Take free grants for a Get, of queues with jobs or the `queue` it is sent for.

        None: there are none, and the answer cannot be one that was given before.
        """

    def starve(self, pulse: str, queue: str) -> None:
        """Have clients looked at again when a grant may be free: they wait for jobs that are there."""
