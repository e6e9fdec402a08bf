"""Disks without a byte left, and processes without a descriptor left."""

from __future__ import annotations

import asyncio
import contextlib
import time

from sockpq import JobNotFound, NotExecuted, OutcomeUnknown, SockpqError, aio

from devcluster.node import NodeError
from tests.chaos.machines import disks
from tests.hostile.arena import Arena, say
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd

WORKERS = 4
DATA = bytes(16 << 10)
LONG_NAMES = [f"{number:0254}" for number in range(250)]
BEFORE_S, KILLED_S = 2.0, 3.0
LEASE_S = 5
BACK_S = 5.0
PROLONG_S = 0.3
CALL_S = 3.0

IDLE = 450
SEGMENT_DATA = bytes(4 << 20)       # a few of these fill a segment of the journal, and another one must be opened
SEGMENT_S = 0.2


class Owner:
    """Holds a job and a session, and prolongs both as long as it is answered."""

    def __init__(self, arena: Arena, client: aio.Client) -> None:
        self._arena = arena
        self._client = client
        self._session = b""
        self.prolonged = asyncio.Event()    # both, since it was last cleared

    async def run(self) -> None:
        """Take a job and open a session, and renew both until cancelled."""
        await self._client.put("owned", b"mine")
        job = await self._client.get("owned", expire=LEASE_S)
        assert job is not None
        server = await asyncio.to_thread(self._arena.server)
        self._session = (await say(server, b"SESSION TTL %d\r\n" % LEASE_S, CALL_S)).split()[3]
        while True:
            await asyncio.sleep(PROLONG_S)
            if await self._touch(job.id) and await self._attach():
                self.prolonged.set()

    async def _touch(self, job_id: int) -> bool:
        try:
            await self._client.touch(job_id, LEASE_S, timeout=CALL_S)
        except JobNotFound:
            self._arena.fail("a lease ended that its owner could not prolong")
        except (NotExecuted, OutcomeUnknown):
            return False
        return True

    async def _attach(self) -> bool:
        for server in self._arena.cluster.servers:
            answer = await say(server, b"SESSION %b\r\n" % self._session, CALL_S)
            if answer.startswith(b"404"):
                self._arena.fail("a session ended that its owner could not prolong")
            if answer.startswith((b"200", b"404")):
                return True
        return False


async def work(client: aio.Client) -> None:
    """Send PUT, GET and LATER, and sometimes DONE, for ever, whatever the answers are."""
    number = 0
    while True:
        number += 1
        try:
            await client.put("load", DATA, timeout=CALL_S)
        except SockpqError:
            await asyncio.sleep(0.01)
        with contextlib.suppress(SockpqError):
            job = await client.get("load", expire=2, timeout=CALL_S)
            if job is not None:
                await (job.later() if number % 4 else job.done())


async def write(client: aio.Client) -> None:
    """Send GETs that find nothing and are long in the log: the reserve on the disks is used up soon."""
    while True:
        try:
            await client.get(LONG_NAMES, expire=1, timeout=CALL_S)
        except SockpqError:
            await asyncio.sleep(0.01)


async def disk_full(arena: Arena) -> None:
    """Fill the disks from outside during work of all kinds; one node is killed meanwhile."""
    cluster = arena.cluster
    points = [cluster.data_dir(name) for name in cluster.names]
    async with aio.Client(cluster.servers, sessions=False) as client, asyncio.TaskGroup() as group:
        owner = Owner(arena, client)
        tasks = [group.create_task(owner.run()), *(group.create_task(work(client)) for _ in range(WORKERS)),
                 *(group.create_task(write(client)) for _ in range(WORKERS))]
        try:
            await asyncio.sleep(BEFORE_S)
            await asyncio.to_thread(lambda: [disks.fill(point) for point in points])
            await asyncio.sleep(KILLED_S)
            victim = next(name for name in cluster.names if name != cluster.leader())
            await asyncio.to_thread(arena.kill, victim)
            await asyncio.to_thread(cluster.restart, victim, wait=False)
            await asyncio.sleep(arena.seconds - BEFORE_S - KILLED_S)
            for point in points:
                disks.empty(point)
            await _back(arena, owner)
        finally:
            for task in tasks:
                task.cancel()


async def _back(arena: Arena, owner: Owner) -> None:
    """Check that all nodes continue, and what was held is held still."""
    begun = time.monotonic()
    owner.prolonged.clear()
    try:
        await asyncio.to_thread(arena.server)
        await asyncio.to_thread(arena.cluster.wait_until_level)
    except NodeError:
        arena.fail("not all nodes served when there was room again")
        return
    back_s = time.monotonic() - begun
    arena.note(f"all nodes served {back_s:.1f} s after there was room again")
    arena.expect(back_s <= BACK_S, f"all nodes served only {back_s:.1f} s after there was room again")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(BACK_S):
            await owner.prolonged.wait()
    arena.expect(owner.prolonged.is_set(), "the owner of a lease and a session could not prolong them again")


async def descriptors(arena: Arena) -> None:
    """Take all descriptors by idle connections, while the journal needs one now and then."""
    server = await asyncio.to_thread(arena.server)
    async with aio.Client(arena.cluster.servers, sessions=False) as client:
        await client.put("segments", b"")           # this connection is made before the others
        async with Crowd(server, IDLE) as crowd, asyncio.timeout(arena.seconds + CALL_S):
            until = time.monotonic() + arena.seconds
            puts = 0
            while time.monotonic() < until:
                await asyncio.sleep(SEGMENT_S)
                with contextlib.suppress(SockpqError):
                    await client.put("segments", SEGMENT_DATA, timeout=CALL_S)
                    puts += 1
                    async with client.get("segments", expire=60, timeout=CALL_S):
                        pass
            arena.note(f"{crowd.standing} of {IDLE} idle connections stood, {puts} jobs of 4 MiB put")


ATTACKS = (
    Attack("disk-full", "full disks beside mixed work, one node killed meanwhile; then there is room again", disk_full,
           seconds=12, disk_mb=400, restarts=True, excused=("PUT: 503 Busy", "GET: 503 Busy", "DONE: 503 Busy"),
           bounds=Bounds(gap_s=18)),
    Attack("descriptors", "450 idle connections on nodes with 400 descriptors, and jobs that fill the journal",
           descriptors, descriptors=400, bounds=Bounds(growth_mb=300)),
)
