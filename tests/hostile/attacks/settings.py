"""Settings of very many queues, and the work that they cause at the leader."""

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
    """Create queues that are not used from now on."""
    await arena.tell([f"QUEUE CREATE idle{number} IDLE 2\r\n" for number in range(IDLE_QUEUES)])


async def idle(arena: Arena) -> None:
    """Let the time of all of them end."""
    await asyncio.sleep(arena.seconds)


async def create_rated(arena: Arena) -> None:
    """Create as many queues with a rate as possible, with jobs in all of them."""
    await arena.tell([f"QUEUE CREATE rated{number} RATE 1 PER 1 SPREAD\r\n" for number in range(RATED)])
    await arena.put_lists([f"rated{number % RATED}" for number in range(JOBS)])


async def rated(arena: Arena) -> None:
    """Wait for all of them, and ask again and again from other clients."""
    names = b"|".join(b"rated%d" % number for number in range(RATED))
    await asyncio.gather(
        arena.besiege(WAITERS, opening=b"GETB %b\r\n" % names * 10),
        arena.besiege(TAKERS, repeated=b"GET %b COUNT 10000 BY PRIORITY\r\nGET * BY FAIR\r\n" % names))


async def create_shared(arena: Arena) -> None:
    """Let very many queues share a pulse, each with a job."""
    await arena.tell(["PULSE CREATE shared RATE 100 PER 1\r\n",
                      *(f"QUEUE CREATE shared{number} PULSE shared\r\n" for number in range(SHARED))])
    await arena.put_lists([f"shared{number}" for number in range(SHARED)])


async def shared(arena: Arena) -> None:
    """Wait for what no job has, and from other clients for a hundred of the queues."""
    await asyncio.gather(
        arena.besiege(TAKERS, repeated=b"GETB * IS none WITHIN 0\r\n" * 50),
        arena.besiege(TAKERS, repeated=b"GET * IS none\r\n" * 50),
        arena.besiege(WAITERS, opening=lambda number: b"GETB %b\r\n" % b"|".join(
            b"shared%d" % (number + 29 * other) for other in range(100)) * 50))


async def fill_dropping(arena: Arena) -> None:
    """Fill a queue in which each new job removes a delayed one, with a record of it."""
    await arena.tell([f"QUEUE CREATE full CAPACITY {CAPACITY} OVERFLOW DROPOLDEST RETAIN 100 NUMBERED 1\r\n"])
    await arena.put_lists(["full"] * CAPACITY, lambda number: f" DELAY {10_000 + number * 7919 % CAPACITY}")


async def dropping(arena: Arena) -> None:
    """Put jobs for sooner without end."""
    await arena.besiege(8, repeated=b"".join(b"PUT full 0 0 DELAY %d\r\n" % (5000 + number) for number in range(500)))


async def create_pulses(arena: Arena) -> None:
    """Create pulses that give a hundred grants a second each."""
    await arena.tell([f"PULSE CREATE turn{number} RATE 1 PER 0.01\r\n" for number in range(PULSES)])


async def turns(arena: Arena) -> None:
    """Wait for turns again and again, and from other clients list the pulses."""
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
