"""The queues' figures of the last hour: sampled on every node, in portions, and kept in memory only.

Of each queue: how many jobs wait, how long the oldest has been waiting, and how many were put and done since the last
sample. With QUEUES_MAX queues that is 20 MB after an hour.
"""

from __future__ import annotations

import asyncio
from array import array

from sockpqd.cluster import Cluster

EVERY_S = 30.0
SAMPLES = 120               # an hour
QUEUES_MAX = 10_000
PORTION = 20                # queues looked at before others have a turn: in each the oldest job is searched for
MOST = 2**32 - 1


class Samples:
    """The samples of one queue, the newest last, the same number of each figure."""

    __slots__ = ("_done", "_put", "done", "oldest_s", "put", "waiting")

    def __init__(self, put: int, done: int) -> None:
        """`put` and `done`: ever, before the first sample."""
        self.waiting = array("I")
        self.oldest_s = array("I")
        self.put = array("I")           # in the time of the sample
        self.done = array("I")
        self._put = put                 # ever
        self._done = done

    def add(self, waiting: int, oldest_ms: int, put: int, done: int) -> None:
        """Add a sample. `put` and `done` are totals since the queue was last created."""
        new_put, new_done = (put - self._put, done - self._done) if put >= self._put else (put, done)
        self._put, self._done = put, done
        for series, value in ((self.waiting, waiting), (self.oldest_s, oldest_ms // 1000), (self.put, new_put),
                              (self.done, max(0, new_done))):
            series.append(min(value, MOST))
            del series[:-SAMPLES]


class FigureHistory:
    """The samples of all queues, up to QUEUES_MAX of them."""

    def __init__(self) -> None:
        self._samples: dict[str, Samples] = {}
        self._begun = False

    def of(self, queue: str) -> Samples | None:
        """Return the samples of this queue; None when there are none yet."""
        return self._samples.get(queue)

    async def run(self, cluster: Cluster) -> None:
        while True:
            await self.sample(cluster)
            await asyncio.sleep(EVERY_S)

    async def sample(self, cluster: Cluster) -> None:
        """Add one sample of each queue."""
        machine = cluster.machine
        kept: dict[str, Samples] = {}
        for at, name in enumerate(machine.queue_names("")[:QUEUES_MAX]):
            counts = machine.counts(name)
            if counts is not None:
                past = machine.history(name, cluster.time_ms)
                samples = self._samples.get(name)
                if samples is None:
                    samples = Samples(0, 0) if self._begun else Samples(past.put, past.done)
                samples.add(counts.ready + counts.delayed, past.oldest_ms, past.put, past.done)
                kept[name] = samples
            if at % PORTION == PORTION - 1:
                await asyncio.sleep(0)
        self._samples, self._begun = kept, True
