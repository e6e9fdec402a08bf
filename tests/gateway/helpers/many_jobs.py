"""Queues with more jobs than one operation moves."""

from __future__ import annotations

from sockpqd.gateway.limits import PORTION_MAX
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway

JOBS = 2 * PORTION_MAX + 500


async def settle(gateway: MemoryGateway, commits: int = 10) -> None:
    for _ in range(commits):
        await gateway.settle()
        gateway.cluster.commit()
    await gateway.settle()


async def put(gateway: MemoryGateway, client: MemoryClient, count: int = JOBS, queue: bytes = b"q") -> None:
    client.send(b"PUTS %d\r\n" % count + (queue + b" 0 1\r\nx") * count)
    await settle(gateway)
    assert client.take().startswith(b"200 OK %d\r\n" % count)
