"""Beanstalkd clients that wait or look without end; and searches among queues that come and go."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from tests.hostile.arena import PUTS_MAX, Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd

WAITING, ASKING, LOOKING = 1500, 12, 10
TUBES = 200
NAMED = 40_000
LEAVING, WATCHED, COME_S = 1000, 900, 10.0
REFUSED = 9_000_000
BOUNDS = Bounds(p50_ms=20, gap_s=1, growth_mb=300)


async def waits(arena: Arena) -> None:
    """Wait for a job in thousands at a follower and at the leader, some without waiting at all, while jobs come without
    end.
    """
    def watch(number: int) -> bytes:
        return b"watch tube%d\r\nignore default\r\n" % (number % TUBES) + b"reserve\r\n" * 100

    leader = await asyncio.to_thread(arena.leader)
    follower = next(name for name in arena.cluster.names if name != leader)
    async with AsyncExitStack() as stack:
        crowds = []
        for door in map(arena.cluster.beanstalkd, (leader, follower)):
            crowds += [await stack.enter_async_context(crowd) for crowd in (
                Crowd(door, WAITING, opening=watch, again_s=1.0),
                Crowd(door, ASKING, opening=b"watch none\r\n", repeated=b"reserve-with-timeout 0\r\n" * 50),
                Crowd(door, 1, repeated=b"".join(
                    b"use tube%d\r\nput 0 0 60 1\r\nx\r\n" % tube for tube in range(TUBES))))]
        await asyncio.sleep(arena.seconds)
        arena.expect(all(crowd.bytes for crowd in crowds), "some were told nothing")
        arena.note(f"{sum(crowd.bytes for crowd in crowds) >> 10} KiB told")


async def leaves(arena: Arena) -> None:
    """Wait for jobs of 900 tubes on 1,000 connections, at the leader and at a follower, and close all at once."""
    opening = b"".join(b"watch left%d\r\n" % number for number in range(WATCHED)) + b"reserve\r\n"
    leader = await asyncio.to_thread(arena.leader)
    follower = next(name for name in arena.cluster.names if name != leader)
    for door in map(arena.cluster.beanstalkd, (leader, follower)):
        async with Crowd(door, LEAVING, opening=opening):
            await asyncio.sleep(COME_S)
        await asyncio.sleep(arena.seconds / 2)


async def refused(arena: Arena) -> None:
    """Put jobs that are too large, at the leader and at a follower."""
    command = b"put 0 0 60 %d\r\n%b\r\n" % (REFUSED, bytes(REFUSED))
    leader = await asyncio.to_thread(arena.leader)
    follower = next(name for name in arena.cluster.names if name != leader)
    async with AsyncExitStack() as stack:
        for door in map(arena.cluster.beanstalkd, (leader, follower)):
            await stack.enter_async_context(Crowd(door, 2 * LOOKING, repeated=command))
        await asyncio.sleep(arena.seconds)


async def put_some(arena: Arena) -> None:
    """Put a job into each of 200 tubes."""
    await arena.put_lists([f"tube{number}" for number in range(TUBES)])


async def asks(arena: Arena) -> None:
    """Ask all that any client may ask, about jobs that exist and jobs that do not."""
    question = b"".join(
        b"use tube%d\r\npeek-ready\r\npeek-delayed\r\npeek-buried\r\nstats-tube tube%d\r\npeek %d\r\nstats-job %d\r\n"
        b"list-tube-used\r\nlist-tubes-watched\r\n" % (tube, tube, tube, tube) for tube in range(TUBES))
    async with AsyncExitStack() as stack:
        crowds = [await stack.enter_async_context(
            Crowd(arena.cluster.beanstalkd(name), LOOKING, repeated=question)) for name in arena.cluster.names]
        await asyncio.sleep(arena.seconds)
        arena.expect(all(crowd.bytes for crowd in crowds), "not all nodes have answered")
        arena.note(f"{sum(crowd.bytes for crowd in crowds) >> 20} MiB told")


async def fill_named(arena: Arena) -> None:
    """Put a job with a key into each of 40,000 queues."""
    for start in range(0, NAMED, PUTS_MAX):
        await arena.put_lists([f"live.{start + number}" for number in range(PUTS_MAX)],
                              lambda number: f" KEY k{start + number}")       # noqa: B023


async def prefixes(arena: Arena) -> None:
    """Search in all queues for keys with this prefix, and in none, while such queues come and go."""
    names = b"|".join(b"live.%d" % number for number in range(200))
    crowds: list[Crowd] = []
    await asyncio.gather(
        *(arena.besiege(2, repeated=one, crowds=crowds) for one in (
            b"FIND * KEY none*\r\n", b"FIND * KEY k1* COUNT 100\r\n", b"FIND nobody STATE READY\r\n" * 20,
            b"FIND * STATE DONE|DELAYED\r\n")),
        arena.besiege(1, repeated=b"".join(b"PUT live.%d 0 1\r\nx" % number for number in range(200))),
        arena.besiege(1, repeated=b"GET %b COUNT 100 EXPIRE 1 THEN DONE\r\n" % names))
    arena.note(f"{sum(crowd.good for crowd in crowds):,} searches")
    arena.expect(any(crowd.good for crowd in crowds), "nobody was answered")


ATTACKS = (
    Attack("beanstalkd-waits", "3,000 clients of beanstalkd wait for jobs of 200 tubes, others do not wait", waits,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=400)),
    Attack("beanstalkd-leaves", "1,000 clients that wait for 900 tubes each leave at once", leaves,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=600)),
    Attack("beanstalkd-refused", "40 clients of beanstalkd put jobs that are too large, without end", refused,
           bounds=BOUNDS),
    Attack("beanstalkd-asks", "clients of beanstalkd look at jobs and tubes without end, at all nodes", asks,
           prepare=put_some, bounds=BOUNDS),
    Attack("find-prefixes", "FIND in 40,000 queues by the beginnings of keys, while queues come and go", prefixes,
           prepare=fill_named, bounds=BOUNDS),
)
