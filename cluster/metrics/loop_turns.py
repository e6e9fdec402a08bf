"""Durations of the event loop's turns, during which no client is answered."""

from __future__ import annotations

from sockpqd.cluster.metrics.histogram import Histogram

MINUTE_S = 60.0


class LoopTurns:
    """The durations of turns, each from its first event to its end."""

    def __init__(self) -> None:
        self.seconds = Histogram()
        self._minute = 0.0              # start of the present minute, monotonic seconds
        self._longest = self._longest_before = 0.0      # in the present minute, and in the one before

    def observe(self, begun: float, ended: float) -> None:
        """Record a turn from `begun` to `ended`, monotonic seconds."""
        seconds = ended - begun
        self.seconds.observe(seconds)
        if ended - self._minute > MINUTE_S:
            self._longest_before = self._longest if ended - self._minute < 2 * MINUTE_S else 0.0
            self._longest, self._minute = 0.0, ended
        if seconds > self._longest:
            self._longest = seconds

    @property
    def longest_s(self) -> float:
        """The longest turn of the last one to two minutes that had any, in seconds."""
        return max(self._longest, self._longest_before)
