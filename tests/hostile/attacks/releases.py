"""One command that sets tens of thousands of jobs in motion."""

from __future__ import annotations

import asyncio
import time

from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds

PARENTS = 50_000
DONE_AT_ONCE = 9000
LOOK_S = 0.1
LARGE = 200_000
BOUND = 20_000


async def put_families(arena: Arena) -> None:
    """Put jobs, and for each another one that waits for its item."""
    await arena.put_lists(["parent"] * PARENTS, lambda number: f" IS f{number}")
    await arena.put_lists(["child"] * PARENTS, lambda number: f" AFTER f{number}")


async def parents(arena: Arena) -> None:
    """Activate portion by portion what has become ready; the list of what is left must not be walked each time."""

    def done() -> None:
        until = time.monotonic() + arena.seconds
        with arena.client() as client:
            while jobs := client.get_many(DONE_AT_ONCE, "parent", expire=60):
                client.done_many(jobs)
            while client.peek_queue("child", "delayed") and time.monotonic() < until:
                time.sleep(LOOK_S)
            arena.expect(not client.peek_queue("child", "delayed"), f"children still wait after {arena.seconds:g} s")

    await asyncio.to_thread(done)


async def put_large(arena: Arena) -> None:
    """Put a large queue to be deleted, and one to be taken."""
    await arena.put_lists(["large"] * LARGE)
    await arena.put_lists(["bound"] * BOUND)


async def removals(arena: Arena) -> None:
    """Delete a large queue with all its jobs, and end a session with all of its."""

    def remove() -> None:
        with arena.client() as client:
            client.queue_delete("large", force=True)

    await asyncio.to_thread(remove)
    replies = await arena.dialogue([b"SESSION\r\n", *[b"GET bound COUNT 10000 EXPIRE 60 BOUND\r\n"] * (BOUND // 10_000),
                                    b"SESSION CLOSE RELEASE\r\n"])
    arena.expect(replies[-1].startswith(b"200 OK"), f"SESSION CLOSE: {replies[-1]!r}")


ATTACKS = (
    Attack("parents", "DONE of 50,000 parents of AFTER jobs, 9,000 in a command", parents, prepare=put_families,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=300), seconds=30),
    Attack("removals", "QUEUE DELETE FORCE of 200,000 jobs; SESSION CLOSE RELEASE with 20,000 bound ones", removals,
           prepare=put_large, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=300)),
)
