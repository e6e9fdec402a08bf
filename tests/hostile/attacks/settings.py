"""What settings of very many queues make the leader do."""

from __future__ import annotations

import asyncio

from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds

IDLE_QUEUES = 40_000
RATED, JOBS = 950, 20_000
WAITERS, TAKERS = 1000, 20
SHARED = 30_000
CAPACITY = 100_000
PULSES, PULSE_WAITERS = 900, 4000
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


async def create_shared(arena: Arena) -> None:
    """Very many queues share a pulse, and each has a job."""
    await arena.tell(["PULSE CREATE shared RATE 100 PER 1\r\n",
                      *(f"QUEUE CREATE shared{number} PULSE shared\r\n" for number in range(SHARED))])
    await arena.put_lists([f"shared{number}" for number in range(SHARED)])


async def shared(arena: Arena) -> None:
    """Clients wait for what no job has, and others for a hundred of the queues."""
    await asyncio.gather(
        arena.besiege(TAKERS, repeated=b"GETB * IS none WITHIN 0\r\n" * 50),
        arena.besiege(TAKERS, repeated=b"GET * IS none\r\n" * 50),
        arena.besiege(WAITERS, opening=lambda number: b"GETB %b\r\n" % b"|".join(
            b"shared%d" % (number + 29 * other) for other in range(100)) * 50))


async def fill_dropping(arena: Arena) -> None:
    """A full queue in which each new job makes one leave that was put for later, with a record of it."""
    await arena.tell([f"QUEUE CREATE full CAPACITY {CAPACITY} OVERFLOW DROPOLDEST RETAIN 100 NUMBERED 1\r\n"])
    await arena.put_lists(["full"] * CAPACITY, lambda number: f" DELAY {10_000 + number * 7919 % CAPACITY}")


async def dropping(arena: Arena) -> None:
    """Jobs for sooner come without end."""
    await arena.besiege(8, repeated=b"".join(b"PUT full 0 0 DELAY %d\r\n" % (5000 + number) for number in range(500)))


async def create_pulses(arena: Arena) -> None:
    """Pulses that give a hundred grants a second each."""
    await arena.tell([f"PULSE CREATE turn{number} RATE 1 PER 0.01\r\n" for number in range(PULSES)])


async def turns(arena: Arena) -> None:
    """Clients wait for their turns again and again, and others ask which pulses there are."""
    await asyncio.gather(
        arena.besiege(PULSE_WAITERS, opening=lambda number: b"PULSE WAIT turn%d\r\n" % (number % PULSES) * 500),
        arena.besiege(TAKERS, repeated=b"PULSE LIST\r\n" * 100))


ATTACKS = (
    Attack("idle-queues", "the IDLE of 40,000 queues is over at the same time", idle, prepare=create_idle,
           bounds=BOUNDS),
    Attack("rated-queues", "1,000 clients wait for the jobs of 950 queues with rates, and 20 ask for them without end",
           rated, prepare=create_rated, bounds=BOUNDS),
    Attack("shared-pulse", "30,000 queues share a pulse: 1,000 wait for a hundred of them, 40 for what none has",
           shared, prepare=create_shared, bounds=BOUNDS),
    Attack("dropped-jobs", "each job that is put makes another one leave a full queue of 100,000, which keeps records",
           dropping, prepare=fill_dropping, bounds=BOUNDS),
    Attack("pulse-turns", "4,000 clients wait for turns of 900 pulses again and again", turns, prepare=create_pulses,
           bounds=BOUNDS),
)
