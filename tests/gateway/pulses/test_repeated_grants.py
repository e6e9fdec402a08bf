"""Grants that a session gets again: the same grant, which the window counts from the last time on."""

from __future__ import annotations

import asyncio
import re

import pytest

from sockpqd.core import Pulse, Request, TouchSession
from sockpqd.gateway.pulses.window import GrantId, Window
from sockpqd.gateway.pulses.windows import WRITTEN_MS_MAX
from tests.gateway.helpers.fake_cluster import returned
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, attached, with_gateway
from tests.gateway.pulses.writes import Writes

SESSION = b"SESSION 1_9f3c5a7e11d0c2b4\r\n"
GO = re.compile(rb"200 OK GO (\d+) 0\r\n")
JOB = re.compile(rb"200 OK q (\d+) 0 1\r\nx")
TURN_OR_JOBS = re.compile(rb"200 OK GO \d+ 0\r\n|200 OK \d+\r\nq .*", re.DOTALL)
ONE = GrantId("ticket", 1)


def back(gateway: MemoryGateway, command: bytes) -> MemoryClient:
    """Return a client that comes back to the session and repeats a command."""
    client = gateway.connect("again")
    client.send(SESSION + command)
    return client


async def done(gateway: MemoryGateway, client: MemoryClient, commands: bytes) -> bytes:
    """Return the answers of commands that do not block."""
    client.send(commands)
    await gateway.settle()
    while gateway.cluster.in_flight:
        gateway.cluster.commit()
        await gateway.settle()
    return client.take()


def test_what_is_in_the_window_is_told_again_at_once_and_counts_from_then_on() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        assert await done(gateway, client, b"PULSE CREATE p RATE 1 PER 0.3\r\nREQ 1 PULSE WAIT p\r\n") == (
            b"200 OK\r\n200 OK GO 1 0\r\n")
        await asyncio.sleep(0.15)
        again = back(gateway, b"REQ 1 PULSE WAIT p\r\n")
        other = gateway.connect("other")
        writes = Writes([again, other], GO)
        await gateway.settle()
        assert writes.order == [0]
        other.send(b"PULSE WAIT p\r\n")
        await asyncio.wait_for(writes.come(2), 30)
        assert writes.keep(1, 0.3)
    with_gateway(test)


def test_what_is_not_waits_for_room_before_all_others() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        assert await done(gateway, client, b"PULSE CREATE p RATE 1 PER 0.2\r\nREQ 1 PULSE WAIT p\r\n") == (
            b"200 OK\r\n200 OK GO 1 0\r\n")
        await asyncio.sleep(0.25)
        others = [gateway.connect(str(number)) for number in range(2)]
        again = gateway.connect("again")
        writes = Writes([*others, again], GO)
        for other in others:
            other.send(b"PULSE WAIT p\r\n")
        await gateway.settle()
        again.send(SESSION + b"REQ 1 PULSE WAIT p\r\n")
        await asyncio.wait_for(writes.come(3), 30)
        assert writes.order == [0, 2, 1]
        assert writes.keep(1, 0.2)
    with_gateway(test)


@pytest.mark.parametrize("verb", [b"GET", b"GETB"])
def test_a_job_waits_for_room_as_well(verb: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        await done(gateway, client, b"QUEUE CONFIG q RATE 1 PER 0.2\r\n" + 3 * b"PUT q 0 1\r\nx")
        assert JOB.fullmatch(await done(gateway, client, b"REQ 1 " + verb + b" q\r\n"))
        await asyncio.sleep(0.25)
        other, again, last = (gateway.connect(name) for name in ("other", "again", "last"))
        writes = Writes([other, again, last], JOB)
        other.send(b"GETB q\r\n")
        await asyncio.wait_for(writes.come(1), 30)
        again.send(SESSION + b"REQ 1 " + verb + b" q\r\n")
        await gateway.settle()
        last.send(b"GETB q\r\n")
        await asyncio.wait_for(writes.come(3), 30)
        assert writes.order == [0, 1, 2]
        assert writes.keep(1, 0.2)
    with_gateway(test)


def test_the_room_of_a_client_that_does_not_wait_for_its_job_goes_on() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        await done(gateway, client, b"QUEUE CONFIG q RATE 1 PER 0.2\r\n" + 3 * b"PUT q 0 1\r\nx")
        assert JOB.fullmatch(await done(gateway, client, b"REQ 1 GETB q\r\n"))
        await asyncio.sleep(0.25)
        other, again, last = (gateway.connect(name) for name in ("other", "again", "last"))
        writes = Writes([other, last], JOB)
        other.send(b"GETB q\r\n")
        await asyncio.wait_for(writes.come(1), 30)
        again.send(SESSION + b"REQ 1 GETB q\r\n")
        await gateway.settle()
        again.vanish()
        last.send(b"GETB q\r\n")
        await asyncio.wait_for(writes.come(2), 30)
        assert writes.keep(1, 0.2)
    with_gateway(test)


@pytest.mark.parametrize("verb", [b"GET", b"GETB"])
def test_more_jobs_than_the_pulse_gives_by_now_go_back_but_for_so_many(verb: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        commands = b"PULSE CREATE p RATE 3 PER 0.2\r\nQUEUE CONFIG q PULSE p\r\n" + 3 * b"PUT q 0 1\r\nx"
        await done(gateway, client, commands)
        assert (await done(gateway, client, b"REQ 1 " + verb + b" q COUNT 3\r\n")).startswith(b"200 OK 3\r\n")
        await done(gateway, client, b"PULSE CONFIG p RATE 1\r\n")
        await asyncio.sleep(0.25)
        other, again = gateway.connect("other"), gateway.connect("again")
        writes = Writes([other, again], TURN_OR_JOBS)
        other.send(b"PULSE WAIT p\r\n")
        await asyncio.wait_for(writes.come(1), 30)
        again.send(SESSION + b"REQ 1 " + verb + b" q COUNT 3\r\n")
        await asyncio.wait_for(writes.come(2), 30)
        assert writes.order == [0, 1]
        assert writes.keep(1, 0.2)
        assert again.take().endswith(b"200 OK 1\r\nq 1 0 1\r\nx")
        assert returned(gateway.cluster) == [2, 3]
        assert gateway.cluster.machine.ready("q") == 2
        assert await done(gateway, client, b"PULSE CONFIG p RATE 3\r\nREQ 1 " + verb + b" q COUNT 3\r\n") == (
            b"200 OK\r\n200 OK 1\r\nq 1 0 1\r\nx")
    with_gateway(test)


@pytest.mark.parametrize("verb", [b"GET", b"GETB"])
def test_a_job_that_had_to_wait_for_long_is_told(verb: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        await done(gateway, client, b"QUEUE CONFIG q RATE 1 PER 0.2\r\n" + 2 * b"PUT q 0 1\r\nx")
        assert JOB.fullmatch(await done(gateway, client, b"REQ 1 " + verb + b" q EXPIRE 60\r\n"))
        await asyncio.sleep(0.25)
        other, again = gateway.connect("other"), gateway.connect("again")
        writes = Writes([other, again], JOB)
        other.send(b"GETB q\r\n")
        await asyncio.wait_for(writes.come(1), 30)
        again.send(SESSION + b"REQ 1 " + verb + b" q EXPIRE 60\r\n")
        await gateway.settle()
        gateway.cluster.now_ms += 2 * WRITTEN_MS_MAX
        await asyncio.wait_for(writes.come(2), 30)
        assert writes.keep(1, 0.2)
    with_gateway(test)


def test_a_client_whose_job_waits_for_room_keeps_its_session() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway, b"SESSION TTL 1\r\n")
        await done(gateway, client, b"QUEUE CONFIG q RATE 1 PER 1\r\nPUT q 0 1\r\nx")
        assert JOB.fullmatch(await done(gateway, client, b"REQ 1 GETB q EXPIRE 60\r\n"))
        client.vanish()
        await asyncio.sleep(1.1)
        assert GO.fullmatch(await done(gateway, gateway.connect("other"), b"PULSE WAIT queue:q\r\n"))
        again = back(gateway, b"REQ 1 GETB q EXPIRE 60\r\n")
        writes = Writes([again], JOB)
        await asyncio.wait_for(writes.come(1), 30)
        assert gateway.cluster.operations(TouchSession)
    with_gateway(test)


def test_a_client_that_leaves_while_its_job_waits_for_room_is_not_asked_for() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        await done(gateway, client, b"QUEUE CONFIG q RATE 1 PER 0.2\r\n" + 2 * b"PUT q 0 1\r\nx")
        assert JOB.fullmatch(await done(gateway, client, b"REQ 1 GETB q\r\n"))
        await asyncio.sleep(0.25)
        other, again = gateway.connect("other"), gateway.connect("again")
        writes = Writes([other], JOB)
        other.send(b"GETB q\r\n")
        await asyncio.wait_for(writes.come(1), 30)
        again.send(SESSION + b"REQ 1 GETB q\r\n")
        await gateway.settle()
        asked = len(gateway.cluster.operations(Request))
        again.vanish()
        await asyncio.sleep(0.3)
        assert len(gateway.cluster.operations(Request)) == asked
        assert gateway.hub.pulse_windows.of("queue:q").in_flight == 0
    with_gateway(test)


def test_a_grant_that_is_written_again_leaves_its_first_place() -> None:
    window, pulse = Window(), Pulse("p", rate=2, now=2, per_ms=1000)
    for at in (0.0, 0.5):
        window.in_flight += 1
        window.write(1, (ONE,))
        window.stamp(at)
    assert window.free(pulse, 0.5) == 1
    assert window.holds(ONE, pulse, 0.5)
    assert window.free(pulse, 1.4) == 1
    assert window.free(pulse, 1.6) == 2
    assert not window.holds(ONE, pulse, 1.6)


def test_what_has_left_comes_back_when_the_window_grows_by_a_step() -> None:
    window, pulse = Window(), Pulse("p", rate=1, now=1, per_ms=1000, step_ms=60_000)
    window.in_flight += 1
    window.write(1)
    window.stamp(0.0)
    assert window.free(pulse, 30.0) == 1
    pulse.pause_ms = pulse.step_ms
    assert window.free(pulse, 30.1) == 0
    assert window.free(pulse, 61.1) == 1
