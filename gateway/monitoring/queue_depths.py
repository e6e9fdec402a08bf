"""Job counts per queue: the fullest queues by name, the rest as a sum, so that the number of time series is bounded.

Counters of past events are given for named queues only: membership of the rest changes from scrape to scrape, so its
sum would rise and fall.
"""

from __future__ import annotations

import asyncio
import heapq
from itertools import islice

from msgspec import Struct

from sockpqd.cluster.api import Cluster
from sockpqd.core import JobTotals, QueueHistory

QUEUES_NAMED_MAX = 100          # those with the most waiting jobs
NAMES_PER_PIECE = 1000          # queues counted before clients get their turn: half a millisecond
HISTORIES_PER_PIECE = 20        # likewise, where the oldest of a few hundred jobs is searched for in each
OTHERS = ""                     # no queue has this name


class Depth(Struct, frozen=True):
    """Job counts of one queue, or of OTHERS; dead jobs count for the queue in which they died."""

    queue: str
    waiting: int        # could be handed out now, but for LIMIT, ITEMLIMIT and PAUSE
    delayed: int
    running: int
    dead: int
    buried: int
    history: QueueHistory | None = None      # None for OTHERS


class Depths(Struct, frozen=True):
    """`totals` of all queues, and `queues`: the fullest ones and OTHERS, which add up to the totals."""

    totals: JobTotals
    queues: tuple[Depth, ...]


async def depths(cluster: Cluster, named: tuple[str, ...]) -> Depths:
    """Count the jobs of all queues in slices; waiting and running jobs are as of one moment, at the end.

    Only queues whose names start with a prefix in `named` are named. A dead job in a dead-letter queue is also counted
    there as waiting.
    """
    machine = cluster.machine
    fullest: list[tuple[int, str]] = []
    delayed = dead = buried = 0
    names = iter(machine.queue_names(""))
    while piece := list(islice(names, NAMES_PER_PIECE)):
        found = []
        for name in piece:
            counts = machine.counts(name)
            if counts is not None:
                delayed, dead, buried = delayed + counts.delayed, dead + counts.dead, buried + counts.buried
                if name.startswith(named):
                    found.append((counts.ready, name))
        fullest = heapq.nlargest(QUEUES_NAMED_MAX, fullest + found)
        await asyncio.sleep(0)
    histories: dict[str, QueueHistory] = {}
    for at, (_, name) in enumerate(fullest):
        histories[name] = machine.history(name, cluster.time_ms)
        if at % HISTORIES_PER_PIECE == 0:
            await asyncio.sleep(0)
    totals = machine.total(None)
    shown = []
    for _, name in fullest:
        counts = machine.counts(name)
        if counts is not None:          # the queue may be gone by now
            shown.append(Depth(
                name, counts.ready, counts.delayed, counts.running, counts.dead, counts.buried, histories[name],
            ))
    delayed = max(0, delayed - sum(depth.delayed for depth in shown))
    others = Depth(
        OTHERS, delayed=delayed,
        waiting=max(0, totals.jobs - delayed - sum(depth.waiting + depth.delayed for depth in shown)),
        running=totals.running - sum(depth.running for depth in shown),
        dead=max(0, dead - sum(depth.dead for depth in shown)),
        buried=max(0, buried - sum(depth.buried for depth in shown)),
    )
    return Depths(totals, (*shown, others))
