"""The courses of pulses: their grants, results, pauses and current limits."""

from __future__ import annotations

import asyncio
from itertools import islice
from math import nan

from sockpqd.cluster import Cluster
from sockpqd.gateway.samples.course import SHORT, Field, FigureSeries

KEPT_MAX = 100          # courses of 44 KB: 4 MB
PORTION = 20            # pulses sampled before others have a turn

# Grants and results that were not OK, per second; grants allowed in a period, and the seconds of its pause.
PULSE_FIELDS = Field("granted"), Field("errors"), Field("now"), Field("pause", greatest=True)


class KeptPulses:
    """The courses of the first KEPT_MAX pulses, by name."""

    def __init__(self) -> None:
        self.courses: dict[str, FigureSeries] = {}
        self._counted: dict[str, tuple[int, int, int]] = {}     # grants and errors so far, and when that was

    async def sample(self, cluster: Cluster, now_s: int) -> None:
        """Add a row to each course; courses of pulses that are gone are dropped."""
        pulses = cluster.machine.pulses
        before, self._counted = self._counted, {}
        self.courses = {name: course for name, course in self.courses.items() if name in pulses}
        for at, (name, pulse) in enumerate(list(islice(pulses.items(), KEPT_MAX)), start=1):
            granted, errors, last_s = before.get(name, (0, 0, 0))
            if last_s == now_s:             # the last sample was late
                self._counted[name] = before[name]
                continue
            self._counted[name] = pulse.granted, pulse.errors, now_s
            # The counters of a pulse deleted and created again start at 0.
            counts = max(0, pulse.granted - granted), max(0, pulse.errors - errors)
            rates = [count / (now_s - last_s) for count in counts] if 0 < last_s < now_s else [nan, nan]
            course = self.courses.get(name)
            if course is None:
                course = self.courses[name] = FigureSeries(PULSE_FIELDS, SHORT)
            course.add(now_s, [*rates, pulse.now, pulse.pause_ms / 1000])
            if at % PORTION == 0:
                await asyncio.sleep(0)
