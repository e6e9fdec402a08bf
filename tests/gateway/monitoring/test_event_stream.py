"""Events over HTTP, on a real loop and sockets, in front of the fake cluster."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import sys
from pathlib import Path

import pytest

from sockpqd.core import Operation, Put
from sockpqd.gateway import rights
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.monitoring import event_stream, stream_thread
from sockpqd.gateway.monitoring import http as http_module
from tests.client.certificates import ca_file, server_tls
from tests.gateway.helpers.sockets import Client
from tests.gateway.monitoring.test_metrics import Secrets, Watched, run

EVA = f"Authorization: Basic {base64.b64encode(b'eva:pass:word').decode()}\r\n"
MAX = f"Authorization: Basic {base64.b64encode(b'max:x').decode()}\r\n"


def put(watched: Watched, *queues: str) -> None:
    """Put a job into each of these queues."""
    operations: list[Operation] = [Put(queue, 3, b"", "order_17") for queue in queues]
    watched.cluster._apply(operations)
    watched.cluster.pass_time(0)


async def listening(watched: Watched, path: str, headers: str = "") -> Client:
    """Return a client of a stream, after the head of the answer."""
    client = await watched.connect()
    client.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
    head = (await client.reader.readuntil(b"\r\n\r\n")).decode()
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert "\r\nContent-Type: text/event-stream\r\n" in head
    assert "\r\nServer: sockpqd\r\n" in head
    await heard(client, b":\n\n")
    return client


async def heard(client: Client, expected: bytes) -> None:
    """Assert that these bytes come next, however they are cut into chunks."""
    async with asyncio.timeout(60):
        got = b""
        while len(got) < len(expected):
            size = int(await client.reader.readline(), 16)
            got += await client.reader.readexactly(size)
            await client.reader.readexactly(2)
    assert got == expected


def test_events_come_as_they_happen_with_their_numbers() -> None:
    async def test(watched: Watched) -> None:
        client = await listening(watched, "/events?types=PUT|MSG&names=mail|w*")
        put(watched, "mail", "other")
        await heard(client, b"id: 2\nevent: PUT\ndata: PUT mail 3\n\n")
        watched.cluster.notify("workers", b"two\r\nlines")
        await heard(client, b"id: 3\nevent: MSG\ndata: MSG workers 10\ndata: two\ndata: lines\n\n")
        client.writer.close()
        while len(watched.hub.subscriptions):
            await asyncio.sleep(0.01)
        every = await listening(watched, "/events")
        put(watched, "mail")
        await heard(every, b"id: 4\nevent: PUT\ndata: PUT mail 3\n\n")
        every.writer.close()

    run(test)


def test_where_nobody_proves_anything_a_stranger_s_name_is_not_answered() -> None:
    async def test(watched: Watched) -> None:
        for name, status in (("evil.example", 421), ("", 421), ("localhost:80", 200), ("127.0.0.1", 200)):
            client = await watched.connect()
            client.send(f"GET /events HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
            assert (await client.reader.readline()).split()[1] == str(status).encode(), name
            client.writer.close()

    run(test)


def test_who_comes_back_goes_on_behind_the_last_event() -> None:
    async def test(watched: Watched) -> None:
        first = await listening(watched, "/events?type=PUT")
        put(watched, "a", "b")
        for query, header in (("&from=2", ""), ("", "Last-Event-ID: 2\r\n"), ("&from=1", "Last-Event-ID: 2\r\n")):
            client = await listening(watched, f"/events?type=PUT{query}", header)
            await heard(client, b"id: 3\nevent: PUT\ndata: PUT b 3\n\n")
            client.writer.close()
        assert await watched.get("/events?type=PUT&from=0") == (409, "too old\n")
        assert await watched.get("/events?type=PUT&from=99") == (409, "too old\n")
        first.writer.close()

    run(test)


def test_what_is_wrong_is_said() -> None:
    async def test(watched: Watched) -> None:
        for query in ("types=NOTHING", "types=finq", "names=a%20b", "from=x", "from=-1", "types=PUT|", "names=a*b"):
            assert await watched.get(f"/events?{query}") == (400, "bad arguments\n")
        assert (await watched.ask(b"HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n"))[:12] == b"HTTP/1.1 405"

    run(test)


def test_a_user_hears_what_the_rights_cover() -> None:
    async def test(watched: Watched) -> None:
        assert await watched.get("/events") == (401, "user and secret required\n")
        assert await watched.get("/events?types=PUT&names=mail", MAX) == (403, "forbidden\n")
        assert await watched.get("/events?types=FINI&names=news", MAX) == (403, "forbidden\n")
        eva = await listening(watched, "/events?types=PUT", EVA)
        other = await listening(watched, "/events?types=PUT|FINI&names=*", MAX)      # nothing of what happens here
        put(watched, "mail")
        await heard(eva, b"id: 2\nevent: PUT\ndata: PUT mail 3\n\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(other.reader.readline(), 0.1)
        eva.writer.close()
        other.writer.close()

    run(test, Secrets())


def test_a_stream_ends_with_its_user_and_narrows_with_the_rights() -> None:
    async def test(watched: Watched) -> None:
        access = watched.hub.access
        access.file_users = {name: Account(rights.of_text("get"), None, None) for name in ("eva", "max")}
        gone, narrowed = [await listening(watched, "/events?types=PUT", user) for user in (EVA, MAX)]
        put(watched, "news")
        for client in (gone, narrowed):
            await heard(client, b"id: 2\nevent: PUT\ndata: PUT news 3\n\n")
        access.file_users = {"max": Account(rights.of_text("get:mail*"), None, None)}
        put(watched, "news", "mail")
        await heard(narrowed, b"id: 4\nevent: PUT\ndata: PUT mail 3\n\n")
        assert await asyncio.wait_for(gone.reader.read(1), 60) == b""
        while len(watched.hub.subscriptions) > 1:
            await asyncio.sleep(0.01)
        gone.writer.close()
        narrowed.writer.close()

    run(test, Secrets())


def test_streams_are_few_and_spare_the_other_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "STREAMS_MAX", 2)
    monkeypatch.setattr(http_module, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(http_module, "CONNECTION_S", 0.2)

    async def test(watched: Watched) -> None:
        clients = [await listening(watched, "/events?types=PUT") for _ in range(2)]
        assert await watched.get("/events?types=PUT") == (503, "too many streams of events\n")
        for _ in range(3):
            assert (await watched.get("/healthz"))[0] == 200
        await asyncio.sleep(0.3)                # they outlive other connections
        put(watched, "q")
        for client in clients:
            await heard(client, b"id: 2\nevent: PUT\ndata: PUT q 3\n\n")
            client.writer.close()

    run(test)


def test_an_address_with_most_streams_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = iter("aaabb")
    monkeypatch.setattr(http_module, "STREAMS_MAX", 3)
    monkeypatch.setattr(http_module, "address_of", lambda host: next(addresses))

    async def test(watched: Watched) -> None:
        oldest, *others = [await listening(watched, "/events?types=PUT") for _ in range(3)]
        late = await listening(watched, "/events?types=PUT")
        assert await oldest.rest() == b""
        assert await watched.get("/events?types=PUT") == (503, "too many streams of events\n"), "it has its share"
        put(watched, "q")
        for client in (*others, late):
            await heard(client, b"id: 2\nevent: PUT\ndata: PUT q 3\n\n")
            client.writer.close()
        oldest.writer.close()

    run(test)


def test_a_silent_stream_says_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_thread, "ALIVE_S", 0.05)

    async def test(watched: Watched) -> None:
        client = await listening(watched, "/events")
        await heard(client, b":\n\n:\n\n")
        client.writer.close()

    run(test)


def test_a_client_that_does_not_read_is_cut() -> None:
    async def test(watched: Watched) -> None:
        client = await listening(watched, "/events?types=PUT")
        client.writer.transport.pause_reading()     # type: ignore[attr-defined]
        for _ in range(400):
            put(watched, *["q" * 250] * 100)
            await asyncio.sleep(0.01)
            if not len(watched.hub.subscriptions):
                break
        assert not len(watched.hub.subscriptions)
        client.writer.close()

    run(test)


async def calls_of_the_loop(watched: Watched, streams: int, turns: int) -> int:
    """Return how many functions the loop's thread calls while this many streams receive this many events, each in a
    turn.
    """
    connections = []
    for _ in range(streams):
        client = await listening(watched, "/events?types=PUT&names=q*")
        connection = client.writer.get_extra_info("socket").dup()
        client.writer.transport.pause_reading()     # type: ignore[attr-defined]
        connections.append((client, connection))
    calls = 0

    def count(*ignored: object) -> None:
        nonlocal calls
        calls += 1

    for turn in range(turns):
        sys.setprofile(count)
        put(watched, f"q{turn}")
        await asyncio.sleep(0)
        sys.setprofile(None)
        await asyncio.sleep(0)
    last = f"data: PUT q{turns - 1} 3\n".encode()
    for client, connection in connections:
        got = b""
        while last not in got:
            with contextlib.suppress(BlockingIOError):
                got += connection.recv(1 << 16)
            await asyncio.sleep(0.001)
        assert got.count(b"event: PUT") == turns
        connection.close()
        client.writer.close()
    while len(watched.hub.subscriptions):
        await asyncio.sleep(0.01)
    return calls


def test_twenty_streams_cost_the_loop_no_more_than_one() -> None:
    async def test(watched: Watched) -> None:
        watched.lag.stop()
        await calls_of_the_loop(watched, 1, 5)
        one = await calls_of_the_loop(watched, 1, 100)
        twenty = await calls_of_the_loop(watched, 20, 100)
        assert twenty < one * 1.1, (one, twenty)

    run(test)


def test_a_stream_reads_the_past_before_what_is_new_and_hears_of_a_gap() -> None:
    async def test(watched: Watched) -> None:
        first = await listening(watched, "/events?type=PUT")
        put(watched, *["a"] * 2500)
        late = await listening(watched, "/events?type=PUT&from=1")
        put(watched, "b")
        state = watched.cluster.machine._state
        newest = state.events.seq
        state.events.seq += 5               # a snapshot of others is installed
        watched.hub.state_replaced()
        watched.hub.notices_lost()          # no concern of who does not listen to messages
        put(watched, "c")
        told = [b"id: %d\nevent: PUT\ndata: PUT a 3\n\n" % number for number in range(2, newest)]
        told += [
            b"id: %d\nevent: PUT\ndata: PUT b 3\n\n" % newest,
            b"id: %d\nevent: GAP\ndata: GAP %d %d\n\n" % (newest + 5, newest + 1, newest + 5),
            b"id: %d\nevent: PUT\ndata: PUT c 3\n\n" % (newest + 6),
        ]
        await heard(late, b"".join(told))
        late.writer.close()
        first.writer.close()

    run(test)


def test_streams_over_tls_are_the_same(tmp_path: Path) -> None:
    async def test(watched: Watched) -> None:
        tls = ssl.create_default_context(cafile=ca_file(tmp_path))
        client = await watched.connect(tls)
        client.send(b"GET /events?types=PUT HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await client.reader.readuntil(b"\r\n\r\n")
        await heard(client, b":\n\n")
        for number in range(2, 5):
            put(watched, "q")
            await heard(client, b"id: %d\nevent: PUT\ndata: PUT q 3\n\n" % number)
        client.writer.close()

    run(test, tls=server_tls("localhost"))


def test_the_loop_encrypts_a_bounded_piece_at_a_time_however_much_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[int] = []
    write = event_stream.Encrypted._write

    def noting(connection: event_stream.Encrypted, data: bytes) -> None:
        written.append(len(data))
        write(connection, data)
    monkeypatch.setattr(event_stream.Encrypted, "_write", noting)

    async def test(watched: Watched) -> None:
        tls = ssl.create_default_context(cafile=ca_file(tmp_path))
        client = await watched.connect(tls)
        client.send(b"GET /events?types=PUT HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await client.reader.readuntil(b"\r\n\r\n")
        await heard(client, b":\n\n")
        put(watched, *["q"] * 2000)
        await heard(client, b"".join(
            b"id: %d\nevent: PUT\ndata: PUT q 3\n\n" % number for number in range(2, 2002)
        ))
        client.writer.close()

    run(test, tls=server_tls("localhost"))
    assert sum(written) > 4 * event_stream.TLS_PIECE_BYTES
    assert max(written) <= event_stream.TLS_PIECE_BYTES


def test_what_a_stream_holds_is_in_the_account_and_whoever_reads_nothing_is_cut() -> None:
    async def test(watched: Watched) -> None:
        client = await listening(watched, "/events?types=MSG")
        client.writer.transport.pause_reading()     # type: ignore[attr-defined]
        account, manager = watched.hub.account, watched.hub.connection_manager
        (accepted,) = manager.accepted
        while not accepted._connection.unsent_bytes():      # the client's kernel takes some
            watched.hub.notice("news", bytes(200_000))
            await asyncio.sleep(0.05)
        accepted.check(asyncio.get_running_loop().time())
        assert account.held_bytes > 0
        accepted.check(asyncio.get_running_loop().time() + 61)
        while manager.accepted:
            await asyncio.sleep(0.01)
        client.writer.transport.abort()
        assert account.held_bytes == 0

    run(test)
