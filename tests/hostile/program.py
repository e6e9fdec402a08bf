"""A program between hostile clients and the cluster: it is measured, and its own client must not suffer."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from devcluster.ports import HOST, free_ports
from tests.hostile.arena import Arena

MIB = 1 << 20
GROWTH_MIB = 192            # what it holds for clients, what is on its way, and what Python keeps
START_S = 20.0
LOOK_S = 0.05
OWN_S = 2.0                 # in which the program's other clients are answered

Served = Callable[[str], Awaitable[bytes]]      # one client's request; returns what is wrong with its answer


class Program:
    """One that runs. `door`: where its clients connect."""

    def __init__(self, process: subprocess.Popen[bytes], door: str, served: Served) -> None:
        self.door = door
        self.rss_mib = 0                # the most that was seen
        self.slowest_s = 0.0            # of its ordinary client
        self._process = process
        self._served = served
        self.began_mib = self._rss()

    def _rss(self) -> int:
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * 4096 // MIB

    def descriptors(self) -> int:
        """Return how many files and sockets it has open."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    async def watch(self) -> None:
        """Measure it until cancelled, and be one of its clients. Raises OSError."""
        while True:
            self.rss_mib = max(self.rss_mib, self._rss())
            begun = time.monotonic()
            wrong = await self._served(self.door)
            if wrong:
                raise OSError(f"a client of the program was answered {wrong!r}")
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
            await asyncio.sleep(LOOK_S)


def free_door() -> str:
    """Return a free address of loopback."""
    return f"{HOST}:{free_ports(1)[0]}"


@asynccontextmanager
async def running(
    arena: Arena, door: str, command: Sequence[str], served: Served, environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Program]:
    """Run the program, which listens at `door`; afterwards what was seen of it is judged."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    try:
        until = time.monotonic() + START_S
        while await served(door):
            if time.monotonic() > until:
                raise OSError("the program does not serve")
            await asyncio.sleep(LOOK_S)
        found = Program(process, door, served)
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
