"""The two clocks of a node, and replicated time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where time comes from: the operating system, or a simulation."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""

    def wall_ms(self) -> int:
        """Unix time in milliseconds; may be set by anybody at any moment."""


class SystemClock:
    """The operating system's clocks."""

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """See Clock."""
        return time.time_ns() // 1_000_000


class ReplicatedTime:
    """What a leader stamps entries with: the wall clock once, at its Lead entry, then only its monotonic clock.

    So replicated time never stands still and never follows a step of the wall clock (DECISIONS 5).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._base_ms = 0
        self._since = 0.0

    def begin(self) -> None:
        """A leadership begins: read the wall clock, for the only time in it."""
        self._base_ms = self._clock.wall_ms()
        self._since = self._clock.monotonic()

    def reach(self, replicated_ms: int) -> None:
        """Do not fall behind the replicated time reached so far."""
        self._base_ms += max(0, replicated_ms - self.now_ms())

    def now_ms(self) -> int:
        """Unix time in milliseconds for the next entry."""
        return self._base_ms + int((self._clock.monotonic() - self._since) * 1000)
