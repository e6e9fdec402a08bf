"""How long the turns of the loop take: nobody is answered meanwhile."""

from __future__ import annotations

from cluster.metrics.histogram import Histogram

MINUTE_S = 60.0


class LoopTurns:
    """Each turn from its first event to its end."""

    def __init__(self) -> None:
        self.seconds = Histogram()
        self._minute = 0.0              # when the present one began, monotonic seconds
        self._longest = self._longest_before = 0.0      # of the present minute, and of the one before

    def observe(self, begun: float, ended: float) -> None:
        """A turn took from `begun` to `ended`, monotonic seconds."""
        seconds = ended - begun
        self.seconds.observe(seconds)
        if ended - self._minute > MINUTE_S:
            self._longest_before = self._longest if ended - self._minute < 2 * MINUTE_S else 0.0
            self._longest, self._minute = 0.0, ended
        if seconds > self._longest:
            self._longest = seconds

    @property
    def longest_s(self) -> float:
        """The longest of the last one to two minutes in which there were any, seconds."""
        return max(self._longest, self._longest_before)
