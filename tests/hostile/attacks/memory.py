"""Everything that a node keeps for its clients, in masses, on nodes that may have 1 GiB of memory."""

from __future__ import annotations

import resource
from collections.abc import Awaitable, Callable

from tests.hostile.arena import Arena
from tests.hostile.attack import MIB, Attack, Bounds
from tests.hostile.crowd import Crowd

MEMORY_MB = 1024
BODY = 8 * MIB
BODIES = 250
WAITERS = 600
NAMES = "|".join(f"{number:04x}" for number in range(12_000)).encode()
SOME_NAMES = "|".join(f"{number:04x}" for number in range(2000)).encode()
TRANSACTIONS = 100
READERS = 300
PIECE = bytes(64 << 10)
WIDE_JOBS, WIDE_DATA = 64, bytes(256 << 10)
TAKE = b"GET wide EXPIRE 0.001\r\n"
CROWD = 9500
SPARE_DESCRIPTORS = 1000
CHANGE = b"CHANGE KEY wide k0 DATA %d\r\n%b"
PEEK = b"PEEK wide READY COUNT %d\r\n" % WIDE_JOBS


async def endless_bodies(arena: Arena) -> None:
    """Send bodies that are one piece short."""
    await arena.besiege(BODIES, opening=b"PUT endless 0 %d\r\n" % BODY, repeated=PIECE, most_bytes=BODY - len(PIECE))


async def many_waiters(arena: Arena) -> None:
    """Wait in 12,000 queues each."""
    await arena.besiege(WAITERS, opening=b"GETB %b\r\n" % NAMES)


async def begin_data(arena: Arena) -> None:
    """Send transactions that are kept until COMMIT, which never comes."""
    data = bytes(MIB)
    await arena.besiege(TRANSACTIONS, opening=b"BEGIN\r\n", most_bytes=200 * MIB,
                        repeated=CHANGE % (len(data), data) + b"MOVE 1 wide DATA %d\r\n%b" % (len(data), data))


async def put_wide(arena: Arena) -> None:
    """Put a queue of 16 MiB, which one PEEK shows."""
    await arena.insist([b"PUT wide 0 %d KEY k%d\r\n%b" % (len(WIDE_DATA), number, WIDE_DATA)
                        for number in range(WIDE_JOBS)])


async def unread_output(arena: Arena) -> None:
    """Take jobs that come back at once, and ask for large answers, without reading any of it."""
    openings = (TAKE * 200, PEEK * 20)
    await arena.besiege(READERS, opening=lambda number: openings[number % len(openings)], reads=False)


async def ten_thousand(arena: Arena) -> None:
    """Do a bit of everything, on as many connections as possible."""
    openings = (
        b"PUT endless 0 %d\r\n%b" % (BODY, PIECE), b"GETB %b\r\n" % SOME_NAMES, PEEK * 3,
        b"BEGIN\r\n" + CHANGE % (len(PIECE), PIECE) * 3,
    )
    may, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(CROWD, may - SPARE_DESCRIPTORS)
    crowds: list[Crowd] = []
    await arena.besiege(count, crowds=crowds, opening=lambda number: openings[number % len(openings)], reads=False)
    arena.note(f"{sum(crowd.made for crowd in crowds)} connections, {sum(crowd.cut for crowd in crowds)} of them cut")


def _attack(name: str, what: str, run: Callable[[Arena], Awaitable[None]],
            prepare: Callable[[Arena], Awaitable[None]] | None = None, seconds: float = 10.0,
            gap_s: float = 1.0) -> Attack:
    """Attack within 1 GiB; jobs may be refused meanwhile."""
    return Attack(name, what, run, prepare=prepare, seconds=seconds, memory_mb=MEMORY_MB,
                  excused=("PUT: 503 Busy",), bounds=Bounds(p50_ms=20, gap_s=gap_s, rss_mb=MEMORY_MB))


ATTACKS = (
    _attack("endless-bodies", "250 PUTs of 8 MiB that never end", endless_bodies),
    _attack("many-waiters", "600 GETBs with 12,000 names each", many_waiters),
    _attack("begin-data", "100 transactions of CHANGE and MOVE with data without end", begin_data, put_wide),
    _attack("unread-output", "300 clients that never read what they asked for", unread_output, put_wide,
            gap_s=2.0),
    _attack("ten-thousand", "9,500 connections that do all of this", ten_thousand, put_wide, 20.0),
)
