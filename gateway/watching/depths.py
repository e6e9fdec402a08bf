"""How many jobs are in the queues: the fullest by name, the rest as a sum, so that the number of series is bounded."""

from __future__ import annotations

import asyncio
import heapq
from itertools import islice

from msgspec import Struct

from core import Machine, Totals

QUEUES_NAMED_MAX = 100          # with the most waiting jobs
NAMES_PER_PIECE = 1000          # that are looked at before clients get their turn: half a millisecond
OTHERS = ""                     # no queue has this name


class Depth(Struct, frozen=True):
    """Jobs of one queue, or of OTHERS."""

    queue: str
    waiting: int
    running: int


class Depths(Struct, frozen=True):
    """`totals`: of all queues; `queues`: the fullest, and OTHERS, with the same sums."""

    totals: Totals
    queues: tuple[Depth, ...]


async def depths(machine: Machine, named: tuple[str, ...]) -> Depths:
    """Look at all queues, in pieces; the figures are those of one moment, at the end.

    Only queues whose names begin as one of `named` get a name.
    """
    fullest: list[tuple[int, str]] = []
    names = iter(machine.queue_names(""))
    while piece := list(islice(names, NAMES_PER_PIECE)):
        found = [(machine.ready(name), name) for name in piece if name.startswith(named)]
        fullest = heapq.nlargest(QUEUES_NAMED_MAX, fullest + found)
        await asyncio.sleep(0)
    totals = machine.total(None)
    shown = []
    for _, name in fullest:
        queue = machine.total(name)
        if queue.queues:            # it may have ended meanwhile
            shown.append(Depth(name, queue.jobs, queue.running))
    waiting = totals.jobs - sum(depth.waiting for depth in shown)
    running = totals.running - sum(depth.running for depth in shown)
    return Depths(totals, (*shown, Depth(OTHERS, waiting, running)))
