"""Refused lines, and empty ones: less work than a command, but each has to be read."""

from __future__ import annotations

import asyncio

from bench.load_generator.wire import LIST, ask, wires_to
from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds

LONG_WORD = b"x" * 60_000
LINES = (
    b"HELP qeue delet\r\nGET q exp 5\r\nQUEUE CREATE q EXPIREE 5\r\nPUTT a\r\n" * 100, b"\r\n" * 30_000,
    b"HELP %b\r\n" % LONG_WORD, b"GET q EXPIR%b 5\r\n" % LONG_WORD, b"QUEUE CREATE q %b 5\r\n" % (b"WEIGHTT " * 7000),
)
CLIENTS = 15                # for each of these
PUTTERS, NUMBERS, JOBS = 8, 64, 4096
BOUNDS = Bounds(p50_ms=20, gap_s=1, growth_mb=300)


async def wrong_lines(arena: Arena) -> None:
    """Send each kind without end."""
    await asyncio.gather(*(arena.besiege(CLIENTS, repeated=lines) for lines in LINES))


async def wrong_jobs(arena: Arena) -> None:
    """Send PUTS with jobs that are malformed, all but the last, with answers that a session has to remember."""
    jobs = b"q 0 0 DELAY soon\r\n" * (JOBS - 1) + b"q 0 0 TTL 1\r\n"
    server = await asyncio.to_thread(arena.server)
    loop = asyncio.get_running_loop()
    until, done = loop.time() + arena.seconds, 0
    async with wires_to(server, PUTTERS) as wires:

        async def put(number: int) -> None:
            nonlocal done
            await ask(wires[number], b"SESSION\r\n")
            for request in range(1, NUMBERS):
                if loop.time() < until:
                    done += (await ask(wires[number], b"REQ %d PUTS %d\r\n%b" % (request, JOBS, jobs), LIST)).good
        await asyncio.gather(*map(put, range(PUTTERS)))
    arena.note(f"{done} lists of {JOBS:,} jobs")
    arena.expect(done > 0, "nobody was answered")


ATTACKS = (
    Attack("wrong-lines", "lines that are refused with a reason, and empty ones, without end", wrong_lines,
           bounds=BOUNDS),
    Attack("wrong-jobs", "PUTS of 4,096 malformed jobs without end, in sessions", wrong_jobs, bounds=BOUNDS),
)
