"""The port for clients with TLS, on a real loop: the same as without, and nothing to those who speak plainly."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from devcluster.authority import Authority
from sockpqd.connections import RESERVED_SLOTS
from sockpqd.gateway.config import Tls
from sockpqd.gateway.limits import MIB, Limits
from sockpqd.gateway.process.certificates import Certificates
from sockpqd.gateway.server.port import fixed_port
from tests.cluster.test_peers_tls import payloads
from tests.gateway.helpers.sockets import PATIENCE_S, Client, Gateway


class TlsGateway(Gateway):
    """The server under test with TLS, and clients that know its authority."""

    def __init__(self, authority: Authority, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.certificates = Certificates(Tls(**authority.node("n1")), "n1")
        self.context = ssl.create_default_context(cafile=authority.ca)
        self.address = ("", 0)

    async def start(self) -> tuple[str, int]:
        self.cluster.start(self.hub)
        self.address = await self.server.start("127.0.0.1", 0, context=self.certificates.clients)
        return self.address

    async def connect(self, receive_buffer: int | None = None, **how: Any) -> Client:
        connection = socket.socket()
        connection.setblocking(False)
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(connection, self.address)
        client = Client(*await asyncio.open_connection(
            sock=connection, limit=1 << 16, ssl=self.context, server_hostname="127.0.0.1", **how))
        self._clients.append(client)
        return client

    async def plain(self, data: bytes) -> bytes:
        """Return the answer to a client that sends this without TLS."""
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(data)
        try:
            return await asyncio.wait_for(reader.read(-1), PATIENCE_S)
        finally:
            writer.transport.abort()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def with_server(
    authority: Authority, test: Callable[[TlsGateway], Awaitable[None]], limits: Limits | None = None
) -> None:
    async def run() -> None:
        gateway = TlsGateway(authority, limits)
        await gateway.start()
        try:
            await test(gateway)
        finally:
            await gateway.close()
    uvloop.run(run())


def by_threads(gateway: TlsGateway, talk: Callable[[ssl.SSLSocket], bytes]) -> Awaitable[bytes]:
    """Run a client of the standard library's blocking kind, in a thread."""
    def run() -> bytes:
        with socket.create_connection(gateway.address, PATIENCE_S) as connection, \
                gateway.context.wrap_socket(
                    connection, server_hostname="127.0.0.1", suppress_ragged_eofs=False) as tls:
            return talk(tls)
    return asyncio.to_thread(run)


def read_all(tls: ssl.SSLSocket) -> bytes:
    received = b""
    while piece := tls.recv(1 << 16):       # raises when the end was not said in TLS
        received += piece
    return received


def test_commands_and_large_bodies_go_through(authority: Authority) -> None:
    async def test(gateway: TlsGateway) -> None:
        body = bytes(range(256)) * (8 * MIB // 256)
        client = await gateway.connect()
        client.send(b"PUT q 0 %d\r\n" % len(body) + body + b"GET q\r\n")
        assert await client.line() == b"200 OK\r\n"
        assert await client.line() == b"200 OK q 1 0 %d\r\n" % len(body)
        assert await client.exactly(len(body)) == body
        (connection,) = gateway.hub.connections
        assert connection.secure
        assert connection.peer.startswith("127.0.0.1:")
    with_server(authority, test)


def test_answers_before_a_close_arrive_and_the_end_is_said(authority: Authority) -> None:
    async def test(gateway: TlsGateway) -> None:
        def quit_(tls: ssl.SSLSocket) -> bytes:
            tls.sendall(b"PUT q 0 1\r\nxTOTAL\r\nQUIT\r\nPING\r\n")
            return read_all(tls)
        assert await by_threads(gateway, quit_) == b"200 OK\r\n200 OK 1 1 1 0\r\n221 Goodbye\r\n"

        def still_sends(tls: ssl.SSLSocket) -> bytes:
            tls.sendall(b"PUT q 0 x\r\n" + bytes(MIB))
            return read_all(tls)
        assert await by_threads(gateway, still_sends) == (
            b"400 Bad Arguments: the length must be a number, not 'x'\r\n")
        await gateway.until(lambda: not gateway.hub.connections)
    with_server(authority, test)


def test_who_has_sent_all_gets_all_answers(authority: Authority) -> None:
    async def test(gateway: TlsGateway) -> None:
        def half_close(tls: ssl.SSLSocket) -> bytes:
            tls.sendall(b"PUT q 0 3\r\nabcGET q\r\n")
            socket.socket.shutdown(tls, socket.SHUT_WR)     # TCP's end, as from a client that knows nothing better
            return read_all(tls)
        gateway.cluster.automatic = False
        talk = asyncio.ensure_future(by_threads(gateway, half_close))
        await gateway.until(lambda: len(gateway.cluster.in_flight) == 2)
        await asyncio.sleep(0.1)
        gateway.cluster.commit()
        assert await talk == b"200 OK\r\n200 OK q 1 0 3\r\nabc"
        gateway.cluster.automatic = True

        upstream, downstream = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = gateway.context.wrap_bio(downstream, upstream, server_hostname="127.0.0.1")
        reader, writer = await asyncio.open_connection(*gateway.address)

        async def more() -> None:
            writer.write(upstream.read())
            downstream.write(await asyncio.wait_for(reader.read(1 << 16), PATIENCE_S))
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        await more()
        tls.do_handshake()
        tls.write(b"DONE 1\r\n")
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.unwrap()                                    # TLS's end, behind the command
        await more()
        assert tls.read() == b"200 OK FINQ\r\n"
        writer.transport.abort()
    with_server(authority, test)


def test_who_speaks_plainly_gets_nothing_but_a_close(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(gateway: TlsGateway) -> None:
        for data in (b"PING\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x00", b"\x16" + bytes(20_000)):
            assert await gateway.plain(data) == b""
        assert await gateway.plain(b"\x16\x03\x01\x00\x05hello") != b"200 OK\r\n"
        assert not gateway.hub.connections
        assert len(caplog.records) == 1, "one line, whoever tries again and again"
        assert "it does not speak TLS" in caplog.text
    with_server(authority, test)


def test_a_reader_that_takes_nothing_is_cut(authority: Authority) -> None:
    async def test(gateway: TlsGateway) -> None:
        count = 40
        client = await gateway.connect()
        for _ in range(count):
            client.send(b"PUT q 0 %d\r\n" % MIB + bytes(MIB))
            assert await client.line() == b"200 OK\r\n"
        slow = await gateway.connect(receive_buffer=4096)
        slow.writer.transport.pause_reading()       # type: ignore[attr-defined]
        slow.send(b"GET q\r\n" * count)
        await gateway.until(lambda: len(gateway.hub.connections) == 1)
        await gateway.until(lambda: gateway.cluster.machine.ready("q") > 0)
        client.send(b"PING\r\n")
        assert await client.line() == b"200 OK\r\n"
    with_server(authority, test, Limits(data_bytes_max=MIB, output_bytes_max=2 * MIB))


def test_connections_over_the_limit_are_told_so(authority: Authority) -> None:
    async def test(gateway: TlsGateway) -> None:
        gateway.hub.slots.connections_max = 1 - RESERVED_SLOTS
        first = await gateway.connect()
        first.send(b"PING\r\n")
        assert await first.line() == b"200 OK\r\n"
        assert await (await gateway.connect()).rest() == b"503 Busy\r\n"
    with_server(authority, test)


def test_silent_connections_neither_stay_nor_keep_others_out(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sockpqd.gateway.server.doors.HANDSHAKES_MAX", 4)
    monkeypatch.setattr("sockpqd.gateway.server.doors.HANDSHAKE_S", 2.0)
    monkeypatch.setattr("sockpqd.cluster.wire.tls_handshakes.SILENT_S", 0.0)

    async def test(gateway: TlsGateway) -> None:
        silent = [await asyncio.open_connection(*gateway.address) for _ in range(12)]
        client = await gateway.connect()
        client.send(b"PING\r\n")
        assert await client.line() == b"200 OK\r\n"
        for reader, writer in silent:
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(1), PATIENCE_S) == b""
            writer.transport.abort()
    with_server(authority, test)


def test_a_fleet_that_connects_at_once_is_served_and_does_not_hold_up_the_loop(authority: Authority) -> None:
    async def test(gateway: TlsGateway) -> None:
        fleet = await asyncio.gather(*(gateway.connect() for _ in range(100)))
        for client in fleet:
            client.send(b"PING\r\n")
        assert {await client.line() for client in fleet} == {b"200 OK\r\n"}
    with_server(authority, test)


def test_new_connections_see_the_certificate_that_was_read_last(authority: Authority) -> None:
    async def test(gateway: TlsGateway) -> None:
        def shown(tls: ssl.SSLSocket) -> bytes:
            return tls.getpeercert(binary_form=True) or b""
        old = await gateway.connect()
        first = await by_threads(gateway, shown)
        authority.node("n1")
        gateway.certificates.reload()
        assert await by_threads(gateway, shown) != first
        old.send(b"PING\r\n")
        assert await old.line() == b"200 OK\r\n", "old ones live on"
    with_server(authority, test)


def test_versions_of_tls_that_are_not_good_enough_are_refused(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(gateway: TlsGateway) -> None:
        gateway.context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert await by_threads(gateway, lambda tls: (tls.version() or "").encode()) == b"TLSv1.2"
        gateway.context.minimum_version = gateway.context.maximum_version = ssl.TLSVersion.TLSv1_1
        gateway.context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await by_threads(gateway, read_all)
        assert "speaks no version of TLS that is good enough" in caplog.text
    # OpenSSL calls the old version deprecated, which is the point.
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        with_server(authority, test)


def test_a_time_limit_cuts_a_real_connection(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def test(gateway: TlsGateway) -> None:
        idle, blocked, slow = [await gateway.connect() for _ in range(3)]
        for client in (idle, blocked, slow):
            client.send(b"PING\r\n")
            assert await client.line() == b"200 OK\r\n"
        blocked.send(b"GETB q\r\n")
        slow.send(b"PUT q 0 10\r\nx")
        assert await idle.rest() == b""
        assert await slow.rest() == b""
        assert len(gateway.hub.job_waiters) == 1
        assert "it has been idle" in caplog.text
        assert "its command is incomplete" in caplog.text
    with_server(authority, test, Limits(idle_timeout_s=1, command_timeout_s=1))


def test_who_takes_nothing_of_a_long_answer_is_cut(authority: Authority) -> None:
    async def test(gateway: TlsGateway) -> None:
        stuck = await gateway.connect(receive_buffer=4096)
        stuck.writer.transport.pause_reading()      # type: ignore[attr-defined]
        for _ in range(2):
            stuck.send(b"PUT q 0 8000000\r\n" + bytes(8_000_000))
        stuck.send(b"GET q\r\nGET q\r\nRUNLIST DATA\r\nQUIT\r\n")
        await gateway.until(lambda: gateway.cluster.machine.total(None).running == 2)
        await gateway.until(lambda: not gateway.hub.connections)
    with_server(authority, test, Limits(answer_timeout_s=1))


def test_a_port_for_old_clients_lets_in_only_its_networks(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(gateway: TlsGateway) -> None:
        for networks, answer in ((("127.0.0.0/8", "10.0.0.0/24"), b"200 OK\r\n"), (("10.0.0.0/24",), b"")):
            address = await gateway.server.start("127.0.0.1", 0, port=fixed_port("old", networks))
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"PING\r\n")
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.readline(), PATIENCE_S) == answer
            assert [connection.user for connection in gateway.hub.connections] == ["old"] * bool(answer)
            writer.close()
            await gateway.until(lambda: not gateway.hub.connections)
        assert "it is in none of the networks of the port of old" in caplog.text
    with_server(authority, test)


@pytest.mark.parametrize(("host", "admitted"), [
    ("10.0.0.5", True), ("::ffff:10.0.0.5", True), ("10.0.1.5", False), ("fd00::1%eth0", True), ("::1", False),
])
def test_networks_are_of_both_versions(host: str, admitted: bool) -> None:
    assert fixed_port("old", ("10.0.0.0/24", "fd00::/8")).admits(host) is admitted
    assert fixed_port("old", ()).admits(host)


def test_names_with_two_addresses_and_ipv6_can_be_listened_on(authority: Authority) -> None:
    async def test(gateway: TlsGateway) -> None:
        for host in ("::1", "localhost"):
            address = await gateway.server.start(host, 0)
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"QUIT\r\n")
            assert await asyncio.wait_for(reader.read(-1), PATIENCE_S) == b"221 Goodbye\r\n"
            writer.close()
    with_server(authority, test)


def test_no_file_of_a_key_is_left_for_others_to_read(authority: Authority) -> None:
    assert Path(authority.node("n1")["key"]).stat().st_mode & 0o077 == 0


def test_nothing_of_a_client_is_unpickled(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "effect"

    async def test(gateway: TlsGateway) -> None:
        legacy = await gateway.server.start("127.0.0.1", 0)
        for payload in payloads(file):
            put = b"PUT q 0 %d\r\n" % len(payload) + payload + b"GET q\r\n"
            clone = b"CLONE %d\r\n" % len(payload) + payload
            for data in (payload + b"\r\n", put, clone, b"\r\n" + payload):
                client = await gateway.connect()
                client.send(data)
                await gateway.plain(data)
                _, writer = await asyncio.open_connection(*legacy)
                writer.write(data)
                await writer.drain()
                writer.close()
        await gateway.until(lambda: gateway.cluster.machine.total(None).running > 0)
    with_server(authority, test)
    assert not file.exists()
