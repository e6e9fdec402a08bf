"""Waiters for jobs of queues with a rate: what a command or a grant looks at, and that nobody is forgotten."""

from __future__ import annotations

import asyncio

import pytest

from sockpqd.core import Machine
from sockpqd.core.ops.settings import QueueSettings
from tests.gateway.helpers.memory import MemoryGateway, with_gateway

QUEUES = 2000


async def filled(gateway: MemoryGateway, pulse: bytes) -> None:
    """Return 2,000 queues that share a pulse without a grant left, with a job each."""
    client = gateway.connect()
    client.send(b"PULSE CREATE shared RATE " + pulse + b"\r\n")
    client.send(b"".join(b"QUEUE CREATE q%d PULSE shared\r\nPUT q%d 0 0\r\n" % (n, n) for n in range(QUEUES)))
    await until_done(gateway)
    client.take()
    client.send(b"GET q0\r\n")
    await until_done(gateway)
    assert client.take().startswith(b"200 OK q0 ")


async def until_done(gateway: MemoryGateway) -> None:
    """Commit until nothing is in flight."""
    await gateway.settle()
    while gateway.cluster.in_flight:
        gateway.cluster.commit()
        await gateway.settle()


class Counted(Machine):
    """A machine that counts the queues that are looked at."""

    looks = 0

    def ready(self, queue: str) -> int:
        """Implement Machine."""
        Counted.looks += 1
        return super().ready(queue)

    def ready_of_item(self, queue: str, item: str) -> int:
        """Implement Machine."""
        Counted.looks += 1
        return super().ready_of_item(queue, item)

    def queue_settings(self, queue: str) -> QueueSettings | None:
        """Implement Machine."""
        Counted.looks += 1
        return super().queue_settings(queue)


@pytest.mark.parametrize("line", [b"GETB *\r\n", b"GETB * IS none\r\n", b"GET *\r\n", b"GETB q7|q8\r\n"])
def test_no_command_looks_at_all_queues_of_a_pulse(line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        await filled(gateway, b"1 PER 60")
        gateway.cluster.machine.__class__ = Counted
        Counted.looks = 0
        gateway.connect().send(line * 2)
        await gateway.settle()
        assert Counted.looks <= 20
    with_gateway(test, automatic=False)


def test_a_grant_looks_at_no_more_queues_than_it_feeds() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await filled(gateway, b"1 PER 60")
        names = b"|".join(b"q%d" % number for number in range(QUEUES))
        waiting = [gateway.connect(str(number)) for number in range(4)]
        for client, line in zip(waiting, (b"GETB %b" % names, b"GETB *", b"GETB * IS none", b"GETB q7"), strict=True):
            client.send(line + b"\r\n")
        await until_done(gateway)
        gateway.cluster.machine.__class__ = Counted
        Counted.looks = 0
        gateway.connect().send(b"PULSE CONFIG shared RATE 2\r\n")
        await until_done(gateway)
        assert [client.take()[:6] for client in waiting] == [b"200 OK", b"", b"", b""]
        assert Counted.looks <= 50
    with_gateway(test, automatic=False)


def test_who_was_sent_for_one_queue_in_vain_gets_the_job_of_another_that_had_a_grant_meanwhile() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"QUEUE CREATE one RATE 2 PER 60\r\nQUEUE CREATE two RATE 1 PER 0.05\r\nPUT one 0 0\r\n"
                    + b"PUT two 0 0\r\n" * 2 + b"GET two\r\n")
        await until_done(gateway)
        first, second = gateway.connect("first"), gateway.connect("second")
        first.send(b"GET one\r\n")
        second.send(b"GETB one|two\r\n")
        await asyncio.sleep(0.2)            # in this time two has a grant again
        seen = bytearray()

        async def answered() -> bool:
            await until_done(gateway)
            seen.extend(second.take())
            return bool(seen)
        async with asyncio.timeout(60):
            while not await answered():
                await asyncio.sleep(0.01)
        assert first.take().startswith(b"200 OK one ")
        assert seen.startswith(b"200 OK two ")
    with_gateway(test, automatic=False)


def test_a_queue_that_may_not_give_its_jobs_anyway_is_not_among_those_that_lack_a_grant() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"QUEUE CREATE q RATE 1 PER 60 LIMIT 1\r\n" + b"PUT q 0 0\r\n" * 2)
        await gateway.settle()
        of_pulse = gateway.cluster.machine.ready_of_pulse
        assert list(of_pulse["queue:q"]) == ["q"]
        client.send(b"QUEUE PAUSE q OUT\r\n")
        await gateway.settle()
        assert not of_pulse
        client.send(b"QUEUE RESUME q\r\n")
        await gateway.settle()
        assert list(of_pulse["queue:q"]) == ["q"]
        client.send(b"GET q\r\n")
        await gateway.settle()
        assert not of_pulse                 # its LIMIT is used up
    with_gateway(test)
