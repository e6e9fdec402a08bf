"""What is kept of jobs beside their data: keys of DEDUP, the texts of errors, and records of those that have ended."""

from __future__ import annotations

import asyncio
import time

from bench.load_generator.wire import LIST, ask, open_wires
from tests.hostile.arena import Arena
from tests.hostile.attack import MIB, Attack, Bounds

DEDUP_KEY = "k" * 240
DEDUP_QUEUES, KEYS_AT_ONCE = 300, 200
TEXT = b"e" * 16_384
FAILING = 40
RECORDS, DONE_AT_ONCE = 100_000, 1000
LIMIT = {"limits": {"memory_mark": 700 * MIB}}
BOUNDS = Bounds(p50_ms=20, gap_s=1, growth_mb=300)


async def dedup(arena: Arena) -> None:
    """As many and as long keys as there may be, in 300 queues, each with settings."""
    server = await asyncio.to_thread(arena.server)
    await arena.tell([f"QUEUE CREATE dedup{number} MAXDATA 1000\r\n" for number in range(DEDUP_QUEUES)])
    until, number = time.monotonic() + arena.seconds, 0

    async def put(queue: int) -> None:
        nonlocal number
        (wire,) = await open_wires(server, 1)
        try:
            while time.monotonic() < until:
                lines = []
                for _ in range(KEYS_AT_ONCE):
                    number += 1
                    lines.append(f"dedup{(queue + number) % DEDUP_QUEUES} 0 0 DEDUP {number}{DEDUP_KEY} 86400\r\n")
                await ask(wire, f"PUTS {len(lines)}\r\n{''.join(lines)}".encode(), LIST)
        finally:
            wire.close()
    await asyncio.gather(*(put(queue) for queue in range(8)))
    arena.note(f"{number:,} keys")


async def errors(arena: Arena) -> None:
    """The largest texts, with jobs of many queues: memory ends at the mark, and the jobs go on."""
    server = await asyncio.to_thread(arena.server)
    until, texts = time.monotonic() + arena.seconds, 0

    async def fail(queue: int) -> None:
        nonlocal texts
        (wire,) = await open_wires(server, 1)
        try:
            while time.monotonic() < until:
                await ask(wire, b"PUT failing%d 0 0\r\n" % queue)
                taken = (await ask(wire, b"GET failing%d EXPIRE 60\r\n" % queue)).line.split()
                if len(taken) > 3:
                    answer = await ask(wire, b"LATER %b DELAY 3600 ERROR %d\r\n%b" % (taken[3], len(TEXT), TEXT))
                    texts += answer.good
        finally:
            wire.close()
    await asyncio.gather(*(fail(queue) for queue in range(FAILING)))
    arena.note(f"{texts:,} texts")
    arena.expect(texts > 0, "no text was taken")


async def put_records(arena: Arena) -> None:
    """100,000 records of one queue."""
    await arena.tell([f"QUEUE CREATE ended RETAIN 3600 RETAINMAX {2 * RECORDS}\r\n"])
    puts = b"PUTS %d\r\n" % DONE_AT_ONCE + b"ended 0 0 NUMBER\r\n" * DONE_AT_ONCE
    (wire,) = await open_wires(await asyncio.to_thread(arena.server), 1)
    try:
        for _ in range(RECORDS // DONE_AT_ONCE):
            await ask(wire, puts, LIST)
            taken = await ask(wire, b"GET ended COUNT %d EXPIRE 600\r\n" % DONE_AT_ONCE, LIST)
            ids = [line.split()[1] for line in taken.data.splitlines()]
            await ask(wire, b"DONE %b\r\n" % b" ".join(ids), LIST)
        (kept,) = [line for line in (await ask(wire, b"QUEUE STAT ended\r\n", LIST)).data.splitlines()
                   if line.startswith(b"RETAINED ")]
        arena.note(f"{kept.split()[1].decode()} records")
    finally:
        wire.close()


async def records(arena: Arena) -> None:
    """They are shown and searched, all of them, without end."""
    await asyncio.gather(
        arena.besiege(20, repeated=b"PEEK ended ENDED COUNT 10000\r\nPEEK ended ENDED COUNT 9000 SEQ HEAD\r\n"),
        arena.besiege(10, repeated=b"FIND * STATE DONE HEAD task none COUNT 1000\r\n"))


async def single_records(arena: Arena) -> None:
    """They are shown, brought back and removed singly, and then all at once."""
    (wire,) = await open_wires(await asyncio.to_thread(arena.server), 1)
    try:
        shown = await ask(wire, b"PEEK ended ENDED COUNT 2000\r\n", LIST)
        numbers = [line.split()[line.split().index(b"NUMBER") + 1] for line in shown.data.splitlines()]
        arena.expect(len(numbers) > 0, "no record is shown")
        singly = b"".join(b"%b NUMBER %b ENDED\r\n" % (word, number) for number, word in zip(
            numbers, (b"KICK JOB", b"DELETE", b"PEEK", b"KICK JOB") * len(numbers), strict=False))
        await asyncio.gather(
            arena.besiege(10, repeated=singly),
            arena.besiege(4, repeated=b"PEEK NUMBER %b ENDED\r\nPEEK NUMBER %b RESULT\r\n" % (*numbers[-1:] * 2,)))
        answer = (await ask(wire, b"QUEUE PURGE ended ENDED\r\n")).line
        arena.expect(answer.startswith(b"200 OK"), f"PURGE: {answer!r}")
    finally:
        wire.close()


ATTACKS = (
    Attack("remembered-keys", "DEDUP of as many and as long keys as there may be, in 300 queues", dedup,
           config=LIMIT, excused=("PUT: 503 Busy",), bounds=Bounds(p50_ms=20, gap_s=1, rss_mb=1000)),
    Attack("error-texts", "jobs of 40 queues fail with texts of 16 KiB", errors,
           config=LIMIT, excused=("PUT: 503 Busy",), bounds=Bounds(p50_ms=20, gap_s=1, rss_mb=1000)),
    Attack("records", "lists of 10,000 of 100,000 records, and FIND among all, without end", records,
           prepare=put_records, bounds=BOUNDS),
    Attack("single-records", "records are shown, brought back and removed singly, and then all at once", single_records,
           prepare=put_records, bounds=BOUNDS),
)
