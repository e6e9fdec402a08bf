"""The clocks of a node, and replicated time.

No single wall clock determines the time in the queues. The cluster keeps its own time, which continues from one
leader to the next. It is only slewed towards the median of the voters' wall clocks, too slowly to matter to any lease
(spec/clock 1.1).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Protocol

SLEW = 0.0005           # greatest change of speed: a lease of half an hour is at most 0.9 s short
DECAY = 2 * SLEW        # how much slower than its own clock a follower's time runs between messages of its leader
SETTLE_S = 20.0         # a small error is corrected over this time, so that noise in the comparison does not oscillate


class Clock(Protocol):
    """The source of time: the operating system or a simulation."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment, never decreasing. For timeouts."""

    def steady(self) -> float:
        """Seconds since another fixed moment by the machine's own oscillator, never decreasing.

        Its rate is not adjusted when the wall clock is corrected, and it continues while the machine is suspended.
        """

    def wall_ms(self) -> int:
        """Unix time in milliseconds; it may be set at any moment."""


class SystemClock:
    """The operating system's clocks (Linux).

    CLOCK_MONOTONIC would be wrong for replicated time in two ways: when chrony corrects the wall clock it lets both
    run up to 8% faster or slower, and CLOCK_MONOTONIC stops while the machine is suspended. CLOCK_BOOTTIME solves only
    the second problem, CLOCK_MONOTONIC_RAW only the first.
    """

    def __init__(self) -> None:
        self._suspended = 0.0           # seconds since the machine was started

    monotonic = staticmethod(time.monotonic)

    def steady(self) -> float:
        # A delay between the two readings can only make the measured difference smaller.
        suspended = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
        self._suspended = max(self._suspended, suspended)
        return time.clock_gettime(time.CLOCK_MONOTONIC_RAW) + self._suspended

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


def median(clocks_ms: Sequence[int]) -> tuple[int, int]:
    """The lower and the upper median, which are equal for an odd number of clocks. There must be at least one."""
    ordered = sorted(clocks_ms)
    return ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]


class ReplicatedTime:
    """The time with which a leader stamps entries, and a follower's estimate of it. It never goes back.

    It runs on the machine's own clock, up to SLEW faster or slower to approach the median of the wall clocks. Only the
    start of a leadership may set it forward to that median, which matters after the whole cluster was down. `known`:
    this node has seen an entry or a message with that time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._base_ms = 0.0
        self._since = clock.steady()
        self._rate = 1.0
        self.known = False

    def _now(self) -> float:
        return self._base_ms + (self._clock.steady() - self._since) * 1000 * self._rate

    def _go_on(self, from_ms: float, rate: float) -> None:
        self._base_ms, self._since, self._rate = from_ms, self._clock.steady(), rate

    def now_ms(self) -> int:
        """Unix time in milliseconds for the next entry."""
        return int(self._now())

    def follow(self, leader_ms: int) -> None:
        """Follower: adopt the time that the leader sent, or with which it stamped the last entry.

        That time is a little old, more so if messages are delayed, so it can only set ours forward. DECAY keeps ours
        from overtaking the leader's, which may run slower by SLEW.
        """
        self._go_on(max(self._now(), leader_ms), 1 - DECAY)
        self.known = True

    def begin(self, known_ms: Iterable[int], clocks_ms: Sequence[int]) -> None:
        """Start a leadership. `known_ms`: other reports of replicated time; `clocks_ms`: wall clocks of a majority."""
        self._go_on(max(self._now(), median(clocks_ms)[0], *known_ms), 1.0)
        self.known = True

    def steer(self, clocks_ms: Sequence[int]) -> None:
        """Leader: slew towards the median of these wall clocks from now on; without any, run at the normal rate.

        For an even number, any time between the two middle clocks is a median, so of two clocks a wrong one does not
        pull time away from the other.
        """
        now = self._now()
        error_s = _distance_ms(now, clocks_ms) / 1000 if clocks_ms else 0.0
        self._go_on(now, 1 + max(-SLEW, min(SLEW, -error_s / SETTLE_S)))

    def ahead_ms(self, clocks_ms: Sequence[int]) -> int:
        """Return how far this time is ahead of the median of these wall clocks (at least one); negative if behind."""
        return int(_distance_ms(self._now(), clocks_ms))

    def reach(self, replicated_ms: int) -> None:
        """Advance to `replicated_ms`, if it is later."""
        self._base_ms += max(0, replicated_ms - self.now_ms())


def _distance_ms(now_ms: float, clocks_ms: Sequence[int]) -> float:
    lower, upper = median(clocks_ms)
    return max(now_ms - upper, 0.0) - max(lower - now_ms, 0.0)
