"""The figures of the cluster's jobs, which are the same on all nodes, and those of this node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from math import nan

from sockpqd.cluster import Histogram
from sockpqd.gateway.monitoring.loop_lag import LoopLag
from sockpqd.gateway.samples.course import LATENCY_FIELDS, Field
from sockpqd.gateway.samples.flows import QueueRates
from sockpqd.gateway.samples.quantiles import quantile
from sockpqd.gateway.server.hub import Hub

# The fields of a queue, and the numbers of DELAYED, BURIED and dead jobs. Waiting jobs are READY and not dead.
CLUSTER_FIELDS = (
    Field("put"), Field("taken"), Field("done"), Field("failed"), Field("died"), Field("waiting"), Field("delayed"),
    Field("running"), Field("dead"), Field("buried"), Field("oldest", greatest=True), Field("queues"),
    *LATENCY_FIELDS,
)
# Percent of one processor; bytes; entries; milliseconds. The last two are of the commits of this second, on the leader.
NODE_FIELDS = (
    Field("cpu"), Field("memory"), Field("disk_free"), Field("journal"), Field("lag"), Field("connections"),
    Field("blocked"), Field("loop_lag", greatest=True), Field("commit_p50"), Field("commit_p95"),
)
NAMES_PER_PORTION = 500


async def dead_jobs(hub: Hub) -> int:
    """Count the dead jobs of all queues."""
    machine, dead = hub.cluster.machine, 0
    for at, name in enumerate(machine.names_with_dead(), start=1):
        counts = machine.counts(name)
        dead += 0 if counts is None else counts.dead
        if at % NAMES_PER_PORTION == 0:
            await asyncio.sleep(0)
    return dead


def cluster_row(
    hub: Hub, rates: QueueRates | None, dead: int, oldest_ms: int, latencies: Iterable[float],
) -> list[float]:
    """Return the row of CLUSTER_FIELDS now. `rates`: None if they are not known."""
    machine = hub.cluster.machine
    sums, totals = machine.sums(), machine.total(None)
    flow = [nan] * 5 if rates is None else [rates.put, rates.taken, rates.done, rates.failed, rates.died]
    return [
        *flow, max(0, sums.ready - dead), sums.delayed, sums.running, dead, sums.buried, oldest_ms / 1000,
        totals.queues, *latencies,
    ]


class NodeFigures:
    """The figures of this node, second by second: some are differences from the previous second."""

    def __init__(self, hub: Hub, loop_lag: LoopLag) -> None:
        self._hub = hub
        self._loop_lag = Difference(loop_lag.seconds)
        self._commits: Difference | None = None
        self._cpu_s, self._at = time.process_time(), time.monotonic()

    def row(self) -> list[float]:
        """Return the row of NODE_FIELDS since the last call."""
        hub = self._hub
        figures = hub.cluster.figures()
        if self._commits is None:
            self._commits = Difference(figures.commit_latency)
        cpu_s, at = time.process_time(), time.monotonic()
        cpu = 100 * (cpu_s - self._cpu_s) / max(at - self._at, 0.001)
        self._cpu_s, self._at = cpu_s, at
        lag_s, = self._loop_lag.quantiles(1.0)
        p50_s, p95_s = self._commits.quantiles(0.5, 0.95)
        return [
            cpu, figures.memory_used_bytes, figures.disk_free_bytes, figures.journal_bytes, figures.lag,
            len(hub.connections), len(hub.job_waiters) + len(hub.end_waiters), lag_s * 1000, p50_s * 1000, p95_s * 1000,
        ]


class Difference:
    """The observations of a histogram since the last call."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._counts = list(histogram.counts)

    def quantiles(self, *shares: float) -> list[float]:
        """Return the quantiles for these shares, as precise as the bounds allow; NaN if nothing was counted."""
        counts = list(self._histogram.counts)
        new = [after - before for before, after in zip(self._counts, counts, strict=True)]
        self._counts = counts
        return [quantile(self._histogram.bounds, new, share) for share in shares]
