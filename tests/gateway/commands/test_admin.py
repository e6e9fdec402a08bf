"""Operators' commands run to their end and are answered in order, whatever becomes of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sockpqd.cluster.api import NodeStatus, NotLeader, NotPossible, OutcomeUnknown
from sockpqd.core import (
    Accepted,
    ChangeInProgress,
    ChangeMember,
    Joined,
    LastNode,
    Machine,
    MemberChange,
    Mirrored,
    NodeExists,
    NotYet,
    ReplicaRefused,
    UnknownNode,
)
from sockpqd.gateway.protocol import responses
from tests.gateway.helpers.memory import MemoryGateway, with_gateway

COMMANDS = {        # the method of the cluster each one calls
    b"OFFLINE": "go_offline",
    b"CLUSTER OFFLINE": "switch_service",
    b"CLUSTER ONLINE": "switch_service",
    b"CLUSTER ADD n4 10.0.0.4 11362 10.0.0.4 11361": "add_node",
    b"CLUSTER REMOVE n2": "remove_node",
    b"CLUSTER TRANSFER": "transfer",
    b"CLUSTER TRANSFER n2": "transfer",
    b"CLUSTER SNAPSHOT": "compact",
    b"CLUSTER PROMOTE": "promote",
}


def replace(gateway: MemoryGateway, method: str, work: Callable[[], Awaitable[object]]) -> None:
    """Let the cluster do this instead."""
    async def replacement(*arguments: object) -> object:
        return await work()
    setattr(gateway.cluster, method, replacement)


def outcome(error: Exception) -> Callable[[], Awaitable[object]]:
    async def fail() -> object:
        raise error
    return fail


def result(value: object) -> Callable[[], Awaitable[object]]:
    async def give() -> object:
        return value
    return give


def test_addresses_reach_the_cluster_as_the_configuration_writes_them() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk(b"CLUSTER ADD n4 2001:DB8::5 011362 host.example 65535\r\nCLUSTER REMOVE n4\r\n")
        assert gateway.cluster.operations(ChangeMember) == [
            ChangeMember("n4", MemberChange.JOIN, peer="[2001:db8::5]:11362", client="host.example:65535"),
            ChangeMember("n4", MemberChange.REMOVE, 0),
        ]
    with_gateway(test)


@pytest.mark.parametrize(("method", "reply", "line"), [
    ("add_node", Joined(7), b"200 OK 7"),
    ("add_node", NodeExists(), b"409 Node Exists"),
    ("add_node", ChangeInProgress(), b"409 Change In Progress"),
    ("remove_node", Accepted(), b"200 OK"),
    ("remove_node", UnknownNode(), b"404 Node Not Found"),
    ("remove_node", LastNode(), b"409 Last Node"),
    ("remove_node", ChangeInProgress(), b"409 Change In Progress"),
    ("remove_node", NotPossible("quorum"), b"409 Not Possible quorum"),
    ("transfer", NotPossible("alone"), b"409 Not Possible alone"),
    ("compact", 815, b"200 OK 815"),
    ("promote", Mirrored(4711), b"200 OK 4711"),
    ("promote", ReplicaRefused("no mirror"), b"409 No Replica"),
    ("promote", NotYet(), b"501 Not Yet"),
])
def test_each_reply_has_its_line(method: str, reply: object, line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        command = next(command for command, called in COMMANDS.items() if called == method)
        replace(gateway, method, result(reply))
        assert await gateway.talk(command + b"\r\n") == line + b"\r\n"
    with_gateway(test)


@pytest.mark.parametrize("command", COMMANDS)
def test_while_the_command_takes_its_time_nothing_behind_it_is_executed(command: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        go_on = asyncio.Event()

        async def work() -> object:
            await go_on.wait()
            raise NotLeader

        replace(gateway, COMMANDS[command], work)
        client, other = gateway.connect(), gateway.connect()
        client.send(b"PUT q 0 1\r\nx" + command + b"\r\nPUT q 0 1\r\ny")
        await gateway.settle()
        client.send(b"PING\r\nQUIT\r\n")
        client.end()
        await gateway.settle()
        assert client.take() == b"200 OK\r\n"
        assert gateway.cluster.machine.ready("q") == 1
        other.send(b"PUT q 0 1\r\nz")
        await gateway.settle()
        assert other.take() == b"200 OK\r\n"        # the others are served meanwhile
        go_on.set()
        await gateway.settle()
        assert client.take() == b"500 Offline Mode\r\n200 OK\r\n200 OK\r\n221 Goodbye\r\n"
        assert client.closed
    with_gateway(test)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("error", [None, NotLeader(), OutcomeUnknown()])
def test_a_command_whose_client_has_gone_runs_to_its_end(command: bytes, error: Exception | None) -> None:
    async def test(gateway: MemoryGateway) -> None:
        go_on = asyncio.Event()
        ended = False

        async def work() -> object:
            nonlocal ended
            await go_on.wait()
            ended = True
            if error is not None:
                raise error
            return NotPossible("x") if b"TRANSFER" in command else 1 if b"SNAPSHOT" in command else Accepted()

        replace(gateway, COMMANDS[command], work)
        client = gateway.connect()
        client.send(command + b"\r\n")
        await gateway.settle()
        client.vanish()
        await gateway.settle()
        assert not gateway.hub.connections
        assert len(gateway.hub.work) == 1
        go_on.set()
        await gateway.settle()
        assert ended
        assert not gateway.hub.work
        assert client.take() == b""
    with_gateway(test)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bug_closes_the_connection_and_is_logged(command: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        replace(gateway, COMMANDS[command], outcome(ValueError("a bug")))
        client, gone = gateway.connect(), gateway.connect()
        client.send(command + b"\r\nPING\r\n")
        gone.send(command + b"\r\n")
        await asyncio.sleep(0)
        gone.vanish()
        await gateway.settle()
        assert client.take() == b""
        assert client.closed
        assert caplog.text.count("ValueError: a bug") == 2
        assert await gateway.talk(b"PING\r\n") == b"200 OK\r\n"
    with_gateway(test)


def test_an_outcome_nobody_knows_closes_behind_what_was_answered() -> None:
    async def test(gateway: MemoryGateway) -> None:
        replace(gateway, "remove_node", outcome(OutcomeUnknown()))
        client = gateway.connect()
        client.send(b"PUT q 0 1\r\nxCLUSTER REMOVE n2\r\nPUT q 0 1\r\ny")
        await gateway.settle()
        assert client.take() == b"200 OK\r\n"
        assert client.closed
        assert gateway.cluster.machine.ready("q") == 1
    with_gateway(test)


def test_a_snapshot_that_cannot_be_written_is_busy_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.cluster.broken_disk = True
        assert await gateway.talk(b"CLUSTER SNAPSHOT\r\nPING\r\n") == b"503 Busy\r\n200 OK\r\n"
    with_gateway(test)
    assert "CLUSTER SNAPSHOT failed: no space left on device" in caplog.text


@pytest.mark.parametrize("client", ["", ":0"])
def test_an_address_nobody_knows_is_a_dash(client: str) -> None:
    node = NodeStatus(3, "n3", client, "FOLLOWER", True, 1, 2, 0, "0.1.0", -3, 2, 1)
    line = b"3 n3 - - FOLLOWER ONLINE 1 2 0 0.1.0 -3 2 1\r\n"
    assert responses.cluster_status([node], Machine()) == b"200 OK 1\r\n" + line
    assert responses.cluster_leader(node) == b"200 OK 3 - -\r\n"
