"""Beanstalkd clients at a follower: what it asks the leader for them must neither fill nor end the link."""

from __future__ import annotations

import asyncio

from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd

TUBES = 190_000
NAME = "t" * 190
LARGE = 8 << 20


def follower(arena: Arena) -> str:
    """Return where beanstalkd clients reach a node that does not lead."""
    leader = arena.leader()
    return arena.cluster.beanstalkd(next(name for name in arena.cluster.names if name != leader))


async def put_tubes(arena: Arena) -> None:
    """Create very many tubes with long names: their list has 38 MB."""
    await arena.put_lists([f"{NAME}{number}" for number in range(TUBES)])


async def tubes(arena: Arena) -> None:
    """List all tubes through a follower, again and again, from four clients."""
    server = await asyncio.to_thread(follower, arena)
    async with Crowd(server, 4, opening=b"list-tubes\r\n" * 1000, again_s=0.5) as crowd:
        await asyncio.sleep(arena.seconds)
    arena.note(f"{crowd.bytes >> 20} MiB told")


async def put_large(arena: Arena) -> None:
    """Put one large job, for clients that peek at it."""
    await arena.insist([b"PUT large 0 %d\r\n" % LARGE + bytes(LARGE)])


async def bodies(arena: Arena) -> None:
    """Peek at it from very many clients that do not read."""
    server = await asyncio.to_thread(follower, arena)
    async with (
        Crowd(server, 30, opening=b"use large\r\n", repeated=b"peek-ready\r\n", reads=False, again_s=0.5),
        Crowd(server, 30, opening=b"use large\r\n", repeated=b"peek-ready\r\n", again_s=0.5) as crowd,
    ):
        await asyncio.sleep(arena.seconds)
    arena.note(f"{crowd.bytes >> 20} MiB told")


ATTACKS = (
    Attack("tubes-of-others", "clients of beanstalkd at a follower ask for the list of 190,000 tubes", tubes,
           prepare=put_tubes, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=400)),
    Attack("bodies-of-others", "60 clients of beanstalkd at a follower ask for a job of 8 MiB, again and again", bodies,
           prepare=put_large, bounds=Bounds(gap_s=2, growth_mb=700)),
)
