"""Data kept with jobs: headers, progress, keys, texts of errors, and records of ended jobs."""

from __future__ import annotations

import asyncio
import time

from bench.load_generator.wire import LINE, LIST, ask, open_wires, wires_to
from tests.hostile.arena import Arena
from tests.hostile.attack import MIB, Attack, Bounds
from tests.hostile.crowd import Crowd

DEDUP_KEY = "k" * 240
DEDUP_QUEUES, KEYS_AT_ONCE = 300, 200
TEXT = b"e" * 16_384
FAILING = 40
RECORDS, DONE_AT_ONCE = 100_000, 1000
LIMIT = {"limits": {"memory_mark": 700 * MIB}}
HEARERS, TOUCHERS = 300, 8
BOUNDS = Bounds(p50_ms=20, gap_s=1, growth_mb=300)

# Each is answered 400, with what it announces read and dropped; or it never ends.
WRONG_HEADERS = (
    b"PUT h 0 3 HEAD 5\r\nabc", b"PUT h 0 3 HEAD 3\r\nabc", b"PUT h 0 5 HEAD -1\r\nabcde",
    b"PUT h 0 5 HEAD 99999999\r\nabcde",
    b"PUT h 0 4 HEAD 4\r\na:1\n", b"PUT h 0 5 HEAD 5\r\na: 1\r", b"PUT h 0 10 HEAD 10\r\na: 1\na: 2\n",
    b"PUT h 0 6 HEAD 6\r\na: \xff1\n", b"PUT h 0 20000 HEAD 20000\r\na: %b\n" % (b"v" * 19_996),
    b"PUT h 0 1300 HEAD 1300\r\n%b" % b"".join(b"n%03d: value-000\n" % number for number in range(100))[:1300],
    b"PUTS 2\r\nh 0 3 HEAD 9\r\nabch 0 5 HEAD 4\r\nabcd\n", b"CHANGE 1 HEAD 3\r\nabc", b"MOVE 1 h HEAD 3 DATA 2\r\nab",
)
ENDLESS_HEADERS = (b"PUT h 0 16384 HEAD 16384\r\na: 1\n", b"CHANGE 1 HEAD 16384\r\na: 1\n", b"LATER 1 ERROR 16384\r\nx",
                   b"DONE 1 RESULT 1048576\r\nx", b"PUTS 10000\r\nh 0 100 HEAD 50\r\na: ")


async def dedup(arena: Arena) -> None:
    """Use as many and as long keys as possible, in 300 queues, each with settings."""
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
    """Give jobs of many queues the largest texts: memory ends at the mark, and the jobs go on."""
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
    """Make 100,000 records in one queue."""
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
    """Show and search all of them, without end."""
    await asyncio.gather(
        arena.besiege(20, repeated=b"PEEK ended ENDED COUNT 10000\r\nPEEK ended ENDED COUNT 9000 SEQ HEAD\r\n"),
        arena.besiege(10, repeated=b"FIND * STATE DONE HEAD task none COUNT 1000\r\n"))


async def single_records(arena: Arena) -> None:
    """Show, bring back and remove them singly, and then all at once."""
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


async def headers(arena: Arena) -> None:
    """Send wrong headers, and some of which the last bytes never arrive."""
    async with wires_to(await asyncio.to_thread(arena.server)) as (wire,):
        for line in WRONG_HEADERS:
            answer = await ask(wire, line, LIST if line.startswith(b"PUTS") else LINE)
            arena.expect(not answer.line.startswith(b"200 OK NUMBER"), f"{line[:30]!r}: {answer.line!r}")
        arena.expect((await ask(wire, b"TOTAL h\r\n")).line == b"200 OK 0 0 0 0", "a wrong job was put")
    await asyncio.gather(
        arena.besiege(12, repeated=b"".join(WRONG_HEADERS)),
        arena.besiege(200, opening=lambda number: ENDLESS_HEADERS[number % len(ENDLESS_HEADERS)]))


async def progress(arena: Arena) -> None:
    """Change one job's progress without end, before 300 subscribers."""
    server = await asyncio.to_thread(arena.server)
    async with wires_to(server) as (wire,):
        await ask(wire, b"PUT told 0 0\r\n")
        taken = (await ask(wire, b"GET told EXPIRE 600\r\n")).line.split()
    touches = b"".join(b"TOUCH %b EXPIRE 600 PROGRESS %d\r\n" % (taken[3], percent) for percent in range(101))
    async with Crowd(server, HEARERS, opening=b"SUBSCRIBE PROGRESS|CANCEL\r\n") as hearers:
        crowds: list[Crowd] = []
        await arena.besiege(TOUCHERS, repeated=touches, crowds=crowds)
        arena.note(f"{sum(crowd.good for crowd in crowds):,} touches, {hearers.bytes >> 20} MiB heard")
    arena.expect(hearers.bytes > 0, "nobody heard of it")


ATTACKS = (
    Attack("headers", "wrong headers of all kinds, and data behind CHANGE, LATER and DONE that never end", headers,
           bounds=BOUNDS),
    Attack("progress", "the progress of one job changes without end, and 300 hear of it", progress, bounds=BOUNDS),
    Attack("remembered-keys", "DEDUP of as many and as long keys as there may be, in 300 queues", dedup,
           config=LIMIT, excused=("PUT: 503 Busy",), bounds=Bounds(p50_ms=20, gap_s=1, rss_mb=1000)),
    Attack("error-texts", "jobs of 40 queues fail with texts of 16 KiB", errors,
           config=LIMIT, excused=("PUT: 503 Busy",), bounds=Bounds(p50_ms=20, gap_s=1, rss_mb=1000)),
    Attack("records", "lists of 10,000 of 100,000 records, and FIND among all, without end", records,
           prepare=put_records, bounds=BOUNDS),
    Attack("single-records", "records are shown, brought back and removed singly, and then all at once", single_records,
           prepare=put_records, bounds=BOUNDS),
)
