"""Strangers at the peer port, where members greet each other."""

from __future__ import annotations

import asyncio
import time

from tests.hostile import network
from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd

STRANGERS = 300
AGAIN_S = 0.05
REJOIN_S = 20.0
HALVES = (b"", b"\x00", b"\x00\x00\x0f\xff" + bytes(200), b"\x16\x03\x01\x02\x00" + bytes(100))    # of a greeting


async def strangers(arena: Arena) -> None:
    """Connect to each node as often as possible with half a greeting, while a node is started again."""
    cluster = arena.cluster
    leader = await asyncio.to_thread(arena.leader)
    follower = next(name for name in cluster.names if name != leader)
    crowds = [Crowd(cluster.peer(name), STRANGERS, opening=lambda number: HALVES[number % len(HALVES)],
                    source=network.stranger(0), again_s=AGAIN_S) for name in cluster.names]
    await asyncio.gather(*(crowd.__aenter__() for crowd in crowds))
    try:
        await asyncio.sleep(arena.seconds / 4)
        await asyncio.to_thread(arena.kill, follower)
        await asyncio.to_thread(cluster.restart, follower, wait=False)
        begun = time.monotonic()
        await asyncio.to_thread(cluster.wait_until_level, REJOIN_S)
        arena.note(f"back after {time.monotonic() - begun:.1f} s")
        await asyncio.sleep(arena.seconds / 2)
    finally:
        await asyncio.gather(*(crowd.__aexit__(None, None, None) for crowd in crowds))
    arena.note(f"{sum(crowd.made for crowd in crowds):,} strangers")


ATTACKS = (
    Attack("peer-strangers", "hundreds of strangers at the peer ports while a node is started again", strangers,
           strangers=1, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
    Attack("peer-strangers-tls", "the same where nodes have certificates", strangers, strangers=1, tls=True,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
)
