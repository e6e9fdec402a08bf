"""How many jobs waited in each queue, over the last hour: sampled on every node, in pieces, and kept in memory only."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Sequence

from cluster import Cluster

EVERY_S = 30.0
SAMPLES = 120               # an hour
QUEUES_MAX = 10_000         # with 4 bytes for each sample: 5 MB
PIECE = 500                 # queues looked at before others have a turn
DEPTH_MAX = 2**32 - 1


class History:
    """The samples. Queues beyond QUEUES_MAX have none."""

    def __init__(self) -> None:
        self._depths: dict[str, array[int]] = {}

    def depths(self, queue: str) -> Sequence[int]:
        """Return the depths of this queue, the newest last; empty when there are none."""
        return self._depths.get(queue, ())

    async def run(self, cluster: Cluster) -> None:
        """Sample for ever."""
        while True:
            await self.sample(cluster)
            await asyncio.sleep(EVERY_S)

    async def sample(self, cluster: Cluster) -> None:
        """Add one sample of each queue."""
        kept: dict[str, array[int]] = {}
        for at, name in enumerate(cluster.machine.queue_names("")[:QUEUES_MAX]):
            counts = cluster.machine.counts(name)
            if counts is not None:
                depths = self._depths.get(name)
                if depths is None:
                    depths = array("I")
                depths.append(min(counts.ready + counts.delayed, DEPTH_MAX))
                del depths[:-SAMPLES]
                kept[name] = depths
            if at % PIECE == PIECE - 1:
                await asyncio.sleep(0)
        self._depths = kept
