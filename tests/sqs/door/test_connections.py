"""Connections: limits of slow, greedy and silent clients, and an orderly close."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import ssl
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme
from sockpq_sqs.door import listener
from sockpq_sqs.door.connection import Connection
from sockpq_sqs.door.limits import BODY_BYTES_MAX, HEADERS_MAX, LARGE_BYTES, LINE_BYTES_MAX, REST, UNUSUAL_S
from sockpq_sqs.door.memory import MemoryAccount
from sockpq_sqs.door.places import Places
from sockpq_sqs.door.turns import Turns

from tests.sqs.door.doors import RunningDoor, ask, json_headers, send, users_file
from tests.waiting import until

MIB = 1 << 20


def request(action: str, body: bytes = b"{}", length: int | None = None) -> bytes:
    """An unsigned request, whose body is announced with another length if one is given."""
    size = len(body) if length is None else length
    return (b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.%b\r\nContent-Length: %d\r\n\r\n%b"
            % (action.encode(), size, body))


LIST = request("ListQueues")
POLL = request("ReceiveMessage", b'{"QueueUrl": "q"}')
FIND = request("GetQueueUrl", b'{"QueueName": "q"}')
# What is measured here is not the machine.
PATIENT = {"hello_timeout_s": 0, "request_timeout_s": 0, "idle_timeout_s": 0, "answer_timeout_s": 0}
CHUNKS = LIST.replace(b"Content-Length: 2", b"Transfer-Encoding: chunked").removesuffix(b"{}")
EXPECTING = LIST.removesuffix(b"{}").replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")


@pytest.fixture
def door() -> Iterator[RunningDoor]:
    with RunningDoor() as door:
        yield door


def rest(connection: socket.socket) -> bytes:
    """Read until the door closes the connection."""
    found = b""
    with suppress(ConnectionError):
        while data := connection.recv(65536):
            found += data
    return found


def is_open(door: RunningDoor, connection: socket.socket) -> bool:
    connection.sendall(LIST)
    return connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_connection_carries_many_requests(door: RunningDoor) -> None:
    with door.socket() as connection:
        for _ in range(3):
            assert is_open(door, connection)
        connection.sendall(LIST * 100)          # ahead of the answers, more than are read ahead
        found = b""
        while found.count(b"HTTP/1.1 200") < 100:
            data = connection.recv(65536)
            assert data
            found += data


def test_what_is_not_http_ends_the_connection(door: RunningDoor, caplog: pytest.LogCaptureFixture) -> None:
    for rubbish in (b"\0\1\2\3\r\n\r\n", b"PUT mail 0 5\r\nhello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
                    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
        with door.socket() as connection:
            connection.sendall(rubbish)
            assert rest(connection).startswith((b"HTTP/1.1 400", b"HTTP/1.0 400")), rubbish
    assert not caplog.records


def test_floods_of_headers_end_the_connection(door: RunningDoor) -> None:
    for flood in (b"GET /" + b"a" * LINE_BYTES_MAX + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                  b"GET / HTTP/1.1\r\nX: " + b"a" * LINE_BYTES_MAX + b"\r\n\r\n",
                  b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * (HEADERS_MAX + 1) + b"\r\n",
                  b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 100_000):
        with door.socket() as connection:
            with suppress(ConnectionError):
                connection.sendall(flood)
            answer = rest(connection)
            assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")) or not answer


def test_a_connection_that_was_no_http_leaves_nothing_behind(door: RunningDoor) -> None:
    made: list[weakref.ref[Connection]] = []
    make = door.door._connection
    door.door._listener._make = lambda *given: made.append(weakref.ref(one := make(*given))) or one
    gc.disable()
    try:
        for _ in range(3):
            with door.socket() as connection, suppress(ConnectionError):
                connection.sendall(b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 100_000)
                rest(connection)
        until(lambda: len(made) == 3 and not any(one() for one in made))
    finally:
        gc.enable()


def test_a_body_beyond_the_limit_is_refused_before_it_comes(door: RunningDoor) -> None:
    with door.socket() as connection:
        connection.sendall(request("ListQueues", length=BODY_BYTES_MAX + 1))
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
    with door.socket() as connection:
        connection.sendall(CHUNKS)
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        with suppress(ConnectionError):
            for _ in range(BODY_BYTES_MAX // 0x10000 + 1):
                connection.sendall(chunk)
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
    assert not door.engine.calls


def test_the_largest_body_is_read(door: RunningDoor) -> None:
    body = json.dumps({"QueueUrl": "q", "MessageBody": "ü" * (MIB // 2)}).encode()       # 1 MiB in UTF-8, escaped
    assert 3 * MIB < len(body) < BODY_BYTES_MAX
    assert ask(f"{door.url}/", body=body, headers=json_headers("SendMessage"))[0] == 200
    assert door.call(lambda: door.door.figures.held_bytes()) == 0


def test_large_requests_are_decoded_one_after_the_other_with_small_ones_between_them() -> None:
    async def run() -> list[str]:
        turns, order = Turns(), []

        async def one(name: str, size: int) -> None:
            async with turns.turn(size):
                order.append(name)

        await asyncio.gather(*(one(f"large{number}", LARGE_BYTES) for number in range(3)), one("small", 5))
        return order

    assert asyncio.run(run()) == ["large0", "small", "large1", "large2"]


def test_after_a_costly_request_the_next_large_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []

    async def rest_for(seconds: float) -> None:
        rests.append(seconds)

    async def run() -> None:
        turns = Turns()
        async with turns.turn(LARGE_BYTES):
            end = time.thread_time() + 2 * UNUSUAL_S
            while time.thread_time() < end:
                pass
        async with turns.turn(LARGE_BYTES - 1):
            pass

    # Not the function itself, which servers of other tests call in their threads.
    monkeypatch.setattr("sockpq_sqs.door.turns.asyncio", SimpleNamespace(Lock=asyncio.Lock, sleep=rest_for))
    asyncio.run(run())
    assert len(rests) == 1
    assert rests[0] >= 2 * UNUSUAL_S * REST


def test_a_body_in_chunks_is_read(door: RunningDoor) -> None:
    with door.socket() as connection:
        connection.sendall(CHUNKS)
        connection.sendall(b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_compressed_body_is_not_unpacked(door: RunningDoor) -> None:
    headers = {**json_headers("ListQueues"), "Content-Encoding": "gzip"}
    assert ask(f"{door.url}/", body=b"\x1f\x8b rubbish", headers=headers)[0] == 400


def test_a_client_that_waits_for_100_continue_is_asked_to_go_on(tmp_path: Path) -> None:
    with RunningDoor(users_file(tmp_path)) as door, door.socket() as connection:
        connection.sendall(EXPECTING)           # but not if it has no signature
        assert connection.recv(65536).startswith(b"HTTP/1.1 403")
    with RunningDoor() as door, door.socket() as connection:
        connection.sendall(EXPECTING)
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("sent", "limit", "reason"),
    [
        (b"", "hello_timeout_s", "has sent no request"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\n", "request_timeout_s", "has not completed its request"),
        (LIST.removesuffix(b"}"), "request_timeout_s", "has not completed its request"),
        (LIST, "idle_timeout_s", "has been idle"),
    ],
)
def test_slow_clients_are_cut_off(sent: bytes, limit: str, reason: str) -> None:
    with RunningDoor(limits={**PATIENT, limit: 1}) as door, door.socket() as connection:
        connection.sendall(sent)
        rest(connection)
        assert dict(door.door.figures.cut) == {reason: 1}


def test_the_kernel_keeps_nothing_of_a_connection_that_is_cut() -> None:
    with (
        RunningDoor(limits={**PATIENT, "hello_timeout_s": 1}) as door, door.socket() as client,
        pytest.raises(ConnectionResetError),
    ):
        client.recv(1)


def test_bytes_that_trickle_in_are_no_request() -> None:
    with RunningDoor(limits={**PATIENT, "request_timeout_s": 1}) as door, door.socket() as connection:
        with suppress(ConnectionError):
            for byte in LIST * 10_000:
                connection.sendall(bytes([byte]))
                time.sleep(0.05)
                if door.door.figures.cut:
                    break
        until(lambda: door.door.figures.cut)
        assert dict(door.door.figures.cut) == {"has not completed its request": 1}


def test_a_client_that_does_not_read_is_cut_off() -> None:
    with RunningDoor(limits={**PATIENT, "answer_timeout_s": 1}) as door, door.socket() as connection:
        door.engine.answer_bytes = 20 * MIB
        connection.sendall(FIND)
        until(lambda: door.door.figures.cut)
        assert dict(door.door.figures.cut) == {"does not read its answers": 1}


def test_a_client_that_reads_slowly_gets_its_answer() -> None:
    with RunningDoor(limits={**PATIENT, "answer_timeout_s": 60}) as door, door.socket() as connection:
        door.engine.answer_bytes = 5 * MIB
        connection.sendall(FIND)
        size = 0
        while size < 5 * MIB:
            data = connection.recv(300_000)
            assert data
            size += len(data)
            time.sleep(0.01)
        assert size < 5 * MIB + 2000


def test_a_long_poll_whose_client_hangs_up_is_cancelled(door: RunningDoor) -> None:
    with door.socket() as connection:
        connection.sendall(POLL)
        until(lambda: door.engine.calls)
    until(lambda: door.engine.cancelled == 1)
    until(lambda: door.door.figures.requests["ReceiveMessage", "hung up"] == 1)
    assert door.door.figures.in_progress == 0


def test_when_all_places_are_taken_strangers_make_room() -> None:
    with RunningDoor(limits={**PATIENT, "connections_max": 3}) as door:
        user = door.socket()
        assert is_open(door, user)
        silent = [door.socket() for _ in range(18)]         # with those that are reserved for this machine
        until(lambda: door.call(lambda: door.door.figures.connections()) == 19)
        with door.socket() as newest:
            assert is_open(door, newest)
        assert rest(silent[0]) == b""
        assert door.door.figures.cut["made room for others"] == 1
        assert is_open(door, user)
        for connection in (user, *silent):
            connection.close()


def test_when_all_places_are_users_nobody_else_comes_in() -> None:
    with RunningDoor(limits={**PATIENT, "connections_max": 1}) as door:
        users = [door.socket() for _ in range(17)]
        assert all(is_open(door, user) for user in users)
        with door.socket() as newest:
            assert rest(newest) == b""
        assert all(is_open(door, user) for user in users)
        users.pop().close()

        def comes_in() -> bool:
            with door.socket() as newest:
                try:
                    return is_open(door, newest)
                except ConnectionError:
                    return False
        until(comes_in)
        for user in users:
            user.close()


def test_bodies_that_do_not_end_hold_no_more_memory_than_allowed() -> None:
    with RunningDoor(limits={**PATIENT, "memory_mib": 4}) as door:
        start = request("ListQueues", b" " * MIB, BODY_BYTES_MAX)
        slow = [door.socket() for _ in range(3)]
        for connection in slow:
            connection.sendall(start)
        until(lambda: door.call(lambda: door.door.figures.held_bytes()) == 3 * MIB)
        assert not door.door.figures.cut
        with door.socket() as small:            # what is small is still served
            assert is_open(door, small)
        slow[0].sendall(b" " * (MIB + 100_000))
        until(lambda: door.door.figures.cut["holds too much memory"] == 1)
        rest(slow[0])                           # it held most
        until(lambda: door.call(lambda: door.door.figures.held_bytes()) == 2 * MIB)
        for connection in slow:
            connection.close()
        until(lambda: door.call(lambda: door.door.figures.held_bytes()) == 0)


def test_with_little_memory_left_a_large_body_is_refused() -> None:
    with RunningDoor(limits={**PATIENT, "memory_mib": 1}) as door, door.socket() as slow:
        slow.sendall(request("ListQueues", b" " * (800 * 1024), MIB))
        until(lambda: door.call(lambda: door.door.figures.held_bytes()) > 790 * 1024)
        status, _, body = ask(f"{door.url}/", body=b" " * 100_000 + b"{}", headers=json_headers("ListQueues"))
        assert (status, json.loads(body)["__type"]) == (503, "com.amazon.coral.service#ServiceUnavailable")


def test_at_the_end_requests_in_progress_are_answered(door: RunningDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpq_sqs.door.door.QUICK_S", 0.1)
    with door.socket() as idle, door.socket() as poll:
        assert is_open(door, idle)
        poll.sendall(POLL)
        until(lambda: door.engine.calls[-1].action == "ReceiveMessage")
        door.begin_to_end()
        assert rest(idle) == b""
        answer = rest(poll)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"Connection: close" in answer
        assert b"ServiceUnavailable" in answer
    assert door.engine.cancelled == 1
    door.end()
    with pytest.raises(ConnectionError):
        door.socket()


def test_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"

    def issue(name: str) -> None:
        issued = authority.issue_cert(name)
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        key.touch(0o600)
        key.write_bytes(issued.private_key_pem.bytes())

    issue("old.test")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with RunningDoor(users_file(tmp_path), tls={"cert": str(cert), "key": str(key)}) as door:
        def greets(name: str) -> bool:
            try:
                with trusting.wrap_socket(door.socket(), server_hostname=name) as connection:
                    connection.sendall(LIST)
                    return connection.recv(65536).startswith(b"HTTP/1.1 403")
            except ssl.SSLCertVerificationError:
                return False

        assert greets("old.test")
        issue("new.test")
        until(lambda: greets("new.test"))
        with door.socket() as plain:            # and who does not speak TLS leaves nothing behind
            plain.sendall(LIST)
            rest(plain)
        until(lambda: door.call(lambda: len(door.door._connections._places)) == 0)


def test_a_handshake_that_does_not_end_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_S", 3600.0)
    authority = trustme.CA()
    issued, cert, key = authority.issue_cert("a.test"), tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.touch(0o600)
    key.write_bytes(issued.private_key_pem.bytes())
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    tls = {"cert": str(cert), "key": str(key)}
    with RunningDoor(users_file(tmp_path), tls=tls, limits={**PATIENT, "connections_max": 1}) as door:
        begun = lambda: door.call(lambda: len(door.door._listener._tasks))      # noqa: E731
        silent = [door.socket() for _ in range(17)]
        until(lambda: begun() == 17)
        with trusting.wrap_socket(door.socket(), server_hostname="a.test") as user:
            user.sendall(LIST)
            assert user.recv(65536).startswith(b"HTTP/1.1 403")
        assert broken(silent[0])
        until(lambda: begun() == 16)            # and its descriptor is free
        door.end()
        assert all(broken(one) for one in silent[1:])


def broken(client: socket.socket) -> bool:
    """Return whether a connection has been ended, and close it."""
    with client:
        try:
            return client.recv(1) == b""
        except ConnectionError:
            return True


class Visitor:
    """A connection that has a place."""

    def __init__(self, address: str | None) -> None:
        self.address = address
        self.ended = False

    def make_room(self) -> None:
        self.ended = True


def visitors(places: Places, address: str | None, count: int, *, known: bool) -> list[Visitor]:
    """Return connections that have taken places."""
    found = [Visitor(address) for _ in range(count)]
    for one in found:
        assert places.take(one)
        if known:
            places.recognise(one)
    return found


def test_places_are_counted_by_address() -> None:
    places = Places(4, 2)
    (one, _) = visitors(places, "10.0.0.1", 2, known=True)
    assert not places.take(Visitor("10.0.0.1"))
    visitors(places, "10.0.0.2", 2, known=True)
    assert not places.take(Visitor("10.0.0.3"))
    visitors(places, None, 16, known=True)      # places that are reserved for this machine
    assert not places.take(Visitor(None))
    for _ in range(2):
        places.leave(one)
    assert len(places) == 19
    assert places.take(Visitor("10.0.0.3"))
    of = listener.address_of
    assert of("127.0.0.1") is of("::1") is of("::ffff:127.0.0.1") is None
    assert of("2001:db8::1") == of("2001:db8::2%eth0") == "2001:db8::/64"
    assert of("::ffff:10.0.0.1") == "10.0.0.1"


def test_the_oldest_stranger_of_the_address_with_most_of_them_makes_room() -> None:
    places = Places(6, 4)
    users = visitors(places, "10.0.0.1", 1, known=True)
    many, few = visitors(places, "10.0.0.2", 3, known=False), visitors(places, "10.0.0.3", 2, known=False)
    visitors(places, "10.0.0.4", 1, known=False)
    assert [one.ended for one in (*users, *many, *few)] == [False, True, False, False, False, False]


def test_what_is_reserved_for_this_machine_makes_no_room() -> None:
    places = Places(4, 2)
    own = visitors(places, None, 16, known=False)
    visitors(places, "10.0.0.1", 2, known=True)
    strangers = visitors(places, "10.0.0.2", 2, known=False)
    visitors(places, "10.0.0.3", 1, known=False)
    assert [one.ended for one in (*strangers, *own)] == [True, False] + [False] * 16
    assert len(places) == 20
    visitors(places, None, 1, known=False)      # and beyond it this machine has no privilege
    assert sum(one.ended for one in own) == 1


def test_memory_is_taken_from_those_that_hold_most() -> None:
    class Client:
        evicted = False

        def evict(self) -> None:
            self.evicted = True

    account, clients = MemoryAccount(100), [Client() for _ in range(3)]
    for client, size in zip(clients, (20, 50, 30), strict=True):
        account.hold(client, size)
    assert account.high
    assert not any(client.evicted for client in clients)
    account.hold(clients[0], 21)
    assert [client.evicted for client in clients] == [False, True, False]
    assert (account.held_bytes, account.high, account.evicted) == (51, False, 1)
    account.hold(clients[0], 0)
    account.hold(clients[2], 0)
    account.hold(clients[1], 0)
    assert account.held_bytes == 0


def test_the_page_of_figures_is_for_this_machine_and_for_networks_that_are_named() -> None:
    with RunningDoor(http={"metrics_from": ["10.0.0.0/8"]}) as door:
        assert send(f"{door.url}/metrics", "GET", b"", {})[0] == 200
        pages = door.door._pages
        assert pages._may_see("10.1.2.3")
        assert pages._may_see("::ffff:10.1.2.3")
        assert not pages._may_see("192.168.0.1")
        assert not pages._may_see("rubbish")
