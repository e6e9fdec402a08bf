"""The mean of a histogram's observations in about the last minute."""

from __future__ import annotations

from sockpqd.cluster.metrics.histogram import Histogram

HALF_S = 30.0           # after this long an observation counts half


class RecentMean:
    """Weighs the observations of a histogram by their age; reads it only when called."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._seen, self._seen_total = sum(histogram.counts), histogram.total
        self._count = self._total = 0.0
        self._at: float | None = None

    def __call__(self, now: float) -> float:
        """Return the mean as of `now` (monotonic seconds), 0 before the first observation."""
        count, total = sum(self._histogram.counts), self._histogram.total
        fades = 1.0 if self._at is None else 0.5 ** ((now - self._at) / HALF_S)
        self._count = self._count * fades + count - self._seen
        self._total = self._total * fades + total - self._seen_total
        self._seen, self._seen_total, self._at = count, total, now
        return self._total / self._count if self._count else 0.0
