"""Users of connections: what the transcripts cannot show."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sockpqd.cluster import RefusalLog
from sockpqd.gateway import rights
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.server.connection import Connection
from sockpqd.gateway.server.port import Port
from tests.gateway.helpers.memory import MemoryGateway, MemoryTransport

KEY = b"secret-of-the-mailer"
USERS = {"mail": Account(rights.of_text("put:mail*"), KEY), "old": Account(rights.of_text("put"), KEY)}


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Callable[[MemoryGateway], Awaitable[None]]], None]:
    """Run a test with a gateway that requires users, and check that no task is left."""
    def running(test: Callable[[MemoryGateway], Awaitable[None]]) -> None:
        async def whole() -> None:
            gateway = MemoryGateway(tmp_path, None, USERS)
            await test(gateway)
            await gateway.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}
        asyncio.run(whole())
    return running


Run = Callable[[Callable[[MemoryGateway], Awaitable[None]]], None]


@pytest.mark.parametrize("way", ["vanish", "stop"])
def test_who_leaves_before_the_refusal_leaves_nothing(run: Run, way: str, caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.hub.access.failure_s = 60
        client = gateway.connect()
        client.send(b"AUTH mail wrong\r\nPING\r\n")
        await gateway.settle()
        assert client.take() == b""
        if way == "vanish":
            client.vanish()
        else:
            for connection in list(gateway.hub.connections):
                connection.hang_up()
        await gateway.settle()
        assert client.take() == b""
    run(test)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_end_of_input_behind_auth_waits_for_its_answer(run: Run) -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.hub.access.failure_s = 0.05
        client = gateway.connect()
        client.send(b"AUTH mail wrong\r\nPING\r\n")
        client.end()
        while not client.closed:
            await asyncio.sleep(0.01)
        assert client.take() == b"403 Forbidden\r\n200 OK\r\n"
    run(test)


def test_a_user_whose_rights_change_in_the_file_has_the_new_ones(run: Run) -> None:
    async def test(gateway: MemoryGateway) -> None:
        access = gateway.hub.access
        mailer, old = gateway.connect(), gateway.connect("b", "old")
        mailer.send(b"AUTH mail " + KEY + b"\r\n")
        await gateway.settle()
        assert mailer.take() == b"200 OK\r\n"
        steps: list[tuple[dict[str, Account], bytes, bytes]] = [
            (USERS, b"200 OK\r\n", b"200 OK\r\n"),
            ({"mail": Account(rights.of_text("put:print*"), KEY)}, b"403 Forbidden\r\n", b"401 Auth Required\r\n"),
            ({"old": USERS["old"]}, b"401 Auth Required\r\n", b"200 OK\r\n"),
            (USERS, b"200 OK\r\n", b"200 OK\r\n"),
        ]
        for users, *answers in steps:
            access.file_users = users
            for client, answer in zip((mailer, old), answers, strict=True):
                client.send(b"PUT mail 0 1\r\nx")
                await gateway.settle()
                assert client.take() == answer
    run(test)


@pytest.mark.parametrize(("host", "secure"), [
    ("127.0.0.1", True), ("127.3.2.1", True), ("::1", True), ("10.0.0.1", False), ("fe80::1", False),
    ("::ffff:10.0.0.1", False),
])
def test_a_client_of_this_machine_is_secure(run: Run, host: str, secure: bool) -> None:
    async def test(gateway: MemoryGateway) -> None:
        connection = Connection(gateway.hub, Port(), RefusalLog(logging.getLogger()))
        transport = MemoryTransport(connection, host)
        connection.connection_made(transport)
        assert connection.secure is secure
        connection.data_received(b"AUTH mail " + KEY + b"\r\n")
        await gateway.settle()
        assert transport.take() == (b"200 OK\r\n" if secure else b"403 Forbidden\r\n")
        transport.abort()
    run(test)


def test_refused_commands_are_logged_with_the_user(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect("10.0.0.9", "mail")
        client.send(b"GET topsecret\r\n" * 3)
        await gateway.settle()
        assert client.take() == b"403 Forbidden\r\n" * 3
    run(test)
    assert [record.getMessage() for record in caplog.records] == [
        "refused: 10.0.0.9:1: not permitted, user mail",
    ]


def test_a_challenge_is_no_error_in_the_metrics(run: Run) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"GET q\r\nAUTH mail\r\n")
        await gateway.settle()
        assert client.take().startswith(b"401 Auth Required\r\n334 ")
        assert gateway.hub.tally.errors == {b"401": 1}
    run(test)
