"""Searches among very many jobs."""

from __future__ import annotations

import asyncio

from tests.hostile.arena import PUTS_MAX, Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd

SEARCHED = 300_000
SEARCHES = (
    b"FIND * KEY none*\r\n", b"FIND * HEAD task other COUNT 1000\r\n", b"FIND searched COUNT 1000\r\n",
    b"FIND nothing\r\n" * 20, b"FIND * STATE DONE|RUNNING\r\n" * 5, b"FIND * FROM R0,0,0:searched HEAD task %\r\n",
)
SEARCHERS = 2             # of each kind
BOUNDS = Bounds(p50_ms=20, gap_s=1, growth_mb=300)


async def fill_searched(arena: Arena) -> None:
    """Put 300,000 jobs, all of them with a header."""
    lines = b"PUTS %d\r\n" % PUTS_MAX + b"searched 0 20 HEAD 11\r\ntask: send\n123456789" * PUTS_MAX
    await arena.insist([lines] * (SEARCHED // PUTS_MAX))


async def searches(arena: Arena) -> None:
    """Search for what no job has, and for everything, at all nodes."""
    crowds: list[Crowd] = []
    leader = await asyncio.to_thread(arena.leader)
    followers = [Crowd(arena.cluster.server(name), 1, repeated=SEARCHES[0])
                 for name in arena.cluster.names if name != leader]
    await asyncio.gather(*(crowd.__aenter__() for crowd in followers))
    try:
        await asyncio.gather(*(arena.besiege(SEARCHERS, repeated=one, crowds=crowds) for one in SEARCHES))
    finally:
        await asyncio.gather(*(crowd.__aexit__(None, None, None) for crowd in followers))
    arena.note(f"{sum(crowd.good for crowd in crowds):,} searches at the leader")
    arena.expect(any(crowd.good for crowd in crowds), "nobody was answered")


ATTACKS = (
    Attack("searches", "FIND for what none of 300,000 jobs has, and for all of them, without end at all nodes",
           searches, prepare=fill_searched, bounds=BOUNDS),
)
