"""The program sockpq-beanstalkd between hostile clients and the cluster."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from tests.hostile.arena import Arena, say
from tests.hostile.attack import MIB, Attack, Bounds
from tests.hostile.crowd import Crowd
from tests.hostile.program import Program, free_door, running

HELLO_S = 2
MEMORY_MIB = 64
LARGE = 4 * MIB
READERS = 400
SILENT = 200
HALF = b"put 0 0 6"
SAY_S = 5.0


async def _put(door: str) -> bytes:
    """Be an ordinary client; returns what is wrong with the answer."""
    answer = await say(door, b"put 0 3600 60 1\r\nx\r\n", SAY_S)
    return b"" if answer.startswith(b"INSERTED") else answer or b"nothing"


def program(arena: Arena) -> AbstractAsyncContextManager[Program]:
    """The program before the arena's cluster."""
    door = free_door()
    return running(
        arena, door, [
            sys.executable, "-m", "sockpqd.beanstalk_proxy.main", "--listen", door,
            "--servers", ",".join(arena.cluster.servers), "--job-bytes-max", str(2 * LARGE), "--hello-timeout",
            str(HELLO_S), "--memory-max", str(MEMORY_MIB)], _put)


async def peeks(arena: Arena) -> None:
    """Ask for one large job, and read nothing."""
    async with program(arena) as door, AsyncExitStack() as stack:
        answer = await say(door.door, b"put 0 0 600 %d\r\n" % LARGE + bytes(LARGE) + b"\r\n", SAY_S)
        number = answer.split()[1]
        await stack.enter_async_context(
            Crowd(door.door, READERS, opening=b"peek %b\r\n" % number, reads=False))
        await asyncio.sleep(arena.seconds)


async def silent(arena: Arena) -> None:
    """Open connections that send nothing, or half of a command."""
    async with program(arena) as door, AsyncExitStack() as stack:
        crowds = [await stack.enter_async_context(Crowd(door.door, SILENT, opening=opening)) for opening in (b"", HALF)]
        await asyncio.sleep(HELLO_S + 4.0)
        for crowd in crowds:
            arena.expect(crowd.cut >= SILENT, f"{crowd.cut} of {SILENT} silent connections were cut")


ATTACKS = (
    Attack("program-peeks", "400 clients of sockpq-beanstalkd ask for one job of 4 MiB, and read nothing", peeks,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=200)),
    Attack("program-silent", "connections to sockpq-beanstalkd that say nothing, or half of something", silent,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
)
