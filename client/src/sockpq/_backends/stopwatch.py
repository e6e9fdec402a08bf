"""Measures how long the work on a job takes, for jobs whose end reports it to the server."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

Stopwatch = Callable[[], float]


def stopwatch(clock: Callable[[], float] = monotonic) -> Stopwatch:
    """Return a function that returns the seconds on this clock since this call."""
    began = clock()
    return lambda: clock() - began
