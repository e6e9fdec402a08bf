"""Commands that cause much more work than their length: topics, groups, transactions, names."""

from __future__ import annotations

import asyncio

from bench.load_generator.wire import LIST, ask, wires_to
from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd

BOUND = 5000                # queues of a topic
GROUPED = 10_000            # jobs, each of a group and in a queue of its own
FAIR, GROUPS = 40_000, 3000
COMMANDS = 1000             # of a transaction
DELAYED = 2000
MOVED = 60_000
WAITERS = 1500
GETB_NAMES, SUBSCRIBED = 9000, 1000
TOUCHED = 7500
FAIR_QUEUES = 6000
FINISHING = 100
MANY_QUEUES, MANY_GROUPS = 3000, 10
ENDING = 800
BOUNDS = Bounds(p50_ms=20, gap_s=1)


async def bind(arena: Arena) -> None:
    """Bind 5,000 queues to a topic, each by a pattern."""
    await arena.tell([f"TOPIC BIND wide wide{number} PATTERN *.a.#\r\n" for number in range(BOUND)])


async def topic_puts(arena: Arena) -> None:
    """Publish jobs that go into all of them."""
    await _repeat(arena, 4, b"PUT @wide 0 3 ROUTE b.a.c\r\nabc" * 32)


async def grouped_puts(arena: Arena) -> None:
    """Put jobs each of which has a group and a queue of its own."""
    jobs = b"".join(b"grouped%d 0 3 GROUP g%d\r\nabc" % (number, number) for number in range(GROUPED))
    await _repeat(arena, 2, b"PUTS %d\r\n%b" % (GROUPED, jobs))


async def transactions(arena: Arena) -> None:
    """Send transactions each command of which puts a job with an item and a group into a queue of its own."""
    puts = b"".join(b"PUT t%d 0 3 IS i%d GROUP g%d\r\nabc" % ((number,) * 3) for number in range(COMMANDS))
    await _repeat(arena, 4, b"BEGIN\r\n%bCOMMIT\r\n" % puts)


async def fill_groups(arena: Arena) -> None:
    """Put 40,000 jobs of 3,000 groups and as many items."""
    await arena.put_lists(["fair"] * FAIR, lambda number: f" IS i{number} GROUP g{number % GROUPS}")


async def fair_gets(arena: Arena) -> None:
    """Take as many as possible, and put them back."""
    await _repeat(arena, 4, b"GET fair|more BY FAIR COUNT 10000 EXPIRE 1 THEN LATER\r\n")


async def fill_many(arena: Arena) -> None:
    """Put a job of each of ten groups into 3,000 queues."""
    names = [f"many{number // MANY_GROUPS}" for number in range(MANY_GROUPS * MANY_QUEUES)]
    await arena.put_lists(names, lambda number: f" GROUP m{number % MANY_GROUPS}")


async def group_pauses(arena: Arena) -> None:
    """Close and open one of them, while some wait for what never comes in any queue."""
    await asyncio.gather(
        arena.besiege(FINISHING, opening=b"GETB * IS nothing\r\n"),
        _repeat(arena, 4, b"GROUP PAUSE m0\r\nGET many1 BY FAIR EXPIRE 1\r\nGROUP RESUME m0\r\n" * 16))


async def fill_queues(arena: Arena) -> None:
    """Put two jobs into each of 6,000 queues."""
    for _ in range(2):
        await arena.put_lists([f"of{number}" for number in range(FAIR_QUEUES)])


async def fair_names(arena: Arena) -> None:
    """Take 2,000 jobs of these queues, each by FAIR among all of them."""
    names = b"|".join(b"of%d" % number for number in range(FAIR_QUEUES))
    await _repeat(arena, 4, b"GET %b BY FAIR COUNT 2000 EXPIRE 1 THEN LATER\r\n" % names)


async def put_unfinished(arena: Arena) -> None:
    """Put a job for later into each of two queues."""
    await arena.put_lists(["x", "y"], lambda number: " DELAY 3600")


async def finishes(arena: Arena) -> None:
    """Wait for the end of 9,000 queues that have no job and of two that end in turn."""
    names = b"|".join(b"none%d" % number for number in range(GETB_NAMES))
    end = b"QUEUE PURGE %b ALL\r\nPUT %b 0 0 DELAY 3600\r\n"
    await asyncio.gather(
        arena.besiege(FINISHING, opening=b"GETBE %b|x|y\r\n" % names),
        arena.besiege(1, repeated=end % (b"x", b"x") + end % (b"y", b"y")))


async def kicks(arena: Arena) -> None:
    """Put delayed jobs, make them ready and remove them, 2,000 by a command."""
    puts = b"PUTS %d\r\n" % DELAYED + b"kicked 0 3 DELAY 1000 NUMBER\r\nabc" * DELAYED
    await _repeat(arena, 2, puts + b"KICK kicked 1000000 HERE\r\nQUEUE PURGE kicked ALL\r\n")


async def put_moved(arena: Arena) -> None:
    """Put jobs with an item each, to be moved."""
    await arena.put_lists(["here"] * MOVED, lambda number: f" IS moved{number} NUMBER")


async def moves(arena: Arena) -> None:
    """Move all of them to another queue and back, on each connection."""
    await _repeat(arena, 4, b"QUEUE MOVE here there\r\nQUEUE MOVE there here\r\n")


async def put_touched(arena: Arena) -> None:
    """Put jobs to be taken."""
    await arena.put_lists(["touched"] * TOUCHED)


async def touches(arena: Arena) -> None:
    """Touch all of them while they run; each command is more than one operation may do."""
    ids: list[bytes] = []
    async with wires_to(await asyncio.to_thread(arena.server)) as (wire,):
        while len(ids) < TOUCHED and (taken := await ask(wire, b"GET touched COUNT 10000 EXPIRE 600\r\n", LIST)).good:
            ids += [line.split()[1] for line in taken.data.splitlines()]
    await _repeat(arena, 4, b"TOUCH %b EXPIRE 600\r\n" % b" ".join(ids))


async def _repeat(arena: Arena, connections: int, commands: bytes) -> None:
    crowds: list[Crowd] = []
    await arena.besiege(connections, repeated=commands, crowds=crowds)
    arena.note(f"{sum(crowd.good for crowd in crowds):,} good answers")
    arena.expect(any(crowd.good for crowd in crowds), "nobody was answered")


async def waiters(arena: Arena) -> None:
    """Connect clients that wait, all at once, and again when they are cut."""
    names = "|".join(f"m{number}" for number in range(GETB_NAMES)).encode()
    await arena.besiege(WAITERS, opening=b"GETB %b\r\n" % names, again_s=1.0)


async def ends(arena: Arena) -> None:
    """Wait for as many queues until the time is up, for all at the same moment, again and again."""
    names = "|".join(f"m{number}" for number in range(GETB_NAMES)).encode()
    await arena.besiege(ENDING, repeated=b"GETB %b WITHIN 2000\r\n" % names, most_bytes=1 << 20, again_s=1.0)


async def cancels(arena: Arena) -> None:
    """Cancel items without end, while others wait for jobs of another item in 9,000 queues."""
    names = b"|".join(b"none%d" % number for number in range(GETB_NAMES))
    await asyncio.gather(
        arena.besiege(FINISHING, opening=b"GETB %b IS other\r\n" % names),
        arena.besiege(4, repeated=b"PUT cancelled 0 1 IS c\r\nxITEM CANCEL c\r\n" * 64))


async def subscribers(arena: Arena) -> None:
    """Subscribe, each connection by prefixes that no other has."""
    async with asyncio.timeout(arena.seconds + 30):
        await arena.besiege(WAITERS, again_s=1.0, opening=lambda number: b"SUBSCRIBE PUT|TAKE %b\r\n" % "|".join(
            f"prefix{number}_{name}*" for name in range(SUBSCRIBED)).encode())


ATTACKS = (
    Attack("topic-puts", "PUT to a topic of 5,000 queues without end, on 4 connections", topic_puts, prepare=bind,
           bounds=BOUNDS),
    Attack("grouped-puts", "PUTS of 10,000 jobs in as many queues and groups without end, on 2 connections",
           grouped_puts, bounds=BOUNDS),
    Attack("transactions", "transactions of 1,000 PUTs with items and groups without end, on 4 connections",
           transactions, bounds=BOUNDS),
    Attack("fair-gets", "GET COUNT 10000 BY FAIR among 3,000 groups without end, on 4 connections", fair_gets,
           prepare=fill_groups, bounds=BOUNDS),
    Attack("fair-names", "GET of 6,000 queues BY FAIR COUNT 2000 without end, on 4 connections", fair_names,
           prepare=fill_queues, bounds=BOUNDS),
    Attack("group-openings", "a group with jobs in 3,000 queues of ten groups is paused and resumed without end",
           group_pauses, prepare=fill_many, bounds=BOUNDS),
    Attack("finishes", "100 GETBE of 9,000 queues, while two of these end in turn without end", finishes,
           prepare=put_unfinished, bounds=BOUNDS),
    Attack("kicks", "2,000 delayed jobs are put, kicked and purged without end, on 2 connections", kicks,
           bounds=BOUNDS),
    Attack("moves", "QUEUE MOVE of 60,000 jobs with items and numbers without end, on 4 connections", moves,
           prepare=put_moved, bounds=BOUNDS),
    Attack("touches", "TOUCH of 7,500 jobs without end, on 4 connections", touches, prepare=put_touched, bounds=BOUNDS),
    Attack("wide-waiters", "1,500 GETBs of 9,000 names each come at once", waiters, bounds=BOUNDS),
    Attack("wide-ends", "800 GETBs of 9,000 names each whose time is up at the same moment, again and again", ends,
           bounds=BOUNDS),
    Attack("item-cancels", "ITEM CANCEL without end, while 100 clients wait for an item in 9,000 queues", cancels,
           bounds=BOUNDS),
    Attack("wide-hearers", "1,500 SUBSCRIBEs of 1,000 names each come at once", subscribers, bounds=BOUNDS),
)
