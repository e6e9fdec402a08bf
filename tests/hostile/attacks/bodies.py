"""Jobs of 8 MiB, all handed out at once."""

from __future__ import annotations

import asyncio
import time

from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd

JOBS = 100
DATA = bytes(8 << 20)
PRODUCERS = 4
LOOK_S = 0.05


async def put_jobs(arena: Arena) -> None:
    """Put a queue of 800 MiB."""
    put = b"PUT large 0 %d\r\n%b" % (len(DATA), DATA)
    await asyncio.gather(*(arena.insist([put] * (JOBS // PRODUCERS)) for _ in range(PRODUCERS)))


async def large_jobs(arena: Arena) -> None:
    """Take large jobs: answers are encoded, stored and sent, 800 MiB each time if nothing limits that."""
    begun = time.monotonic()
    server = await asyncio.to_thread(arena.server)
    async with Crowd(server, JOBS, opening=b"GET large EXPIRE 600\r\n", again_s=0.1) as crowd:
        while crowd.bytes < JOBS * len(DATA) and time.monotonic() < begun + arena.seconds:
            await asyncio.sleep(LOOK_S)
    arrived = f"{crowd.bytes // len(DATA)} of {JOBS} jobs arrived within {time.monotonic() - begun:.1f} s"
    (arena.note if crowd.bytes >= JOBS * len(DATA) else arena.fail)(arrived)


ATTACKS = (
    Attack("large-jobs", "100 clients GET jobs of 8 MiB at once", large_jobs, prepare=put_jobs, seconds=25,
           bounds=Bounds(p50_ms=20, gap_s=2, growth_mb=400)),
    Attack("large-jobs-limit", "the same on nodes that may have 1,750 MiB of address space", large_jobs,
           prepare=put_jobs, seconds=25, address_mb=1750, restarts=True, bounds=Bounds(growth_mb=400)),
)
