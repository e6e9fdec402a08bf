"""Measures how long the work on a job takes, where the end of the job tells that to the server."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

Stopwatch = Callable[[], float]


def stopwatch(clock: Callable[[], float] = monotonic) -> Stopwatch:
    """Return a function that says how many seconds have passed on this clock since now."""
    began = clock()
    return lambda: clock() - began
