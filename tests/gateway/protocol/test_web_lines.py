"""A web page is no client: what a browser sends ends the connection, and nothing after it is executed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.rights import of_words
from tests.gateway.helpers.memory import MemoryGateway

HEADERS = b"Host: 127.0.0.1:11361\r\nContent-Length: 99\r\nContent-Type: text/plain\r\n\r\n"
PUT = b"PUT q 0 1\r\nx"


def with_gateway(test: Callable[[MemoryGateway], Awaitable[None]], users: dict[str, Account] | None = None) -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), users=users)
        try:
            await test(gateway)
        finally:
            await gateway.close()
    asyncio.run(run())


@pytest.mark.parametrize("request_line", [
    b"POST / HTTP/1.1", b"GET /?a=b HTTP/1.1", b"GET / HTTP/1.0", b"PUT /q HTTP/1.1", b"DELETE /q HTTP/1.1",
    b"OPTIONS * HTTP/1.1", b"PING / HTTP/1.1", b"AUTH / HTTP/1.1", b"POST /a b c HTTP/1.1", b"PRI * HTTP/2",
    b"\r\n\r\nPOST / HTTP/1.1", b"QUEUE / HTTP/1.1", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
])
def test_a_request_line_ends_the_connection(request_line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        for users in (None, "app"):         # a legacy port acts as a user
            client = gateway.connect(user=users)
            client.send(request_line + b"\r\n" + PUT)
            await gateway.settle()
            assert client.take() == b"400 Bad Command\r\n"
            assert client.closed
        assert gateway.cluster.machine.ready("q") == 0
    with_gateway(test)


@pytest.mark.parametrize("line", [b"Host: 127.0.0.1", b"host:x", b"HOST: a\rb", b"Host:"])
def test_a_line_that_names_the_host_ends_the_connection_wherever_it_is(line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        for before in (b"PING\r\n", b"\r\n", b"PUTS 2\r\nq 0 1\r\nx", b"accept: */*\r\n"):
            client = gateway.connect()
            client.send(before + line + b"\r\n" + PUT)
            await gateway.settle()
            assert client.take().endswith(b"400 Bad Command\r\n")
            assert client.closed
        assert gateway.cluster.machine.ready("q") == 0
    with_gateway(test)


def test_it_makes_no_difference_how_it_arrives() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        for byte in b"POST / HTTP/1.1\r\n" + HEADERS + PUT:
            client.send(bytes([byte]))
            await gateway.settle()
        assert client.take() == b"400 Bad Command\r\n"
        assert gateway.cluster.machine.ready("q") == 0
    with_gateway(test)


def test_where_users_are_required_as_well() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"POST / HTTP/1.1\r\n" + HEADERS + b"AUTH op 0123456789abcdef\r\n" + PUT)
        await gateway.settle()
        assert client.take() == b"400 Bad Command\r\n"
        assert client.closed
    with_gateway(test, {"op": Account(of_words(["admin"]), key=b"0123456789abcdef")})


def test_data_and_commands_may_look_like_it() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        lines = b"POST / HTTP/1.1\r\nHost: a\r\n"
        client.send(b"PUT q 0 %d\r\n%bPOST / HTTP/1.1\r\nPING\r\n" % (len(lines), lines))
        await gateway.settle()
        assert client.take() == b"200 OK\r\n400 Bad Command\r\n200 OK\r\n", "only the first line is a request line"
        assert not client.closed
    with_gateway(test)
