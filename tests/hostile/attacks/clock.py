"""A leader whose wall clock is wrong."""

from __future__ import annotations

import asyncio
import time

from sockpq import SockpqError

from tests.hostile.arena import Arena
from tests.hostile.attack import Attack

JUMPS_S = (60, 3600, -60)
TERM_S = 4.0            # how long a lease and a delay are, and how far away the time of AT
AT_EARLY_S = 0.25       # the clocks of the others are right, and so is their median
SHORT_S = 1.0
LATE_S = 8.0
SEEN_S = 0.5            # until the others know what time it is at the leader
LEAD_S = 5.0
QUEUES = ("at", "delay", "lease")


async def wrong_clock(arena: Arena) -> None:
    """Let the clock jump, and the node lead again while jobs and leases wait for their time."""
    for jump_s in JUMPS_S:
        await _jump(arena, jump_s)


async def _jump(arena: Arena, jump_s: float) -> None:
    cluster, victim = arena.cluster, await asyncio.to_thread(arena.leader)
    told = f"clock {jump_s:+} s"
    with arena.client() as client:

        def begin() -> float:
            client.put("lease", b"")
            began = time.time()
            client.get("lease", expire=TERM_S)
            client.put("delay", b"", delay=TERM_S)
            client.put("at", b"", at=began + TERM_S)
            return began

        began = await asyncio.to_thread(begin)
        cluster.set_clock(victim, jump_s)
        try:
            await asyncio.sleep(SEEN_S)
            other = next(name for name in cluster.names if name != victim)
            for name in (other, victim):
                if not await asyncio.to_thread(_lead, arena, name):
                    arena.fail(f"{told}: {name} does not become the leader")
            for _ in QUEUES:
                left_s = max(began + TERM_S + LATE_S - time.time(), 0)
                job = await asyncio.to_thread(client.get, list(QUEUES), expire=600, block=True, wait=left_s)
                if job is None:
                    arena.fail(f"{told}: a job was more than {LATE_S:g} s late")
                    break
                _judge(arena, told, job.queue, time.time() - began - TERM_S)
                job.done()
        finally:
            cluster.set_clock(victim, 0)


def _lead(arena: Arena, name: str) -> bool:
    """Let this node become the leader; returns whether it did."""
    until = time.monotonic() + LEAD_S
    while time.monotonic() < until:
        if arena.cluster.leader() == name:
            return True
        try:
            with arena.client(timeout=LEAD_S) as client:
                client.cluster_transfer(name)
        except SockpqError:
            time.sleep(SEEN_S)
    return arena.cluster.leader() == name


def _judge(arena: Arena, told: str, queue: str, late_s: float) -> None:
    early_s = AT_EARLY_S if queue == "at" else SHORT_S
    arena.expect(late_s >= -early_s, f"{told}: {queue} was {-late_s:.1f} s early")


ATTACKS = (
    Attack("wrong-clock", "a leader's clock jumps by a minute or an hour, and it comes to lead anew", wrong_clock,
           seconds=40, fake_clocks=True),
)
