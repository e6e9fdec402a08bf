"""SPREAD: grants one by one, and a client that does not read does not hold up the others."""

from __future__ import annotations

import asyncio
import re

import pytest

from sockpqd.core import Pulse
from sockpqd.gateway.pulses.window import STALLED_S, GrantId, Window
from tests.gateway.helpers.memory import MemoryGateway, attached, with_gateway
from tests.gateway.pulses.writes import Writes
from tests.gateway.waiting.test_grant_waiters import GO, create, waiting

JOB = re.compile(rb"200 OK q \d+ 0 0\r\n")


@pytest.mark.parametrize(("settings", "gap_s"), [(b"RATE 10 PER 0.5 SPREAD", 0.05), (b"RATE 1 PER 0.05 SPREAD", 0.05)])
def test_turns_come_one_by_one(settings: bytes, gap_s: float) -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, settings)
        writes = Writes(waiting(gateway, 12), GO)
        await asyncio.wait_for(writes.come(12), 30)
        assert writes.order == sorted(writes.order)
        assert writes.keep(1, gap_s)
    with_gateway(test)


def test_numbered_and_other_turns_keep_the_same_gaps() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 10 PER 0.5 SPREAD")
        clients = [await attached(gateway) if number % 2 else gateway.connect() for number in range(8)]
        writes = Writes(clients, GO)
        for number, client in enumerate(clients):
            client.send(b"REQ 1 PULSE WAIT p\r\n" if number % 2 else b"PULSE WAIT p\r\n")
        await asyncio.wait_for(writes.come(8), 30)
        assert writes.keep(1, 0.05)
    with_gateway(test)


def test_jobs_of_a_queue_with_a_rate_come_one_by_one() -> None:
    async def test(gateway: MemoryGateway) -> None:
        setup = gateway.connect()
        setup.send(b"QUEUE CREATE q RATE 10 PER 0.5 SPREAD\r\n" + b"PUT q 0 0\r\n" * 8)
        await gateway.settle()
        clients = [gateway.connect() for _ in range(8)]
        writes = Writes(clients, JOB)
        for client in clients:
            client.send(b"GETB q\r\n")
        await asyncio.wait_for(writes.come(8), 30)
        assert writes.keep(1, 0.05)
    with_gateway(test)


def test_a_client_that_does_not_read_holds_up_nobody_for_long() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 10 PER 0.5 SPREAD")
        silent = gateway.connect()
        silent.send(b"PULSE WAIT p\r\n")
        window = gateway.hub.pulse_windows.of("p")
        window.claim(1, asyncio.get_running_loop().time())          # a grant that will never be written
        writes = Writes(waiting(gateway, 4), GO)
        await asyncio.wait_for(writes.come(4), 30)
        assert writes.keep(1, 0.05)
        assert window.in_flight == 1
    with_gateway(test)


def spread(now: int = 4, per_ms: int = 1000, pause_ms: int = 0) -> Pulse:
    return Pulse("p", rate=now, now=now, per_ms=per_ms, pause_ms=pause_ms, spread=True)


def test_there_is_room_for_one_when_the_gap_is_over() -> None:
    window, pulse = Window(), spread()
    assert window.free(pulse, 10.0) == 1
    window.claim(1, 10.0)
    assert window.free(pulse, 10.0) == 0
    window.write(1)
    assert window.free(pulse, 10.1) == 0            # its time is not taken yet
    assert window.opens_s(pulse, 10.1) is None
    window.stamp(10.1)
    assert window.free(pulse, 10.34) == 0
    assert window.opens_s(pulse, 10.34) == pytest.approx(0.01)
    assert window.free(pulse, 10.36) == 1


def test_the_gap_grows_with_the_pause_and_as_the_pulse_slows_down() -> None:
    window = Window(1, 10.0)
    assert [window.free(spread(), now) for now in (10.2, 10.3)] == [0, 1]
    assert [window.free(spread(now=2), now) for now in (10.4, 10.6)] == [0, 1]
    assert [window.free(spread(now=2, pause_ms=1000), now) for now in (10.9, 11.1)] == [0, 1]


def test_no_more_than_the_rate_are_in_a_window_even_so() -> None:
    window, pulse = Window(), spread()
    for number in range(4):
        window.claim(1, 10 + number / 4)
        window.write(1)
        window.stamp(10 + number / 4)
    assert window.free(pulse, 11.0) == 0
    assert window.free(pulse, 11.01) == 1


def test_a_grant_that_is_not_written_holds_up_the_next_for_a_while_only() -> None:
    window, pulse = Window(), spread()
    window.claim(1, 10.0)
    assert window.free(pulse, 10.0, own=1) == 1
    assert window.free(pulse, 10 + 0.99 * STALLED_S) == 0
    assert window.opens_s(pulse, 10.0) == pytest.approx(STALLED_S)
    assert window.free(pulse, 10 + STALLED_S) == 1


def test_the_first_grant_of_a_new_leader_keeps_the_gap_too() -> None:
    assert [Window(3, 10.0).free(spread(), now) for now in (10.0, 10.2, 10.3)] == [0, 0, 1]


def test_a_grant_that_is_late_is_written_only_if_the_gaps_allow_it() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 2 PER 60 SPREAD")
        claim, loop = gateway.hub.pulse_windows.claim("p"), asyncio.get_running_loop()
        window, stamp_ms = claim.window, gateway.cluster.time_ms
        assert claim.may_write(stamp_ms)
        window.claim(1, loop.time())
        window.write(1, (GrantId("ticket", 7),))
        window.stamp(loop.time())
        assert not claim.may_write(stamp_ms)
        assert not claim.may_write(stamp_ms, (GrantId("ticket", 8),))
        assert claim.may_write(stamp_ms, (GrantId("ticket", 7),))       # it is written again
    with_gateway(test)
