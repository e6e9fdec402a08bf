"""How many jobs are in the queues: the fullest by name, the rest as a sum, so that the number of series is bounded.

What has happened in the queues is told of those with a name only: who the rest are changes from one look to the next,
so their sum would rise and fall.
"""

from __future__ import annotations

import asyncio
import heapq
from itertools import islice

from msgspec import Struct

from cluster.api import Cluster
from core import History, Totals

QUEUES_NAMED_MAX = 100          # with the most waiting jobs
NAMES_PER_PIECE = 1000          # that are looked at before clients get their turn: half a millisecond
HISTORIES_PER_PIECE = 20        # likewise, where the oldest of a few hundred jobs each is looked for
OTHERS = ""                     # no queue has this name


class Depth(Struct, frozen=True):
    """Jobs of one queue, or of OTHERS; the dead ones are those that come from it."""

    queue: str
    waiting: int        # that could be given now, but for LIMIT, ITEMLIMIT and PAUSE
    delayed: int
    running: int
    dead: int
    history: History | None = None      # not of OTHERS


class Depths(Struct, frozen=True):
    """`totals`: of all queues; `queues`: the fullest, and OTHERS, with the same sums."""

    totals: Totals
    queues: tuple[Depth, ...]


async def depths(cluster: Cluster, named: tuple[str, ...]) -> Depths:
    """Look at all queues, in pieces; waiting and running jobs are those of one moment, at the end.

    Only queues whose names begin as one of `named` get a name. A dead job waits in its dead queue, and is counted there
    as well.
    """
    machine = cluster.machine
    fullest: list[tuple[int, str]] = []
    delayed = dead = 0
    names = iter(machine.queue_names(""))
    while piece := list(islice(names, NAMES_PER_PIECE)):
        found = []
        for name in piece:
            counts = machine.counts(name)
            if counts is not None:
                delayed, dead = delayed + counts.delayed, dead + counts.dead
                if name.startswith(named):
                    found.append((counts.ready, name))
        fullest = heapq.nlargest(QUEUES_NAMED_MAX, fullest + found)
        await asyncio.sleep(0)
    histories: dict[str, History] = {}
    for at, (_, name) in enumerate(fullest):
        histories[name] = machine.history(name, cluster.time_ms)
        if at % HISTORIES_PER_PIECE == 0:
            await asyncio.sleep(0)
    totals = machine.total(None)
    shown = []
    for _, name in fullest:
        counts = machine.counts(name)
        if counts is not None:          # it may have ended meanwhile
            shown.append(Depth(name, counts.ready, counts.delayed, counts.running, counts.dead, histories[name]))
    delayed = max(0, delayed - sum(depth.delayed for depth in shown))
    others = Depth(
        OTHERS, delayed=delayed,
        waiting=max(0, totals.jobs - delayed - sum(depth.waiting + depth.delayed for depth in shown)),
        running=totals.running - sum(depth.running for depth in shown),
        dead=max(0, dead - sum(depth.dead for depth in shown)),
    )
    return Depths(totals, (*shown, others))
