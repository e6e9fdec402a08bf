"""The peer port: two real networks on loopback, and strangers that connect."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.limits import MESSAGE_BYTES_MAX
from sockpqd.cluster.settings import Member, NodeSettings, PeerTls
from sockpqd.cluster.wire.framing import Unframer
from sockpqd.cluster.wire.messages import (
    WIRE_FORMAT,
    Ack,
    Append,
    CallOutcome,
    ForwardedCommand,
    Heartbeat,
    Hello,
    Message,
    PreVote,
    decode_hello,
    encode,
)
from sockpqd.cluster.wire.peer_network import PeerNetwork


class End:
    """One node's network and what arrived."""

    def __init__(
        self, name: str, members: tuple[Member, ...], cluster_id: bytes = b"", tls: PeerTls | None = None,
        *, process: bytes = b"", journal: bytes = b"", listen: str = "",
    ) -> None:
        self.name = name
        self.tls = tls
        self.cluster_id = cluster_id
        self.process, self.journal = process, journal
        self.events: list[tuple[str, Hello | Message | None]] = []
        listen = listen or next(member.peer for member in members if member.name == name)
        self.address = listen.split(":")
        settings = NodeSettings(
            name=name, data_dir=Path("/"), peer_listen=listen, members=members, version="1", tls=tls,
        )
        self.network = PeerNetwork(settings, self.hello, lambda who, event: self.events.append((who, event)),
                                   lambda who: None, lambda hello: None)
        for member in members:
            if member.name != name:
                self.network.add_peer(member.name, member.peer)

    def hello(self, receiver: str) -> Hello:
        return Hello(
            WIRE_FORMAT, self.name, receiver, self.cluster_id, "1", True, False, journal=self.journal,
            process=self.process,
        )

    def messages(self) -> list[Message]:
        return [event for _, event in self.events if event is not None and not isinstance(event, Hello)]


def members(count: int) -> tuple[Member, ...]:
    """Return members on ports that were free a moment ago."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return tuple(Member(f"n{k + 1}", "127.0.0.1:1", f"127.0.0.1:{port}") for k, port in enumerate(ports))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[End, End]]:
    """Return two ends that have greeted each other; they are stopped at the end."""
    both = members(2)
    a, b = End("n1", both), End("n2", both)
    await a.network.start()
    await b.network.start()
    await until(lambda: a.events and b.events)
    yield a, b
    await a.network.stop()
    await b.network.stop()


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())     # type: ignore[arg-type]


def test_messages_of_any_size_arrive() -> None:
    async def test() -> None:
        both = members(2)
        a, b = End("n1", both), End("n2", both)
        await a.network.start()
        await b.network.start()
        await until(lambda: a.events and b.events)
        sent: list[Message] = [
            Append(1, 1, 0.5, 0, 1, 1, [(bytes(3 << 20), 2, 1)]), PreVote(1, 2, 3, 4), Ack(1, 1, 0.5, 3, False, True),
        ]
        for message in sent:
            a.network.send("n2", message)
        assert a.network.buffered_bytes("n2") >= 3 << 20
        a.network.flush()
        await until(lambda: len(b.messages()) == 3)
        assert b.messages() == [*sent[1:], sent[0]], "small ones need not wait for large ones"
        await a.network.stop()
        await until(lambda: b.events[-1] == ("n1", None))
        await b.network.stop()
    run(test)


def test_large_messages_keep_their_order_and_small_appends_stay_behind_them() -> None:
    async def test() -> None:
        async with linked() as (a, b):
            sent: list[Message] = [
                Append(1, 1, 0.5, 0, k, 1, [(bytes(size), k + 1, 1)])
                for k, size in enumerate((10, 3 << 20, 10, 1 << 20, 10))
            ]
            for message in sent:
                a.network.send("n2", message)
                a.network.flush_appends()
            await until(lambda: len(b.messages()) == len(sent))
            assert b.messages() == sent
            assert a.network.buffered_bytes("n2") == 0
    run(test)


def test_replication_goes_before_what_is_large_and_for_clients() -> None:
    async def test() -> None:
        async with linked() as (a, b):
            outcomes = [CallOutcome(number, bytes(4 << 20)) for number in range(3)]
            small = CallOutcome(3, b"small")
            append = Append(1, 1, 0.5, 0, 1, 1, [(bytes(3 << 20), 2, 1)])
            for message in (*outcomes, small):
                a.network.send("n2", message)
            assert a.network.unsent_calls_bytes("n2") > 12 << 20
            assert a.network.buffered_bytes("n2") == 0, "replication does not wait for it"
            a.network.flush()                               # which begins the first one
            a.network.send("n2", append)
            a.network.flush()
            await until(lambda: len(b.messages()) == 5)
            assert b.messages() == [small, outcomes[0], append, *outcomes[1:]]
            assert a.network.unsent_calls_bytes("n2") == 0
    run(test)


@pytest.mark.parametrize("kind", [
    lambda data: Append(1, 1, 0.5, 0, 1, 1, [(data, 2, 1)]), lambda data: CallOutcome(1, data),
    lambda data: ForwardedCommand(1, None, "", data),
], ids=["append", "outcome", "command"])
def test_a_message_that_is_too_large_is_not_sent_and_the_link_stays(
    kind: Callable[[bytes], Message], caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with linked() as (a, b):
            a.network.send("n2", kind(bytes(MESSAGE_BYTES_MAX)))
            a.network.send("n2", PreVote(1, 2, 3, 4))
            a.network.flush()
            await until(b.messages)
            assert b.messages() == [PreVote(1, 2, 3, 4)]
            assert ("n1", None) not in b.events
            assert "was not sent" in caplog.text
    run(test)


def test_a_heartbeat_overtakes_a_large_message_on_a_slow_line() -> None:
    async def test() -> None:
        both = members(2)
        gate = asyncio.Event()

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Pass on a little, and the rest when the gate is open."""
            host, port = both[1].peer.split(":")
            onwards, forward = await asyncio.open_connection(host, int(port))
            back = asyncio.create_task(copy(onwards, writer))
            passed = 0
            while data := await reader.read(4096):
                forward.write(data)
                passed += len(data)
                if passed > 1 << 20:
                    await gate.wait()
            forward.close()
            await back

        async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(4096):
                writer.write(data)
            writer.close()

        line = socket.create_server(("127.0.0.1", 0))
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        proxy = await asyncio.start_server(slow, sock=line, limit=4096)
        port = line.getsockname()[1]
        a = End("n1", (both[0], Member("n2", both[1].client, f"127.0.0.1:{port}")))
        b = End("n2", both)
        await a.network.start()
        await b.network.start()
        await until(lambda: a.events and b.events)
        a.network.send("n2", Append(1, 1, 0.5, 0, 1, 1, [(bytes(12 << 20), 2, 1)]))
        a.network.flush_appends()
        await asyncio.sleep(0.1)
        assert a.network.buffered_bytes("n2") > 4 << 20, "the line is stopped up"
        a.network.send("n2", Heartbeat(1, 1, 0.5, 1))
        a.network.flush_appends()
        gate.set()
        await until(lambda: len(b.messages()) == 2)
        assert isinstance(b.messages()[0], Heartbeat)
        await a.network.stop()
        await b.network.stop()
        proxy.close()
    run(test)


def test_a_peer_that_restarts_is_linked_again() -> None:
    async def test() -> None:
        both = members(2)
        a, b = End("n1", both), End("n2", both)
        await a.network.start()
        await b.network.start()
        await until(lambda: a.events and b.events)
        for _ in range(3):
            await b.network.stop()
            await until(lambda: a.events[-1] == ("n2", None))
            b = End("n2", both)
            await b.network.start()
            await until(lambda: isinstance(a.events[-1][1], Hello) and b.events)     # noqa: B023
        await a.network.stop()
        await b.network.stop()
    run(test)


def test_nodes_of_different_clusters_do_not_talk(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        both = members(2)
        a, b = End("n1", both, b"A" * 16), End("n2", both, b"B" * 16)
        await a.network.start()
        await b.network.start()
        await until(lambda: "different clusters" in caplog.text)
        assert not a.events
        assert not b.events
        await a.network.stop()
        await b.network.stop()
    run(test)


def frame(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


GOOD_HELLO = encode(Hello(WIRE_FORMAT, "n2", "n1", b"", "1", True, False))
KNOCKS = {
    "garbage": b"GET / HTTP/1.1\r\n\r\n",
    "absurd length": b"\xff\xff\xff\xff",
    "not a hello": frame(encode(PreVote(1, 1, 1, 1))),
    "unknown sender": frame(encode(Hello(WIRE_FORMAT, "stranger", "n1", b"", "1", True, False))),
    "for another node": frame(encode(Hello(WIRE_FORMAT, "n2", "n3", b"", "1", True, False))),
    "newer format": frame(encode(Hello(99, "n2", "n1", b"", "1", True, False))),
    "pickle": frame(pickle.dumps(print)),
    "garbage after hello": frame(GOOD_HELLO) + frame(b"\xc1\xc1"),
    "pickle after hello": frame(GOOD_HELLO) + frame(pickle.dumps({"type": "append_entries"})),
    "huge frame after hello": frame(GOOD_HELLO) + struct.pack(">I", MESSAGE_BYTES_MAX + 1),
    "wrong types after hello": frame(GOOD_HELLO) + frame(b"\x82\xa4type\xa3ack\xa4term\xa1x"),
}


@pytest.mark.parametrize("knock", KNOCKS.values(), ids=KNOCKS.keys())
def test_whoever_makes_no_sense_is_closed_and_nothing_else_happens(knock: bytes) -> None:
    async def test() -> None:
        two = members(2)
        a = End("n1", two)
        await a.network.start()
        host, port = two[0].peer.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(knock)
        async with asyncio.timeout(60):
            try:
                while await reader.read(1000):
                    pass
            except ConnectionError:
                pass
        writer.close()
        assert not a.messages()
        b = End("n2", two)
        await b.network.start()
        await until(lambda: a.events and b.events and isinstance(a.events[-1][1], Hello))
        await a.network.stop()
        await b.network.stop()
    run(test)


def test_a_node_that_stood_still_reads_what_arrived_before_it_calls_a_peer_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SILENCE_S", 1.0)

    async def test() -> None:
        async with linked() as (a, b):
            for stands_still_s in (0.0, 2.0, 0.0):
                time.sleep(stands_still_s)
                await asyncio.sleep(0.01)                   # the timers that are due come before anything arrives
                for _ in range(10):
                    for end, other in ((a, "n2"), (b, "n1")):
                        end.network.send(other, Ack(1, 1, 0.5, 3, False, True))
                        end.network.flush()
                    await asyncio.sleep(0.05)
            assert not [event for _, event in a.events + b.events if event is None]
    run(test)


def test_silent_strangers_are_cut_and_do_not_keep_peers_out() -> None:
    async def test() -> None:
        two = members(2)
        a = End("n1", two)
        await a.network.start()
        host, port = two[0].peer.split(":")
        strangers = [await asyncio.open_connection(host, int(port)) for _ in range(80)]
        closed = 0
        async with asyncio.timeout(60):
            for reader, writer in strangers:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read(10) == b""
                closed += 1
                writer.close()
        assert closed == 80
        b = End("n2", two)
        await b.network.start()
        await until(lambda: b.events)
        await a.network.stop()
        await b.network.stop()
    run(test)


def test_only_a_message_that_is_long_in_coming_counts_as_a_sign_of_life() -> None:
    async def test() -> None:
        two = members(2)
        a = End("n1", two)
        signs: list[str] = []
        a.network._receiving = signs.append
        b = End("n2", two)
        await a.network.start()
        await b.network.start()
        await until(lambda: a.events and b.events)
        for _ in range(50):
            b.network.send("n1", PreVote(1, 2, 3, 4))
            b.network.flush()
            await asyncio.sleep(0)
        await until(lambda: len(a.messages()) == 50)
        assert not signs
        b.network.send("n1", Append(1, 1, 0.5, 0, 1, 1, [(bytes(8 << 20), 2, 1)]))
        b.network.flush()
        await until(lambda: len(a.messages()) == 51)
        assert set(signs) == {"n2"}
        await a.network.stop()
        await b.network.stop()
    run(test)


def test_strangers_of_one_host_leave_a_place_for_a_member_of_another() -> None:
    async def test() -> None:
        two = members(2)
        a = End("n1", two)
        await a.network.start()
        host, port = two[0].peer.split(":")
        strangers = [await asyncio.open_connection(host, int(port), local_addr=("127.0.0.9", 0))
                     for _ in range(limits.STRANGERS_MAX)]
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(frame(encode(End("n2", two).hello("n1"))))
        greeting = Unframer(limits.HELLO_BYTES_MAX)
        async with asyncio.timeout(limits.HELLO_S / 2):
            while (answer := greeting.next()) is None:
                received = await reader.read(4096)
                assert received, "it has no place"
                greeting.feed(received)
        assert decode_hello(answer).sender == "n1"
        assert sum(stranger.at_eof() for stranger, _ in strangers) <= 1
        for _, stranger in (*strangers, (reader, writer)):
            stranger.transport.abort()
        await a.network.stop()
    run(test)
