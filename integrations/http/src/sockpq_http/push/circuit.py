"""A circuit breaker: pauses a receiver that fails, longer each time, and then tries it with a single request."""

from __future__ import annotations

from collections.abc import Callable

FIRST_S = 1.0               # the first rest
EARLIER = 0.5               # by up to this share a rest is shorter, so that programs do not come back together
LATER = 0.1                 # a rest that the receiver asked for is longer by up to this share, never shorter


class Circuit:
    """Closed (all requests go), open (none), or on trial (one) once a rest has ended. Times: seconds of one clock."""

    def __init__(self, failures_max: int, rest_max_s: float, share: Callable[[], float]) -> None:
        """`failures_max`: failures in a row that open it; `share`: a random number from 0 to 1."""
        self._failures_max = failures_max
        self._rest_max_s = rest_max_s
        self._share = share
        self._failures = 0          # in a row
        self._rests = 0             # in a row, none of which has helped
        self._until = 0.0           # the end of the rest
        self._opened = float("-inf")
        self.on_trial = False

    def left_s(self, now: float) -> float:
        """Return how long the rest lasts from now on; 0 if requests may go."""
        return max(self._until - now, 0.0)

    def succeeded(self, begun: float) -> bool:
        """Record that a request begun at that time has succeeded. Returns whether that ends a trial."""
        if begun < self._opened:        # a request from before the rest shows nothing about now
            return False
        ended, self.on_trial = self.on_trial, False
        self._failures = self._rests = 0
        return ended

    def failed(self, now: float, begun: float) -> float | None:
        """Record a failure of a request begun at that time; returns the length of the rest if it opens the circuit."""
        if begun < self._opened:
            return None
        self._failures += 1
        if self._failures < self._failures_max and not self.on_trial:
            return None
        rest_s = min(FIRST_S * 2.0 ** min(self._rests, 20), self._rest_max_s) * (1.0 - EARLIER * self._share())
        self._rests += 1
        self._open(now, rest_s)
        return rest_s

    def rest(self, now: float, seconds: float) -> float:
        """Rest because the receiver has asked for it; returns for how long."""
        rest_s = seconds * (1.0 + LATER * self._share())
        if now + rest_s > self._until:
            self._open(now, rest_s)
        return rest_s

    def _open(self, now: float, rest_s: float) -> None:
        self._opened = now
        self._until = max(self._until, now + rest_s)
        self._failures = 0
        self.on_trial = True
