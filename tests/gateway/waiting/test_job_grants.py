"""Queues with a rate: jobs are written as fast as the pulse allows, and no waiting client is forgotten."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable
from types import FrameType
from typing import Any

import pytest

from sockpqd.core import GetWith, Machine
from sockpqd.gateway.limits import LINES_PER_COMMAND, PULSE_COMMANDS, UNSURE_S
from tests.gateway.helpers.fake_cluster import returned
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, attached, with_gateway
from tests.gateway.pulses.writes import Writes

JOB = re.compile(rb"200 OK q (\d+) 0 1\r\nx")


async def filled(gateway: MemoryGateway, rate: bytes, jobs: int) -> MemoryClient:
    """Return a client that has given q this rate, and jobs."""
    client = gateway.connect()
    client.send(b"QUEUE CONFIG q RATE " + rate + b"\r\n" + b"PUT q 0 1\r\nx" * jobs)
    await gateway.settle()
    while gateway.cluster.in_flight:
        gateway.cluster.commit()
        await gateway.settle()
    assert client.take() == b"200 OK\r\n" * (jobs + 1)
    return client


def blocked(gateway: MemoryGateway, count: int, line: bytes = b"GETB q\r\n") -> list[MemoryClient]:
    """Return this many clients that wait for a job."""
    clients = [gateway.connect(str(number)) for number in range(count)]
    for client in clients:
        client.send(line)
    return clients


def test_blocked_clients_get_jobs_at_the_rate() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await filled(gateway, b"3 PER 0.1", 12)
        writes = Writes(blocked(gateway, 12), JOB)
        await asyncio.wait_for(writes.come(12), 30)
        assert writes.keep(3, 0.1)
    with_gateway(test)


def test_jobs_that_come_later_go_to_those_who_wait_at_the_rate() -> None:
    async def test(gateway: MemoryGateway) -> None:
        producer = await filled(gateway, b"2 PER 0.1", 0)
        writes = Writes(blocked(gateway, 6, b"GETB * EXPIRE 60\r\n"), JOB)
        await gateway.settle()
        producer.send(b"PUT q 0 1\r\nx" * 6)
        await asyncio.wait_for(writes.come(6), 30)
        assert writes.keep(2, 0.1)
    with_gateway(test)


def test_no_entry_is_written_while_no_grant_is_free() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await filled(gateway, b"1 PER 60", 3)
        clients = blocked(gateway, 3)
        await gateway.settle()
        assert sum(bool(JOB.fullmatch(client.take())) for client in clients) == 1
        before = len(gateway.cluster.log)
        await asyncio.sleep(0.05)
        assert len(gateway.cluster.log) == before
    with_gateway(test)


def test_a_plain_queue_costs_what_it_did() -> None:
    async def test(gateway: MemoryGateway) -> None:
        assert await gateway.talk(b"PUT p 0 1\r\nxGET p\r\n") == b"200 OK\r\n200 OK p 1 0 1\r\nx"
        await filled(gateway, b"1 PER 60", 1)
        assert await gateway.talk(b"PUT p 0 1\r\nxGET p\r\n") == b"200 OK\r\n200 OK p 2 0 1\r\nx"
        assert not gateway.cluster.operations(GetWith)
    with_gateway(test)


async def steps(work: Awaitable[object]) -> int:
    """Return the opcodes that the work takes: a cost that does not depend on the machine."""
    found = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal found
        frame.f_trace_opcodes = True
        found += event == "opcode"
        return trace
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        await work
    finally:
        sys.settrace(before)
    return found


def test_a_flooded_queue_with_a_rate_costs_another_one_nothing() -> None:
    async def test(gateway: MemoryGateway) -> None:
        async def cost() -> int:
            return await steps(gateway.talk(b"PUT p 0 1\r\nxGETB p\r\nPUT p 0 1\r\nxGET p EXPIRE 60\r\n"))
        await filled(gateway, b"1 PER 60", 2)
        await cost()
        before = await cost()
        await filled(gateway, b"1 PER 60", 500)
        blocked(gateway, 200)
        await gateway.settle()
        flooded = await cost()
        assert flooded < 1.1 * before, (flooded, before)
    with_gateway(test)


def test_a_grant_that_finds_no_job_is_free_again() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await filled(gateway, b"1 PER 60", 1)
        client.send(b"GET q\r\nDELETE 1\r\nGET q\r\n")
        client.send(b"QUEUE PURGE q ALL\r\n")
        await gateway.settle()
        first = gateway.cluster.in_flight
        assert sum(isinstance(operation, GetWith) for operation in first) == 1
        gateway.cluster.commit()
        await gateway.settle()
        assert gateway.hub.pulse_windows.of("queue:q").in_flight == 0
    with_gateway(test, automatic=False)


@pytest.mark.parametrize("line", [b"GET q\r\n", b"GETB q\r\n"])
def test_a_job_waits_for_the_lease_and_goes_back_without_it(line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = [await filled(gateway, b"2 PER 60", 2), gateway.connect("another")]
        for client in clients:
            client.send(line)
            await gateway.settle()
        gateway.cluster.leased = False
        gateway.cluster.commit()
        await asyncio.sleep(4 * UNSURE_S)
        assert [client.take() for client in clients] == [b"", b""]
        clients[1].vanish()
        await gateway.settle()
        gateway.cluster.leased = True
        await asyncio.sleep(4 * UNSURE_S)
        gateway.cluster.commit()
        await gateway.settle()
        assert JOB.fullmatch(clients[0].take())
        assert len(returned(gateway.cluster)) == 1, "the one of the client that has gone"
    with_gateway(test, automatic=False)


def test_the_job_of_a_client_that_is_gone_goes_back_and_its_grant_is_free() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await filled(gateway, b"1 PER 60", 1)
        gone, other = blocked(gateway, 2)
        await gateway.settle()
        gone.vanish()
        await gateway.settle()
        while gateway.cluster.in_flight:
            gateway.cluster.commit()
            await gateway.settle()
        assert JOB.fullmatch(other.take())
    with_gateway(test, automatic=False)


def test_a_numbered_get_is_answered_again_with_the_same_job() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await filled(gateway, b"1 PER 60", 2)
        client = await attached(gateway)
        client.send(b"REQ 1 GET q\r\nREQ 1 GET q\r\n")
        await gateway.settle()
        assert client.take() == b"200 OK q 1 0 1\r\nx" * 2
        assert gateway.cluster.machine.pulses["queue:q"].granted == 1
    with_gateway(test)


def test_denied_until_it_is_set_again() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await filled(gateway, b"1 PER 60", 1)
        client.send(b"PULSE SET queue:q 0 DENY\r\n")
        await gateway.settle()
        (waiting,) = blocked(gateway, 1)
        await gateway.settle()
        assert waiting.take() == b""
        client.send(b"PULSE SET queue:q 0\r\n")
        await gateway.settle()
        assert JOB.fullmatch(waiting.take())
    with_gateway(test)


@pytest.mark.parametrize(("line", "pulses"), [(b"GET %b COUNT 2\r\n", 100), (b"GET *\r\n", 100), (b"GETB %b\r\n", 1)])
def test_a_get_looks_at_each_of_its_queues_once_and_pays_for_their_pulses(
    line: bytes, pulses: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    queues = 100

    async def test(gateway: MemoryGateway) -> None:
        names = [b"q%d" % number for number in range(queues)]
        client = gateway.connect()
        client.send(b"".join(b"QUEUE CREATE %b RATE 1 PER 60\r\nPUT %b 0 0\r\n" % (name, name) for name in names))
        await gateway.settle()
        gateway.cluster.commit()
        await gateway.settle()
        client.take()
        looks = 0

        class Counted(Machine):
            def ready(self, queue: str) -> int:
                nonlocal looks
                looks += 1
                return super().ready(queue)

        charged: list[int] = []
        monkeypatch.setattr(gateway.hub.grant_reservations, "charge", charged.append)
        gateway.cluster.machine.__class__ = Counted
        client.send(line.replace(b"%b", b"|".join(names)))
        await gateway.settle()
        assert looks <= 3 * queues
        assert pulses * PULSE_COMMANDS <= sum(charged) <= 2 * pulses * PULSE_COMMANDS + queues // LINES_PER_COMMAND
    with_gateway(test)
