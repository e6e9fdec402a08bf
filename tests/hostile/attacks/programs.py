"""The program sockpq-beanstalkd between hostile clients and the cluster."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.hostile.arena import Arena, say
from tests.hostile.attack import MIB, Attack, Bounds
from tests.hostile.crowd import Crowd

HELLO_S = 2
MEMORY_MIB = 64
GROWTH_MIB = 192            # what it holds for clients, what is on its way, and what Python keeps
LARGE = 4 * MIB
READERS = 400
SILENT = 200
HALF = b"put 0 0 6"
START_S = 20.0
SAY_S = 5.0
LOOK_S = 0.05
OWN_S = 2.0                 # in which the program's other clients are answered


class Program:
    """A running program. `door`: the address that its clients connect to."""

    def __init__(self, process: subprocess.Popen[bytes], door: str) -> None:
        self.door = door
        self.rss_mib = 0                # the most that was seen
        self.slowest_s = 0.0            # of a client that puts a job
        self._process = process
        self.began_mib = self._rss()

    def _rss(self) -> int:
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * 4096 // MIB

    async def watch(self) -> None:
        """Measure the program until cancelled, as one of its clients. Raises OSError."""
        while True:
            self.rss_mib = max(self.rss_mib, self._rss())
            begun = time.monotonic()
            answer = await say(self.door, b"put 0 3600 60 1\r\nx\r\n", SAY_S)
            if not answer.startswith(b"INSERTED"):
                raise OSError(f"a client of the program was answered {answer!r}")
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
            await asyncio.sleep(LOOK_S)


@asynccontextmanager
async def program(arena: Arena) -> AsyncIterator[Program]:
    """Run the program before the arena's cluster; its behaviour is judged afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        door = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen(
        [sys.executable, "-m", "sockpqd.beanstalk_proxy.main", "--listen", door,
         "--servers", ",".join(arena.cluster.servers), "--job-bytes-max", str(2 * LARGE), "--hello-timeout",
         str(HELLO_S), "--memory-max", str(MEMORY_MIB)], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_S
        while not await say(door, b"list-tube-used\r\n", SAY_S):
            if time.monotonic() > until:
                raise OSError("the program does not listen")
            await asyncio.sleep(LOOK_S)
        found = Program(process, door)
        watching = asyncio.create_task(found.watch())
        try:
            yield found
        finally:
            watching.cancel()
            (end,) = await asyncio.gather(watching, return_exceptions=True)
        arena.expect(isinstance(end, asyncio.CancelledError), f"the program's other client: {end!r}")
        arena.expect(process.poll() is None, "the program has ended")
        arena.expect(found.rss_mib < found.began_mib + GROWTH_MIB,
                     f"the program grew from {found.began_mib} to {found.rss_mib} MiB")
        arena.expect(found.slowest_s < OWN_S, f"a client of the program waited for {found.slowest_s:.1f} s")
        arena.note(f"{found.rss_mib} MiB, {found.slowest_s * 1000:.0f} ms")
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


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
