"""Slots of connections, and the trial of administrators when all slots are taken."""

from __future__ import annotations

import asyncio
import resource
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from sockpqd.connections import RESERVED_SLOTS, SILENT_S, TRIALS_PER_ADDRESS, ConnectionSlots, SlotKind
from sockpqd.gateway import rights
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.limits import HANDSHAKES_MAX, REFUSED_PLACES, Limits
from sockpqd.gateway.process.descriptor_limit import OTHER_FILES, fit, make_room
from tests.gateway.helpers.memory import MemoryGateway

USERS = {
    "op": Account(rights.of_words(["admin"]), key=b"0123456789abcdef"),
    "worker": Account(rights.of_words(["get"]), key=b"fedcba9876543210"),
}
BUSY = b"503 Busy\r\n"


def with_gateway(
    test: Callable[[MemoryGateway], Awaitable[None]], limits: Limits, users: Mapping[str, Account] | None = None,
) -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), limits, users)
        try:
            await test(gateway)
        finally:
            await gateway.close()
    asyncio.run(run())


def test_one_address_gets_half_of_the_places_and_this_machine_all() -> None:
    places = ConnectionSlots(Limits(connections_max=10))
    assert [places.take("10.0.0.1") for _ in range(6)] == [SlotKind.GRANTED] * 5 + [SlotKind.REFUSED]
    assert places.take("::ffff:10.0.0.1") is SlotKind.REFUSED
    places.leave("10.0.0.1")
    assert places.take("::ffff:10.0.0.1") is SlotKind.GRANTED
    assert [places.take("127.0.0.1") for _ in range(5 + RESERVED_SLOTS)] == [SlotKind.GRANTED] * (5 + RESERVED_SLOTS)
    assert places.take("::1") is SlotKind.REFUSED
    places.leave("127.0.0.1")
    assert places.take("::1") is SlotKind.GRANTED


def test_a_network_of_ipv6_is_one_address() -> None:
    places = ConnectionSlots(Limits(connections_max=10, connections_per_address_max=2))
    assert [places.take(f"2001:db8::{number}") for number in range(1, 4)] == [
        SlotKind.GRANTED, SlotKind.GRANTED, SlotKind.REFUSED]
    assert places.take("2001:db8:0:1::1") is SlotKind.GRANTED
    assert places.take("fe80::1%eth0") is SlotKind.GRANTED


def test_when_all_places_are_taken_others_are_on_trial_few_of_each_address() -> None:
    places = ConnectionSlots(Limits(connections_max=4, connections_per_address_max=100))
    for _ in range(4):
        assert places.take("10.0.0.1") is SlotKind.GRANTED
    taken = [places.take("10.0.0.2") for _ in range(TRIALS_PER_ADDRESS + 1)]
    assert taken == [SlotKind.PROVISIONAL] * TRIALS_PER_ADDRESS + [SlotKind.REFUSED]
    places.end_trial("10.0.0.2")
    assert places.take("10.0.0.2") is SlotKind.PROVISIONAL
    places.leave("10.0.0.1")
    for _ in range(TRIALS_PER_ADDRESS):
        assert places.take("10.0.0.3") is SlotKind.PROVISIONAL, "the further places are taken still"


def test_on_trial_any_other_command_than_auth_is_refused() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.connect("10.0.0.1")
        commands = (b"PING\r\n", b"PUT q 0 1\r\nx", b"BEGIN\r\n", b"nonsense\r\n", b"QUIT\r\n")
        for number, command in enumerate(commands, start=2):
            client = gateway.connect(f"10.0.0.{number}")
            client.send(command + b"TOTAL\r\n")
            await gateway.settle()
            assert client.take() == BUSY
            assert client.closed
        assert gateway.cluster.machine.ready("q") == 0
    with_gateway(test, Limits(connections_max=1))


def test_an_administrator_gets_a_place_when_all_are_taken_and_others_do_not() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.connect("10.0.0.1")
        operator = gateway.connect("10.0.0.2")
        operator.send(b"AUTH op 0123456789abcdef\r\nPING\r\n")
        await gateway.settle()
        assert operator.take() == b"200 OK\r\n200 OK\r\n"
        worker = gateway.connect("10.0.0.3")
        worker.send(b"AUTH worker fedcba9876543210\r\nPING\r\n")
        await gateway.settle()
        assert worker.take() == BUSY
        guess = gateway.connect("10.0.0.4")
        guess.send(b"AUTH op wrong\r\nPING\r\n")
        await gateway.settle()
        assert guess.take() == b"403 Forbidden\r\n"
        assert guess.closed
        asked = gateway.connect("10.0.0.5")
        asked.send(b"AUTH op\r\nPING\r\n")
        await gateway.settle()
        assert asked.take().startswith(b"334 ")
        await gateway.settle()
        assert asked.closed, "whoever was asked says nothing else"
    with_gateway(test, Limits(connections_max=1), USERS)


def test_who_says_nothing_on_trial_is_refused_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.gateway.server.connection.TRIAL_S", 0.01)

    async def test(gateway: MemoryGateway) -> None:
        gateway.connect("10.0.0.1")
        clients = [gateway.connect("10.0.0.2") for _ in range(TRIALS_PER_ADDRESS)]
        clients[0].send(b"PUT q 0 10\r\n")
        while not all(client.closed for client in clients):
            await asyncio.sleep(0.001)
        assert [client.take() for client in clients] == [BUSY] * TRIALS_PER_ADDRESS
        for client in clients:
            client.vanish()
        await gateway.settle()
        again = gateway.connect("10.0.0.2")
        again.send(b"PING\r\n")
        assert again.take() == BUSY
    with_gateway(test, Limits(connections_max=1))


def test_a_place_is_free_again_when_its_client_has_gone() -> None:
    async def test(gateway: MemoryGateway) -> None:
        for _ in range(10):
            clients = [gateway.connect("10.0.0.1"), gateway.connect("10.0.0.2")]
            for client in clients:
                client.send(b"PING\r\n")
                assert client.take() == b"200 OK\r\n"
                client.vanish()
            await gateway.settle()
    with_gateway(test, Limits(connections_max=2))


def test_who_acknowledges_nothing_is_cut_and_who_only_does_not_read_is_not() -> None:
    async def test(gateway: MemoryGateway) -> None:
        def info(probes: int, unacknowledged: int, last_acknowledged_s: float) -> bytes:
            return struct.pack("=3xB20xI28xI", probes, unacknowledged, int(last_acknowledged_s * 1000))
        clients = []
        for said in (info(0, 3, SILENT_S + 1), info(1, 0, SILENT_S + 1), info(1, 3, SILENT_S - 1), info(0, 0, 9e5)):
            clients.append(gateway.connect())
            clients[-1].transport.socket.info = said
        assert [client.transport.aborted for client in clients] == [False] * 4
        for accepted in list(gateway.hub.connection_manager.accepted):
            accepted.check(asyncio.get_running_loop().time())
        assert [client.transport.aborted for client in clients] == [True, True, False, False]
    with_gateway(test, Limits())


def test_as_many_clients_as_the_process_may_open_files_for(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(connections_max=1000)
    others = OTHER_FILES + RESERVED_SLOTS + REFUSED_PLACES
    assert fit(limits, None, tls=True) == (limits, HANDSHAKES_MAX)
    assert fit(limits, 1000 + others, tls=False) == (limits, 0)
    assert not caplog.messages
    assert fit(limits, 999 + others, tls=False).limits.connections_max == 999
    assert "lowered from 1000 to 999" in caplog.text
    with_tls = fit(limits, 800 + others, tls=True)
    assert with_tls.limits.connections_max + with_tls.handshakes_max == 800
    assert fit(limits, 10, tls=True).limits.connections_max >= 1


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(500, before[1]), before[1]))
        make_room(Limits(), 200, tls=False)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
