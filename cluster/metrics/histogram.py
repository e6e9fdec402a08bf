"""A histogram of durations, cheap enough to update for every log entry."""

from __future__ import annotations

from bisect import bisect_left

# Upper bounds in seconds. A fast disk syncs in 0.1 ms; an election begins after 0.6 s.
SECONDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
)


class Histogram:
    """`counts[k]` observations were at most `bounds[k]` and above the bound before; the last count has the rest."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0                # sum of all values

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
