"""When commands were acknowledged, in milliseconds, and the longest time without any."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from itertools import pairwise


class Acks:
    """A set of milliseconds in which at least one command was acknowledged. Thread-safe.

    The clock is the system's monotonic one, the same in all processes of a machine, so that the sets of several
    processes can be put together.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: set[int] = set()
        self._new: list[int] = []

    def note(self) -> None:
        """A command was acknowledged just now."""
        self.add((time.monotonic_ns() // 1_000_000,))

    def add(self, milliseconds: Iterable[int]) -> None:
        """Commands were acknowledged then."""
        with self._lock:
            for millisecond in milliseconds:
                if millisecond not in self._seen:
                    self._seen.add(millisecond)
                    self._new.append(millisecond)

    def take_new(self) -> list[int]:
        """What was added since the last call."""
        with self._lock:
            new, self._new = self._new, []
            return new

    def longest_gap_s(self) -> float:
        """Seconds between two neighbours at most; 0 when there are fewer than two."""
        with self._lock:
            moments = sorted(self._seen)
        return max((later - earlier for earlier, later in pairwise(moments)), default=0) / 1000
