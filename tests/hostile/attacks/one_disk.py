"""The disk of one node of three is full, or slow: the other two are a majority, so clients hardly notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.chaos.machines import disks
from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd

SLOW_US = 400_000           # that each sync takes longer
WRITERS = 8
BEFORE_S = 1.0
WORK = b"PUT load 0 1\r\nxGET load EXPIRE 1 THEN DONE\r\n"

Trouble = Callable[[str], object]


async def follower_full(arena: Arena) -> None:
    """Fill a follower's disk: it refuses entries until there is room again, and catches up."""
    await _beside_work(arena, await _follower(arena), *_full(arena))


async def leader_full(arena: Arena) -> None:
    """Fill the leader's disk: it hands over to a node with room, and catches up when it has some again."""
    await _beside_work(arena, await asyncio.to_thread(arena.leader), *_full(arena))


async def follower_slow(arena: Arena) -> None:
    """Slow a follower's disk: the leader and the other follower are a majority."""
    await _beside_work(arena, await _follower(arena), *_slow(arena))


async def leader_slow(arena: Arena) -> None:
    """Slow the leader's disk: it hands over to a node with a quicker disk, once."""
    await _beside_work(arena, await asyncio.to_thread(arena.leader), *_slow(arena))


def _full(arena: Arena) -> tuple[Trouble, Trouble]:
    """Return functions that fill the disk of a node and make room again."""
    return (lambda name: disks.fill(arena.cluster.data_dir(name)),
            lambda name: disks.empty(arena.cluster.data_dir(name)))


def _slow(arena: Arena) -> tuple[Trouble, Trouble]:
    """Return functions that make the disk of a node slow and end that."""
    def begin(name: str) -> None:
        arena.cluster.disk(name)["delay_us"] = SLOW_US
    return begin, lambda name: arena.cluster.disk(name).heal()


async def _follower(arena: Arena) -> str:
    leader = await asyncio.to_thread(arena.leader)
    return next(name for name in arena.cluster.names if name != leader)


async def _beside_work(arena: Arena, name: str, begin: Trouble, end: Trouble) -> None:
    """Let the node have the fault while clients put and take jobs without end."""
    crowds: list[Crowd] = []
    load = asyncio.create_task(arena.besiege(WRITERS, repeated=WORK, crowds=crowds))
    await asyncio.sleep(BEFORE_S)
    try:
        await asyncio.to_thread(begin, name)
        await load
    finally:
        load.cancel()
        await asyncio.to_thread(end, name)
    arena.note(f"{sum(crowd.good for crowd in crowds):,} commands of others")


BOUNDS = Bounds(p50_ms=20, gap_s=2, back_s=15, growth_mb=300)

ATTACKS = (
    Attack("follower-disk-full", "the disk of a follower is full, beside work", follower_full, seconds=8, disk_mb=600,
           excused=("PUT: 503 Busy",), bounds=BOUNDS),
    Attack("leader-disk-full", "the disk of the leader is full, beside work", leader_full, seconds=8, disk_mb=600,
           excused=("PUT: 503 Busy", "GET: 503 Busy", "DONE: 503 Busy"),
           bounds=BOUNDS),
    Attack("follower-disk-slow", "each sync of a follower takes 0.4 s longer, beside work", follower_slow, seconds=8,
           slow_disks=True, bounds=BOUNDS),
    Attack("leader-disk-slow", "each sync of the leader takes 0.4 s longer, beside work", leader_slow, seconds=8,
           slow_disks=True, bounds=BOUNDS),
)
