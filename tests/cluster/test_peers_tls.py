"""The peer port with TLS: a peer that cannot prove to be a node gets nothing, and the log says why."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import ssl
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from devcluster.authority import CLIENT, SERVER, Authority
from sockpqd.cluster.settings import PeerTls
from sockpqd.cluster.wire.messages import WIRE_FORMAT, Ack, Append, Heartbeat, Hello, Message, PreVote, encode
from sockpqd.cluster.wire.peer_connection import PeerConnection
from sockpqd.cluster.wire.peer_network import PeerNetwork
from tests.cluster.test_peer_network import End, frame, members, until

PATIENCE_S = 60.0
HELLO = frame(encode(Hello(WIRE_FORMAT, "n2", "n1", b"", "1", True, False)))


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run it on the loop of the daemon."""
    uvloop.run(test())      # type: ignore[arg-type]


def contexts(authority: Authority, cert: Path, key: Path) -> PeerTls:
    """Return the contexts of a node, whatever the certificate is worth."""
    made = []
    for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        context = ssl.SSLContext(protocol)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.ca)
        context.load_cert_chain(cert, key)
        made.append(context)
    return PeerTls(*made)


def node_tls(authority: Authority, name: str, **how: Any) -> PeerTls:
    """Return the TLS settings of the node `name`."""
    return contexts(authority, *authority.issue(name, [name], **how))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("other"), "other")


@contextlib.asynccontextmanager
async def linked(authority: Authority) -> Any:
    """Return two nodes that communicate."""
    both = members(2)
    a = End("n1", both, tls=node_tls(authority, "n1"))
    b = End("n2", both, tls=node_tls(authority, "N2"))      # case does not matter
    try:
        await a.network.start()
        await b.network.start()
        await until(lambda: a.events and b.events)
        yield a, b
    finally:
        await a.network.stop()
        await b.network.stop()


def test_messages_of_any_size_arrive_and_are_paced_as_without_tls(authority: Authority) -> None:
    async def test() -> None:
        async with linked(authority) as (a, b):
            sent: list[Message] = [
                Append(1, 1, 0.5, 0, 1, 1, [(bytes(12 << 20), 2, 1)]), PreVote(1, 2, 3, 4), Heartbeat(1, 1, 0.5, 3),
                Ack(1, 1, 0.5, 3, False, True),
            ]
            for message in sent:
                a.network.send("n2", message)
            assert a.network.buffered_bytes("n2") >= 12 << 20
            a.network.flush()
            assert a.network.buffered_bytes("n2") >= 11 << 20, "what is unsent is known, whoever encrypts it"
            await until(lambda: len(b.messages()) == 4)
            assert b.messages()[-1] == sent[0], "small ones need not wait for large ones"
            assert set(map(type, b.messages())) == {Append, PreVote, Heartbeat, Ack}
            assert a.network.buffered_bytes("n2") == 0
    run(test)


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_dial_given_up_just_when_it_is_connected_leaves_nothing_behind(
    authority: Authority, encrypted: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        errors: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        both = members(2)
        a, b = (End(name, both, tls=node_tls(authority, name) if encrypted else None) for name in ("n1", "n2"))
        given_up: list[PeerConnection] = []
        made = PeerNetwork._protocol

        def protocol(network: PeerNetwork, connection: PeerConnection) -> asyncio.Protocol:
            real = made(network, connection)
            if network is not a.network or given_up:
                return real
            given_up.append(connection)
            connected = real.connection_made

            def cancelled(transport: asyncio.BaseTransport) -> None:
                connected(transport)
                network._links["n2"].task.cancel()
            real.connection_made = cancelled            # type: ignore[method-assign]
            return real
        monkeypatch.setattr(PeerNetwork, "_protocol", protocol)
        try:
            await b.network.start()
            await a.network.start()
            await until(lambda: given_up and a.network._links["n2"].task.done())
            assert given_up[0].ended
            link = a.network._links["n2"]
            link.task = asyncio.create_task(a.network._dial(link))
            await until(lambda: a.events and b.events)
            a.network.send("n2", Heartbeat(1, 1, 0.5, 3))
            a.network.flush()
            await until(lambda: b.messages())
            assert errors == []
        finally:
            await a.network.stop()
            await b.network.stop()
    run(test)


async def answer(reader: asyncio.StreamReader) -> bytes:
    """Return all that arrives until the end, whatever the end is."""
    received = b""
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.suppress(OSError):
            while piece := await reader.read(1000):
                received += piece
    return received


@contextlib.asynccontextmanager
async def listening(authority: Authority) -> Any:
    """Return n1 alone, and its address."""
    two = members(2)
    a = End("n1", two, tls=node_tls(authority, "n1"))
    await a.network.start()
    try:
        yield a, two[0].peer.split(":")
    finally:
        await a.network.stop()


async def knock(address: list[str], tls: PeerTls | None, data: bytes) -> bytes:
    """Return the answer to a peer that sends this."""
    try:
        reader, writer = await asyncio.open_connection(*address, ssl=tls.dialing if tls else None)
    except OSError:
        return b""
    writer.write(data)
    try:
        return await answer(reader)
    finally:
        writer.transport.abort()


def knocker(authority: Authority, other: Authority, case: str) -> PeerTls | None:
    """Return the TLS settings of a peer that is not n2."""
    match case:
        case "plain text":
            return None
        case "no certificate":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.load_verify_locations(authority.ca)
            return PeerTls(context, context)
        case "unknown authority":
            tls = node_tls(other, "n2")
            tls.dialing.load_verify_locations(authority.ca)
            return tls
        case "expired":
            return node_tls(authority, "n2", days=(-5, -1))
        case "not valid yet":
            return node_tls(authority, "n2", days=(1, 5))
        case "of a server only":
            return node_tls(authority, "n2", uses=[SERVER])
    return node_tls(authority, "n3")


WHY = {
    "plain text": "it does not speak TLS",
    "no certificate": "it shows no certificate",
    "unknown authority": "its certificate is not accepted: it is not signed by tls.ca",
    "expired": "its certificate is not accepted: it has expired",
    "not valid yet": "its certificate is not accepted: it is not valid yet",
    "of a server only": "its certificate is not accepted: it is made for another purpose",
    "another node's": "its certificate is for n3, not for n2",
}


@pytest.mark.parametrize("case", WHY)
def test_who_cannot_prove_to_be_a_peer_gets_nothing_and_the_log_says_why(
    case: str, authority: Authority, other: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with listening(authority) as (a, address):
            assert await knock(address, knocker(authority, other, case), HELLO) == b""
            await until(lambda: WHY[case] in caplog.text)
            assert not a.events
            reader, writer = await asyncio.open_connection(*address, ssl=node_tls(authority, "n2").dialing)
            writer.write(HELLO)
            assert await asyncio.wait_for(reader.read(1), PATIENCE_S), "a real one is greeted"
            writer.transport.abort()
    run(test)


@pytest.mark.parametrize(("case", "why"), [
    ("another node's", "its certificate is for n9, not for n2"),
    ("expired", "it has expired"),
    ("unknown authority", "it is not signed by tls.ca"),
    ("of a client only", "it is made for another purpose"),
    ("plain text", "it does not speak TLS"),
])
def test_a_node_says_nothing_to_whom_it_dialed_in_vain(
    case: str, why: str, authority: Authority, other: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        received: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if case == "plain text":
                writer.write(HELLO)
            else:
                received.append(await answer(reader))
            writer.close()

        tls = {
            "another node's": lambda: node_tls(authority, "n9"),
            "expired": lambda: node_tls(authority, "n2", days=(-5, -1)),
            "unknown authority": lambda: node_tls(other, "n2"),
            "of a client only": lambda: node_tls(authority, "n2", uses=[CLIENT]),
            "plain text": lambda: None,
        }[case]()
        two = members(2)
        context = None
        if tls is not None:
            context = tls.listening
            context.load_verify_locations(authority.ca)
        server = await asyncio.start_server(serve, *two[1].peer.split(":"), ssl=context)
        a = End("n1", two, tls=node_tls(authority, "n1"))
        await a.network.start()
        try:
            await until(lambda: why in caplog.text)
        finally:
            await a.network.stop()
            server.close()
        assert not a.events
        assert b"".join(received) == b""
    run(test)


def test_an_old_recording_gets_nothing(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        recorded: list[bytes] = []
        two = members(2)

        async def tap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            onwards, forward = await asyncio.open_connection(*two[0].peer.split(":"))
            back = asyncio.create_task(copy(onwards, writer))
            while data := await reader.read(65536):
                recorded.append(data)
                forward.write(data)
            forward.close()
            await back

        async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(65536):
                    writer.write(data)
            writer.close()

        proxy = await asyncio.start_server(tap, "127.0.0.1", 0)
        a = End("n1", two, tls=node_tls(authority, "n1"))
        await a.network.start()
        address = proxy.sockets[0].getsockname()[:2]
        reader, writer = await asyncio.open_connection(*address, ssl=node_tls(authority, "n2").dialing)
        writer.write(HELLO)
        assert await asyncio.wait_for(reader.read(10), PATIENCE_S), "this one is real"
        writer.transport.abort()
        await until(lambda: len(recorded) >= 2)
        reader, writer = await asyncio.open_connection(*two[0].peer.split(":"))
        writer.write(recorded[0])
        assert await asyncio.wait_for(reader.read(10), PATIENCE_S), "the greeting of TLS is answered, with new keys"
        caplog.clear()
        writer.write(b"".join(recorded[1:]))
        await answer(reader)
        await until(lambda: "TLS failed" in caplog.text)
        writer.transport.abort()
        assert not a.events
        await a.network.stop()
        proxy.close()
    run(test)


def test_a_ca_that_was_taken_away_admits_nobody_and_connections_live_on(
    authority: Authority, other: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with linked(authority) as (a, b):
            now = node_tls(other, "n1")
            a.tls.listening, a.tls.dialing = now.listening, now.dialing
            b.network.send("n1", PreVote(1, 2, 3, 4))
            b.network.flush()
            await until(lambda: a.messages() == [PreVote(1, 2, 3, 4)])
            stale = node_tls(authority, "n2")
            stale.dialing.load_verify_locations(other.ca)
            assert await knock(a.address, stale, HELLO) == b""
            await until(lambda: "its certificate is not accepted: it is not signed by tls.ca" in caplog.text)
    run(test)


class Effect:
    """An object that makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self._file,)


def payloads(file: Path) -> Iterator[bytes]:
    """Return the same payload in several framings."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(Effect(file), protocol)
        yield from (data, frame(data), HELLO + frame(data), HELLO + data)


def test_nothing_is_unpickled(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "effect"
    pickle.loads(pickle.dumps(Effect(file)))
    assert file.exists(), "the payload works"
    file.unlink()

    async def test() -> None:
        async with listening(authority) as (a, address):
            plain = End("n1", members(2))
            await plain.network.start()
            real = node_tls(authority, "n2")
            for payload in payloads(file):
                for where, tls in ((address, None), (address, real), (plain.address, None)):
                    with contextlib.suppress(TimeoutError):     # some begin like a message that is not complete
                        await asyncio.wait_for(knock(where, tls, payload), 0.5)
            await plain.network.stop()
            assert not plain.messages()
            assert not a.messages()
    run(test)
    assert not file.exists()
