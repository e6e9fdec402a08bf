"""Measures the lag of the event loop: how long everything else waits while it is busy with one thing."""

from __future__ import annotations

import asyncio

from sockpqd.cluster import Histogram

PERIOD_S = 0.25


class LoopLag:
    """Schedules a call a few times a second, and records how late it comes."""

    def __init__(self) -> None:
        self.seconds = Histogram()
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._due = self._loop.time() + PERIOD_S
        self._timer = self._loop.call_at(self._due, self._called)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _called(self) -> None:
        self.seconds.observe(max(0.0, self._loop.time() - self._due))
        self.start()
