"""Records when commands were acknowledged, to find the longest gap."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from itertools import pairwise


class Acks:
    """The milliseconds in which at least one command was acknowledged. Thread-safe.

    The clock is the system's monotonic one, which all processes of a machine share, so sets can be combined.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: set[int] = set()
        self._new: list[int] = []

    def note(self) -> None:
        """Record a command that was acknowledged just now."""
        self.add((time.monotonic_ns() // 1_000_000,))

    def add(self, milliseconds: Iterable[int]) -> None:
        """Record the times of acknowledgements."""
        with self._lock:
            for millisecond in milliseconds:
                if millisecond not in self._seen:
                    self._seen.add(millisecond)
                    self._new.append(millisecond)

    def take_new(self) -> list[int]:
        """The milliseconds added since the last call."""
        with self._lock:
            new, self._new = self._new, []
            return new

    def longest_gap_s(self) -> float:
        """The longest time between two acknowledgements in seconds, 0 if there are fewer than two."""
        with self._lock:
            moments = sorted(self._seen)
        return max((later - earlier for earlier, later in pairwise(moments)), default=0) / 1000
