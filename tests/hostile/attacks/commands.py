"""Legal commands that cost far more than their length suggests: long lists of long names, long lists of jobs."""

from __future__ import annotations

import asyncio

from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds

LONG_NAMES = b"|".join(b"%0254d" % number for number in range(256))
QUEUES = 12_000
SHORT_NAMES = [f"{number:04x}" for number in range(QUEUES)]
SHORT_LIST = "|".join(SHORT_NAMES).encode()
PRIORITY_QUEUES = 1000


async def entry_bytes(arena: Arena) -> None:
    """Make entries as large as the names in them."""
    await arena.besiege(64, repeated=b"GET %b\r\n" % LONG_NAMES)


async def fill_queues(arena: Arena) -> None:
    """Put a job into each of 12,000 queues."""
    await arena.put_lists(SHORT_NAMES)


async def get_names(arena: Arena) -> None:
    """Send GETs whose choice looks at all of the queues."""
    lists = b"GET %b EXPIRE 2 COUNT 10000\r\n" % SHORT_LIST
    await asyncio.gather(
        arena.besiege(20, opening=lists, repeated=lists),
        arena.besiege(20, repeated=b"GET %b EXPIRE 2\r\n" % SHORT_LIST),
    )


async def fill_priorities(arena: Arena) -> None:
    """Put ten jobs into each of 1,000 queues."""
    await arena.put_lists([f"p{number}" for number in range(PRIORITY_QUEUES)] * 10)


async def by_priority(arena: Arena) -> None:
    """Send GETs that choose the best of 1,000 queues for each job."""
    await arena.besiege(10, repeated=b"GET * BY PRIORITY COUNT 2000 EXPIRE 1\r\n")


ATTACKS = (
    Attack("entry-bytes", "64 connections pipeline legal GETs of 256 names with 254 characters", entry_bytes,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=300)),
    Attack("get-names", "GETs of 12,000 names, with COUNT 10000 and without, on 40 connections", get_names,
           prepare=fill_queues, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=300)),
    Attack("by-priority", "GET * BY PRIORITY COUNT 2000 over 1,000 queues, on 10 connections", by_priority,
           prepare=fill_priorities, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=300)),
)
