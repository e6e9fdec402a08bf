"""Queues that nobody uses are deleted one after the other, so that clients' commands go in between."""

from __future__ import annotations

from sockpqd.core import DeleteQueue
from sockpqd.gateway.limits import IDLE_DELETIONS_MAX
from tests.gateway.helpers.memory import MemoryGateway, with_gateway

QUEUES = 50


async def idle(gateway: MemoryGateway) -> None:
    """Let all queues be due, with nothing committed yet."""
    lines = b"".join(b"QUEUE CREATE q%d IDLE 1\r\n" % number for number in range(QUEUES))
    gateway.connect().send(lines)
    await gateway.settle()
    gateway.cluster.commit()
    await gateway.settle()
    gateway.cluster.pass_time(2)
    await gateway.settle()


def test_few_deletions_are_in_flight_and_all_queues_go() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await idle(gateway)
        entries = 0
        while gateway.cluster.machine.expiring:
            assert 0 < len(gateway.cluster.in_flight) <= IDLE_DELETIONS_MAX
            gateway.cluster.commit()
            await gateway.settle()
            entries += 1
        assert entries == QUEUES // IDLE_DELETIONS_MAX
        assert not gateway.cluster.in_flight
    with_gateway(test, automatic=False)


def test_a_queue_that_is_used_while_it_is_due_stays() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await idle(gateway)
        gateway.connect().send(b"".join(b"PUT q%d 0 0\r\n" % number for number in range(QUEUES)))
        await gateway.settle()
        for _ in range(QUEUES):
            gateway.cluster.commit()
            await gateway.settle()
        deleted = len(gateway.cluster.operations(DeleteQueue))
        assert deleted == IDLE_DELETIONS_MAX
        assert len(gateway.cluster.machine.expiring) == QUEUES - deleted
    with_gateway(test, automatic=False)


def test_a_node_that_no_longer_serves_deletes_none() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await idle(gateway)
        gateway.cluster.follow("n2")
        gateway.cluster.lose()
        await gateway.settle()
        assert not gateway.cluster.in_flight
        gateway.cluster.lead()
        gateway.cluster.pass_time(2)
        await gateway.settle()
        assert len(gateway.cluster.in_flight) == IDLE_DELETIONS_MAX
    with_gateway(test, automatic=False)
