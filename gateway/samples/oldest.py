"""Finds the waiting time of the oldest READY job of all queues, by checking some of the queues each second."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator
from itertools import islice

from sockpqd.cluster import Cluster
from sockpqd.core import DEAD_SUFFIX

QUEUES_PER_LOOK = 300       # of 10,000 queues each is looked at twice a minute
PORTION = 20                # queues before others have a turn: in each a few hundred jobs may be searched
CANDIDATES = 20             # the oldest of the queues looked at, which are looked at each time


class Oldest:
    """The queues whose oldest jobs have waited longest, `longest` first: (milliseconds, queue).

    Dead jobs are not waiting to be taken, so dead-letter queues are left out.
    """

    def __init__(self) -> None:
        self.longest: list[tuple[int, str]] = []
        self._names: Iterator[str] = iter(())
        # The dead-letter queues that settings named in the present round through all queues, and in the one before it.
        self._dead: set[str] = set()
        self._dead_before: set[str] = set()

    async def look(self, cluster: Cluster) -> None:
        """Check the candidates and the next queues."""
        machine = cluster.machine
        names = list(islice(self._names, QUEUES_PER_LOOK))
        if len(names) < QUEUES_PER_LOOK:
            self._names = machine.all_queue_names()
            self._dead_before, self._dead = self._dead, set()
            names += islice(self._names, QUEUES_PER_LOOK - len(names))
        found: dict[str, int] = {}
        for at, name in enumerate(dict.fromkeys([*(name for _, name in self.longest), *names]), start=1):
            settings = machine.queue_settings(name)
            if settings is not None and settings.dead is not None:
                self._dead.add(settings.dead)
            waits_ms = machine.history(name, cluster.time_ms).oldest_ms
            if waits_ms and not name.endswith(DEAD_SUFFIX):
                found[name] = waits_ms
            if at % PORTION == 0:
                await asyncio.sleep(0)
        dead = self._dead | self._dead_before
        self.longest = heapq.nlargest(
            CANDIDATES, ((waits_ms, name) for name, waits_ms in found.items() if name not in dead))
