"""What settings of very many queues make the leader do."""

from __future__ import annotations

import asyncio

from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds

IDLE_QUEUES = 40_000
RATED, JOBS = 950, 20_000
WAITERS, TAKERS = 1000, 20
BOUNDS = Bounds(p50_ms=20, gap_s=1, growth_mb=300)


async def create_idle(arena: Arena) -> None:
    """Queues that nobody uses from now on."""
    await arena.tell([f"QUEUE CREATE idle{number} IDLE 2\r\n" for number in range(IDLE_QUEUES)])


async def idle(arena: Arena) -> None:
    """Their time is over, of all of them."""
    await asyncio.sleep(arena.seconds)


async def create_rated(arena: Arena) -> None:
    """As many queues with a rate as there may be, and jobs in all of them."""
    await arena.tell([f"QUEUE CREATE rated{number} RATE 1 PER 1 SPREAD\r\n" for number in range(RATED)])
    await arena.put_lists([f"rated{number % RATED}" for number in range(JOBS)])


async def rated(arena: Arena) -> None:
    """Clients wait for all of them, and others ask again and again."""
    names = b"|".join(b"rated%d" % number for number in range(RATED))
    await asyncio.gather(
        arena.besiege(WAITERS, opening=b"GETB %b\r\n" % names * 10),
        arena.besiege(TAKERS, repeated=b"GET %b COUNT 10000 BY PRIORITY\r\nGET * BY FAIR\r\n" % names))


ATTACKS = (
    Attack("idle-queues", "the IDLE of 40,000 queues is over at the same time", idle, prepare=create_idle,
           bounds=BOUNDS),
    Attack("rated-queues", "1,000 clients wait for the jobs of 950 queues with rates, and 20 ask for them without end",
           rated, prepare=create_rated, bounds=Bounds(p50_ms=50, gap_s=1, growth_mb=300)),
)
