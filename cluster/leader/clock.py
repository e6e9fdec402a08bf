"""The clocks of a node, and replicated time.

No single wall clock decides what time it is in the queues. The cluster keeps a time of its own, which goes on from one
leader to the next; the median of the voters' wall clocks only draws it near, so slowly that no lease notices
(spec/clock 1.1).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Protocol

SLEW = 0.0005           # a lease of half an hour is short by 0.9 s at most
DECAY = 2 * SLEW        # so much slower than its own clock a follower's time runs between two messages of its leader
SETTLE_S = 20.0         # a small error is spread over so long, so that what blurs the comparison makes no zigzag


class Clock(Protocol):
    """Where time comes from: the operating system, or a simulation."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back. For timeouts."""

    def steady(self) -> float:
        """Seconds since another fixed moment, as the machine itself counts them; never goes back.

        Nobody makes it faster or slower to correct the wall clock, and it goes on while the machine is suspended.
        """

    def wall_ms(self) -> int:
        """Unix time in milliseconds; may be set by anybody at any moment."""


class SystemClock:
    """The operating system's clocks (Linux).

    CLOCK_MONOTONIC would be wrong for replicated time in two ways: chrony corrects a wall clock by letting it run
    up to 8% faster or slower, and CLOCK_MONOTONIC with it; and it stands still while the machine is suspended.
    CLOCK_BOOTTIME mends only the second, CLOCK_MONOTONIC_RAW only the first.
    """

    def __init__(self) -> None:
        self._suspended = 0.0           # seconds since the machine was started

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()

    def steady(self) -> float:
        """See Clock."""
        # Whatever delays this process between the two readings makes the difference smaller than it is, never greater.
        suspended = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
        self._suspended = max(self._suspended, suspended)
        return time.clock_gettime(time.CLOCK_MONOTONIC_RAW) + self._suspended

    def wall_ms(self) -> int:
        """See Clock."""
        return time.time_ns() // 1_000_000


def median(clocks_ms: Sequence[int]) -> tuple[int, int]:
    """The two in the middle, the lower first; of an odd number twice the same. There must be one."""
    ordered = sorted(clocks_ms)
    return ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]


class ReplicatedTime:
    """What a leader stamps entries with, and what the others know of it meanwhile. It never goes back.

    It runs on the machine's own clock, up to SLEW faster or slower where it has to draw near to the median of the wall
    clocks. Only the beginning of a leadership may set it forward to that: after the whole cluster was down, above all.
    `known`: there is an entry, or a leader has told it.
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

    def follow(self, told_ms: int) -> None:
        """Follower: the leader's time was this when it said so, or stamped the last entry.

        That was a moment ago, or longer if messages wait: so it only sets ours forward. DECAY keeps ours from getting
        ahead of the leader's, which may run slower by SLEW.
        """
        self._go_on(max(self._now(), told_ms), 1 - DECAY)
        self.known = True

    def begin(self, known_ms: Iterable[int], clocks_ms: Sequence[int]) -> None:
        """A leadership begins. `known_ms`: what else is known of replicated time; `clocks_ms`: the voters' wall clocks,
        those of a majority at least."""
        lower, _ = median(clocks_ms)
        self._go_on(max(self._now(), lower, *known_ms), 1.0)
        self.known = True

    def steer(self, clocks_ms: Sequence[int]) -> None:
        """Leader: draw near to the median of these wall clocks from now on; without any, to nothing.

        Of an even number each moment between the two in the middle is a median: so if one of two clocks is wrong, it
        draws nothing away from the other.
        """
        now = self._now()
        error_s = _distance_ms(now, clocks_ms) / 1000 if clocks_ms else 0.0
        self._go_on(now, 1 + max(-SLEW, min(SLEW, -error_s / SETTLE_S)))

    def ahead_ms(self, clocks_ms: Sequence[int]) -> int:
        """How far it is ahead of the median of these wall clocks, of which there must be one; negative: behind."""
        return int(_distance_ms(self._now(), clocks_ms))

    def reach(self, replicated_ms: int) -> None:
        """Do not fall behind the replicated time reached so far."""
        self._base_ms += max(0, replicated_ms - self.now_ms())


def _distance_ms(now_ms: float, clocks_ms: Sequence[int]) -> float:
    lower, upper = median(clocks_ms)
    return max(now_ms - upper, 0.0) - max(lower - now_ms, 0.0)
