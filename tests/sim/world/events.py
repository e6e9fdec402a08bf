"""Simulated time: a heap of things to happen, and the clocks that nodes read."""

from __future__ import annotations

import heapq
from collections.abc import Callable

UNIX_MS = 1_700_000_000_000     # the wall clock at time 0 of the simulation
RIGHT_MS = 300                  # NTP keeps wall clocks so near the true time


class Events:
    """The events to come. Events of the same moment happen in the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = 0
        self._halted = False

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Schedule `action` at a time in seconds, never before what is due now."""
        self._serial += 1
        heapq.heappush(self._heap, (max(when, self.now), self._serial, action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Schedule `action` after a delay."""
        self.at(self.now + seconds, action)

    def halt(self) -> None:
        """Let run_until() return before the next event."""
        self._halted = True

    def run_until(self, end: float) -> int:
        """Let time pass up to `end`, or until halt() is called; returns the number of events."""
        heap, steps = self._heap, 0
        self._halted = False
        while heap and heap[0][0] <= end:
            when, _, action = heapq.heappop(heap)
            self.now = max(self.now, when)          # a test may have let a process stand still
            action()
            steps += 1
            if self._halted:
                return steps
        self.now = end
        return steps


class DriftingClock:
    """The clocks of one machine: two that run at speeds of their own, and a wall clock that somebody sets.

    NTP may let the monotonic clock run faster or slower than the machine counts by itself (cluster/leader/clock.py). It
    does so to keep the wall clock near the true time: that is never further away than RIGHT_MS, but for what is set.
    """

    def __init__(self, events: Events, start_s: float, speed: float, steady_speed: float = 1.0) -> None:
        self._events = events
        self._start_s = start_s
        self._speed = speed
        self._steady_speed = steady_speed
        self.wall_offset_ms = 0
        self.beyond = False         # it ran slower than any clock may

    def monotonic(self) -> float:
        """Implement cluster.leader.clock.Clock."""
        return self._start_s + self._events.now * self._speed

    def steady(self) -> float:
        """Implement cluster.leader.clock.Clock."""
        return self._events.now * self._steady_speed

    def wall_ms(self) -> int:
        """Implement cluster.leader.clock.Clock."""
        true_ms = self._events.now * 1000
        return UNIX_MS + int(true_ms + max(-RIGHT_MS, min(RIGHT_MS, (self._speed - 1) * true_ms))) + self.wall_offset_ms

    def slow_down(self, factor: float) -> None:
        """Run at another speed from now on, e.g. a tenth (0.1) of the present one; the clock does not jump."""
        shown = self.monotonic()
        self.beyond = True
        self._speed *= factor
        self._start_s = shown - self._events.now * self._speed

    def when(self, monotonic: float) -> float:
        """Return the simulated time at which this clock shows `monotonic`."""
        return (monotonic - self._start_s) / self._speed
