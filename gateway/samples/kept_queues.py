"""The queues that have a course: the busiest ones, and those shown on a page recently."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping
from math import nan

from sockpqd.cluster import Cluster
from sockpqd.gateway.samples.course import QUEUE_FIELDS, SHORT, FigureSeries
from sockpqd.gateway.samples.flows import STILL, QueueRates
from sockpqd.gateway.samples.latencies import QueueLatencies

BUSIEST = 200
KEPT_MAX = 350          # courses of 132 KB: 46 MB
WANTED_S = 600          # a queue that was busy or looked at in this time loses its course only to one that is looked at
DECAY = 0.98            # of a second: what a queue did a minute ago counts a third
PORTION = 20            # queues sampled before others have a turn: some 0.3 ms


class KeptQueues:
    """The courses of some queues, by name."""

    def __init__(self) -> None:
        self.courses: dict[str, FigureSeries] = {}
        self._wanted: dict[str, tuple[bool, int]] = {}      # whether somebody looked at it, and when it was last wanted
        self._busy: dict[str, float] = {}

    def look(self, queue: str, now_s: int) -> FigureSeries | None:
        """Return the course of a queue, None if it has none yet; it is kept from now on."""
        self._want(queue, now_s, looked=True)
        return self.courses.get(queue)

    def busy(self, rates: Mapping[str, QueueRates], now_s: int) -> None:
        """Keep the queues that are the busiest over the last minutes."""
        busy = {name: value * DECAY for name, value in self._busy.items() if value > 0.01}
        for name, found in rates.items():
            busy[name] = busy.get(name, 0.0) + found.busy
        if len(busy) > KEPT_MAX:
            busy = dict(heapq.nlargest(KEPT_MAX, busy.items(), key=lambda item: item[1]))
        self._busy = busy
        for name in heapq.nlargest(BUSIEST, busy, key=busy.__getitem__):
            self._want(name, now_s, looked=False)

    async def sample(
        self, cluster: Cluster, rates: Mapping[str, QueueRates], latencies: QueueLatencies, now_s: int, *, known: bool,
    ) -> None:
        """Add a row to each course. `known`: whether the rates are."""
        machine = cluster.machine
        for at, (name, course) in enumerate(list(self.courses.items()), start=1):
            counts = machine.counts(name)
            found = rates.get(name, STILL)
            flow = [found.put, found.taken, found.done, found.failed, found.died] if known else [nan] * 5
            if counts is None:
                course.add(now_s, [*flow, 0, 0, 0, *latencies.of(name)])
            else:
                oldest_ms = machine.history(name, cluster.time_ms).oldest_ms if counts.ready else 0
                course.add(now_s, [*flow, counts.ready, counts.running, oldest_ms / 1000, *latencies.of(name)])
            if at % PORTION == 0:
                await asyncio.sleep(0)

    def restore(self, queue: str, course: FigureSeries, now_s: int) -> None:
        """Add a course stored before a restart."""
        if len(self.courses) < KEPT_MAX:
            self.courses[queue] = course
            self._wanted[queue] = False, now_s

    def _want(self, queue: str, now_s: int, *, looked: bool) -> None:
        before = self._wanted.get(queue)
        if before is None:
            if len(self.courses) >= KEPT_MAX and not self._make_room(now_s, looked=looked):
                return
            self.courses[queue] = FigureSeries(QUEUE_FIELDS, SHORT)
        elif before[0] and not looked and now_s - before[1] < WANTED_S:
            return                      # somebody looked at it, which counts for more
        self._wanted[queue] = looked, now_s

    def _make_room(self, now_s: int, *, looked: bool) -> bool:
        """Drop the least wanted course; returns whether there was one to drop."""
        oldest = min(self._wanted, key=self._wanted.__getitem__)
        if not looked and now_s - self._wanted[oldest][1] < WANTED_S:
            return False
        del self._wanted[oldest], self.courses[oldest]
        return True
