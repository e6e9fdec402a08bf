"""All doors of a node: each gives its connections a place, timeouts and a share in the memory account.

A new kind of door fails here until it says how it is opened, what half a request is, and what asks for much.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from msgspec import Struct
from msgspec.structs import replace

from devcluster.authority import Authority
from sockpqd.connections import SEND_BUFFER_BYTES, ConnectionManager, MemoryAccount
from sockpqd.connections.limits import KERNEL_BYTES_MIN
from sockpqd.gateway.beanstalkd import BeanstalkdListener
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.dashboard.site import PATHS
from sockpqd.gateway.limits import HANDSHAKES_MAX, KIB, MIB, Limits
from sockpqd.gateway.monitoring import HttpPages, LoopLag, Sources, http, start
from sockpqd.gateway.server import doors
from sockpqd.gateway.server.doors import BEANSTALKD, HTTP, KINDS, LEGACY, NATIVE, DoorKind, Doors
from sockpqd.gateway.server.port import Port
from tests.gateway.helpers.dashboard import Site, Users
from tests.gateway.helpers.sockets import PATIENCE_S, Client, Gateway
from tests.key_updates import KeyUpdater

ROOT = Path(__file__).parents[3]

Address = tuple[str, int]
Close = Callable[[], Awaitable[None]]
HOST = "127.0.0.1"
BODY = 60 * KIB                 # what each kind of door takes
PLACES, OPERATORS_PLACES, CONNECTIONS_OF_HTTP = 8, 16, 96
MORE = 20                       # connections than there are places
RECORD_BYTES = 16 << 10         # the largest of TLS
LAST_COMMANDS = 4000            # whose answers the kernel takes
UPDATES, UPDATE_BYTES = 2000, 27    # of keys, and what each is answered with


@pytest.fixture(autouse=True)
def long_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a connection of HTTP not end by itself in the middle of a test, however slow the machine is."""
    monkeypatch.setattr(http, "CONNECTION_S", 600)


class Opened(Struct):
    """An open listener, and what ends it."""

    address: Address
    close: Close


class Way(Struct):
    """A kind of listener: how it is opened, and what its clients send."""

    open: Callable[[Gateway, ssl.SSLContext | None], Awaitable[Opened]]
    half: bytes                 # the beginning of something long
    refused: bytes | None       # what the whole of it is answered when there is no room; None: it is small
    answered: bytes             # something that is answered
    filler: bytes = bytes(1)    # what it goes on with

    def half_and(self, count: int) -> bytes:
        """Return the beginning, and this many bytes after it."""
        return self.half + (self.filler * (count // len(self.filler) + 1))[:count]


async def _open_native(gateway: Gateway, context: ssl.SSLContext | None) -> Opened:
    return Opened(await gateway.server.start(HOST, 0, context=context), gateway.server.close)


async def _open_legacy(gateway: Gateway, context: ssl.SSLContext | None) -> Opened:
    assert context is None
    return Opened(await gateway.server.start(HOST, 0, port=Port("app")), gateway.server.close)


async def _open_beanstalkd(gateway: Gateway, context: ssl.SSLContext | None) -> Opened:
    listener = BeanstalkdListener(gateway.hub, gateway.doors, (HOST, 0), Port(), job_bytes_max=MIB, context=context)
    return Opened(await listener.start(), listener.close)


async def _open_http(gateway: Gateway, context: ssl.SSLContext | None) -> Opened:
    pages = HttpPages(Sources(gateway.hub, "1", LoopLag(), lambda: 0, list))
    http = await start(gateway.doors, HOST, 0, context, pages, gateway.hub)
    return Opened(http.address, http.close)


NATIVE_WAY = Way(_open_native, b"PUT q 0 %d\r\n" % BODY, b"503 Busy\r\n", b"PING\r\n")
WAYS = {
    NATIVE: NATIVE_WAY,
    LEGACY: replace(NATIVE_WAY, open=_open_legacy),
    BEANSTALKD: Way(_open_beanstalkd, b"put 0 0 60 %d\r\n" % BODY, b"OUT_OF_MEMORY\r\n", b"list-tube-used\r\n"),
    HTTP: Way(_open_http, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", None,
              b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"X: " + b"x" * 2000 + b"\r\n"),
}
EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


class Visitors:
    """A node with one listener, and its clients."""

    def __init__(self, gateway: Gateway, way: Way, address: Address) -> None:
        self.gateway = gateway
        self.hub = gateway.hub
        self.way = way
        self.clients: list[Client] = []
        self._address = address

    async def connect(self, data: bytes = b"", receive_buffer: int | None = None) -> Client:
        connection = socket.socket()
        connection.setblocking(False)
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(connection, self._address)
        client = Client(*await asyncio.open_connection(sock=connection))
        client.send(data)
        self.clients.append(client)
        return client

    async def until(self, condition: Callable[[], bool]) -> None:
        await self.gateway.until(condition)


def at_door(
    kind: DoorKind, test: Callable[[Visitors], Awaitable[None]], limits: Limits | None = None,
    context: ssl.SSLContext | None = None,
) -> None:
    """Run it at a listener of this kind, with TLS if a context is given; nothing may be left afterwards."""
    async def run() -> None:
        gateway = Gateway(limits)
        gateway.cluster.start(gateway.hub)
        way = WAYS[kind]
        opened = await way.open(gateway, context)
        door = Visitors(gateway, way, opened.address)
        try:
            await test(door)
        finally:
            for client in door.clients:
                client.writer.transport.abort()
            await opened.close()
            await gateway.server.close()
            await gateway.until(lambda: not gateway.hub.connection_manager.accepted)
            assert gateway.hub.account.held_bytes == 0
    uvloop.run(asyncio.wait_for(run(), 3 * PATIENCE_S))


def test_handshakes_get_half_of_the_memory_for_clients_at_most() -> None:
    async def run() -> None:
        for bytes_max, given, count in ((64, None, 512), (100, 4096, 800), (100, 7, 7), (4096, None, HANDSHAKES_MAX)):
            made = Doors(ConnectionManager(Limits(), MemoryAccount(bytes_max * MIB)), given)
            assert made.handshakes_max == count
    asyncio.run(run())


def test_each_kind_of_door_is_tried_here() -> None:
    assert set(WAYS) == set(KINDS)


def test_an_unlisted_kind_of_door_is_not_opened() -> None:
    async def run() -> None:
        gateway = Gateway()
        with pytest.raises(ValueError, match="'telnet' is no kind of door that is known"):
            await gateway.doors.open(DoorKind("telnet"), HOST, 0, asyncio.Protocol)
    uvloop.run(run())


LISTENING = re.compile(
    r"\b(create_server|start_server|create_unix_server|open_sockets|Listener|TCPSite)\(|\.listen\(\d*\)")
MAY_LISTEN = {
    "connections/accepting.py": "opens the sockets",
    "gateway/server/doors.py": "the doors",
    "beanstalk_proxy/listener.py": "the door of sockpq-beanstalkd, with a manager of its own",
    "cluster/wire/peer_network.py": "the peer port: members with certificates, or a network of its own",
    "gateway/dev/ports.py": "looks whether a port is free",
}


def test_nobody_else_listens() -> None:
    listening = {
        path.relative_to(ROOT).as_posix()
        for package in ("core", "cluster", "beanstalk", "connections", "gateway", "beanstalk_proxy", "pqctl")
        for path in (ROOT / package).rglob("*.py")
        if any(LISTENING.search(line) and not line.lstrip().startswith("class ")
               for line in path.read_text().splitlines())
    }
    assert listening == set(MAY_LISTEN)


WITH_TLS = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not LEGACY], ids=lambda kind: kind.name)
TLS_OF_ASYNCIO = re.compile(r"connect_accepted_socket\([^)]*ssl=|start_tls\(")


def test_no_door_has_a_tls_of_its_own() -> None:
    for package in ("connections", "gateway", "beanstalk", "beanstalk_proxy"):
        for path in (ROOT / package).rglob("*.py"):
            assert TLS_OF_ASYNCIO.search(path.read_text()) is None, f"{path}: see Doors.layered"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    files = Authority(tmp_path_factory.mktemp("authority")).node("n1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["cert"], files["key"])
    return context


async def greet(client: Client, tls: KeyUpdater) -> None:
    """Complete the TLS handshake of this client."""
    complete, data = tls.handshake()
    client.send(data)
    while not complete:
        complete, data = tls.handshake(await client.reader.read(MIB))
        client.send(data)


@WITH_TLS
def test_a_flood_of_key_updates_ends_the_connection(kind: DoorKind, context: ssl.SSLContext) -> None:
    async def test(door: Visitors) -> None:
        client, updater = await door.connect(), KeyUpdater()
        try:
            await greet(client, updater)
            await door.until(lambda: len(door.hub.connection_manager.accepted) == 1)
            client.send(updater.updates(UPDATES))
            answered = await client.rest()
            assert len(answered) < UPDATES * UPDATE_BYTES // 10, "few of them were answered"
        finally:
            updater.close()
    at_door(kind, test, context=context)


@pytest.mark.parametrize("kind", [NATIVE, BEANSTALKD], ids=lambda kind: kind.name)
def test_half_a_record_behind_a_command_is_counted_and_cut_in_time(kind: DoorKind, context: ssl.SSLContext) -> None:
    async def test(door: Visitors) -> None:
        client, tls = await door.connect(), KeyUpdater()
        try:
            await greet(client, tls)
            client.send(tls.write(door.way.answered))
            client.send(tls.write(bytes(RECORD_BYTES))[:-1])
            await door.until(lambda: RECORD_BYTES <= door.hub.account.held_bytes <= 2 * RECORD_BYTES)
            with contextlib.suppress(ConnectionResetError):     # what it has not read is dropped
                await client.rest()
        finally:
            tls.close()
    at_door(kind, test, Limits(command_timeout_s=2), context)


@WITH_TLS
def test_a_connection_that_does_not_begin_with_tls_is_cut_before_it_has_a_place(
    kind: DoorKind, context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doors, "HANDSHAKE_S", 1.0)

    async def test(door: Visitors) -> None:
        silent, plain = await door.connect(), await door.connect(door.way.answered)
        assert await plain.rest() == b""
        assert await silent.rest() == b""
        assert not door.hub.connection_manager.accepted
    at_door(kind, test, context=context)


@EACH
def test_a_connection_has_a_visit_with_a_place_as_long_as_it_stands(kind: DoorKind) -> None:
    async def test(door: Visitors) -> None:
        clients = [await door.connect() for _ in range(3)]
        await door.until(lambda: len(door.hub.connection_manager.accepted) == 3)
        for accepted in door.hub.connection_manager.accepted:
            kernel = accepted._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
            assert kernel <= 2 * SEND_BUFFER_BYTES, "the kernel's buffer is bounded"
        for client in clients:
            client.reset()
        await door.until(lambda: not door.hub.connection_manager.accepted)
    at_door(kind, test)


@EACH
def test_there_are_no_more_connections_than_places(kind: DoorKind) -> None:
    async def test(door: Visitors) -> None:
        places = CONNECTIONS_OF_HTTP if kind is HTTP else PLACES + OPERATORS_PLACES
        clients = [await door.connect() for _ in range(places + MORE)]
        ended = [asyncio.create_task(client.rest()) for client in clients]
        await door.until(lambda: sum(task.done() for task in ended) >= MORE)
        assert 0 < len(door.hub.connection_manager.accepted) <= places
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
    at_door(kind, test, Limits(connections_max=PLACES, hello_timeout_s=600))


@EACH
def test_a_silent_connection_is_cut(kind: DoorKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CONNECTION_S", 1)

    async def test(door: Visitors) -> None:
        client = await door.connect()
        assert await client.rest() == b""
    at_door(kind, test, Limits(hello_timeout_s=1))


@EACH
def test_half_a_request_is_cut(kind: DoorKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CONNECTION_S", 1)

    async def test(door: Visitors) -> None:
        client = await door.connect(door.way.half_and(100))
        assert await client.rest() == b""
    at_door(kind, test, Limits(command_timeout_s=1))


@EACH
def test_an_unfinished_body_is_in_the_account_until_it_is_gone(kind: DoorKind) -> None:
    async def test(door: Visitors) -> None:
        client = await door.connect(door.way.half_and(BODY - 1))
        await door.until(lambda: BODY - 1 <= door.hub.account.held_bytes <= 2 * BODY)
        client.reset()
        await door.until(lambda: not door.hub.account.held_bytes)
    at_door(kind, test)


@EACH
def test_above_the_limit_those_that_hold_most_are_cut(kind: DoorKind) -> None:
    async def test(door: Visitors) -> None:
        door.hub.account.limit_bytes = 4 * BODY
        little = await door.connect(door.way.half_and(5 * KIB))
        await door.until(lambda: bool(door.hub.account.held_bytes))
        for _ in range(8):
            await door.connect(door.way.half_and(BODY - 1))
        await door.until(lambda: door.hub.account.evicted > 0)
        assert door.hub.account.held_bytes <= 4 * BODY
        assert not little.reader.at_eof()
    at_door(kind, test)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if WAYS[kind].refused], ids=lambda kind: kind.name)
def test_when_little_room_is_left_a_body_that_is_on_its_way_is_refused(kind: DoorKind) -> None:
    async def test(door: Visitors) -> None:
        class Somebody:
            def evict(self) -> None:
                pass

        account, somebody = door.hub.account, Somebody()
        account.hold(somebody, account.limit_bytes * 9 // 10)
        client = await door.connect(door.way.half)
        await asyncio.sleep(0.05)
        client.send(bytes(BODY - 2) + b"\r\n" * 2)
        assert door.way.refused is not None
        assert (await client.line()).endswith(door.way.refused)
        account.hold(somebody, 0)
        client.send(door.way.answered)
        assert await client.line(), "the connection is as good as before"
    at_door(kind, test)


@pytest.mark.parametrize("kind", [NATIVE, LEGACY, BEANSTALKD], ids=lambda kind: kind.name)
def test_whoever_reads_no_answer_is_counted_with_what_the_kernel_holds_and_cut_in_time(kind: DoorKind) -> None:
    async def test(door: Visitors) -> None:
        client = await door.connect(receive_buffer=4096)
        client.writer.transport.pause_reading()     # type: ignore[attr-defined]
        await door.until(lambda: bool(door.hub.connection_manager.accepted))
        (accepted,) = door.hub.connection_manager.accepted
        count = 0
        while not accepted._connection.unsent_bytes():
            client.send(door.way.answered * 1000)
            count += 1
            assert count < 10_000, "somebody reads"
            await asyncio.sleep(0.001)
        assert door.hub.account.held_bytes >= SEND_BUFFER_BYTES // 2
        await door.until(lambda: not door.hub.connection_manager.accepted)
        await dropped(client)
    at_door(kind, test, Limits(answer_timeout_s=1))


@pytest.mark.parametrize("kind", [NATIVE, LEGACY, BEANSTALKD], ids=lambda kind: kind.name)
def test_last_answers_that_nobody_reads_are_counted_and_dropped_in_time(kind: DoorKind) -> None:
    async def test(door: Visitors) -> None:
        client = await door.connect(receive_buffer=4096)
        client.writer.transport.pause_reading()     # type: ignore[attr-defined]
        client.send(door.way.answered * LAST_COMMANDS)
        client.writer.write_eof()
        await door.until(lambda: door.hub.account.held_bytes >= KERNEL_BYTES_MIN)
        await door.until(lambda: not door.hub.connection_manager.accepted)
        await dropped(client)
    at_door(kind, test, Limits(answer_timeout_s=2))


async def dropped(client: Client) -> None:
    """Return whether the kernel of the node has dropped what the client did not read."""
    client.writer.transport.resume_reading()        # type: ignore[attr-defined]
    with pytest.raises(ConnectionResetError):
        await client.reader.read()


def test_every_path_of_http_wants_a_user_but_these() -> None:
    async def run() -> None:
        async with Site(Users()) as site:
            site.user = None
            free = set()
            for path in {*site.pages._pages, *PATHS, "/nothing"}:
                status, _, content = await site.ask("POST" if path == "/act" else "GET", path)
                assert status in (200, 401, 404), path
                if status == 200:
                    free.add(path)
                else:
                    assert len(content) < 100, "nothing is shown"
            assert free == {"/healthz", "/readyz"}
    uvloop.run(asyncio.wait_for(run(), 3 * PATIENCE_S))


def test_http_is_closed_whatever_its_handlers_wait_for() -> None:
    async def run() -> None:
        gateway = Gateway()
        gateway.cluster.start(gateway.hub)
        pages = HttpPages(Sources(gateway.hub, "1", LoopLag(), lambda: 0, list))
        http = await start(gateway.doors, HOST, 0, None, pages, gateway.hub)
        listening = await asyncio.get_running_loop().create_server(http._server, HOST, 0)   # no task would end it
        _, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        await gateway.until(lambda: bool(http._server.connections))
        await http.close()
        writer.close()
        listening.close()
        await gateway.server.close()
    uvloop.run(asyncio.wait_for(run(), PATIENCE_S))


def test_every_command_has_a_cost_and_a_right() -> None:
    for row in VERBS.rows:
        assert row.cost > 0, row.word
        assert callable(row.right), row.word
