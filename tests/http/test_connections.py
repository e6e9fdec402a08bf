"""Limits that end the connections of slow, greedy and vanished clients."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from http.client import HTTPResponse

import httpx
import pytest
from sockpq.testing import Server
from sockpq_http.access.users import UserLimits
from sockpq_http.server.settings import ConnectionLimits

from tests.http.door import Door
from tests.http.test_jobs import put
from tests.waiting import until

PATIENT_S = 3600.0          # each instance is impatient in one respect: a busy machine may hold up all others for long


def limits(**times: float) -> ConnectionLimits:
    """Limits with these times, and otherwise none that a busy machine could reach."""
    patient = {"head_timeout_s": PATIENT_S, "body_timeout_s": PATIENT_S, "answer_timeout_s": PATIENT_S}
    return ConnectionLimits(**{**patient, **times}, head_bytes_max=8192)       # type: ignore[arg-type]


@pytest.fixture(scope="module")
def patient(http_node: Server) -> Iterator[Door]:
    """An instance with limits on sizes only."""
    with Door(http_node.address, connections=limits(), body_bytes_max=1 << 20) as door:
        yield door


@pytest.fixture(scope="module")
def no_heads(http_node: Server) -> Iterator[Door]:
    """An instance that does not wait for heads."""
    with Door(http_node.address, connections=limits(head_timeout_s=0.3)) as door:
        yield door


@pytest.fixture(scope="module")
def no_bodies(http_node: Server) -> Iterator[Door]:
    """An instance that does not wait for bodies."""
    with Door(http_node.address, connections=limits(body_timeout_s=0.3)) as door:
        yield door


@pytest.fixture(scope="module")
def no_readers(http_node: Server) -> Iterator[Door]:
    """An instance that does not wait until its answers are read."""
    with Door(http_node.address, connections=limits(answer_timeout_s=0.5)) as door:
        yield door


def cut(door: Door, limit: str) -> float:
    """The number of connections that this limit has ended."""
    value = door.service.metrics.registry.get_sample_value("sockpq_http_connections_cut_total", {"limit": limit})
    return value or 0.0


def read_all(connection: socket.socket) -> bytes:
    connection.settimeout(120)
    found = b""
    try:
        while piece := connection.recv(65_536):
            found += piece
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHo"])
def test_a_head_that_does_not_come_ends_the_connection(no_heads: Door, sent: bytes) -> None:
    before = cut(no_heads, "head")
    with socket.create_connection(("127.0.0.1", no_heads.port)) as connection:
        connection.sendall(sent)
        assert read_all(connection) == b""
    assert cut(no_heads, "head") == before + 1


def test_a_second_head_that_does_not_come_ends_the_connection(no_heads: Door) -> None:
    def attempt() -> bool:
        before, first = cut(no_heads, "head"), b""
        with socket.create_connection(("127.0.0.1", no_heads.port)) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with suppress(ConnectionError):
                first = connection.recv(65_536)
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHo")
            read_all(connection)
        return first.startswith(b"HTTP/1.1 200 ") and cut(no_heads, "head") == before + 1

    until(attempt, "the second head is waited for in vain")     # a busy machine may miss the first one


def test_a_body_that_does_not_come_ends_the_request(no_bodies: Door) -> None:
    with socket.create_connection(("127.0.0.1", no_bodies.port)) as connection:
        connection.sendall(b"POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab")
        answer = read_all(connection)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("sent", [
    b"GET / HTTP/1.1\r\nX: " + b"a" * 9_000, b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
], ids=("long", "tls", "no host", "length"))
def test_what_is_no_request_is_refused(patient: Door, sent: bytes) -> None:
    before = cut(patient, "malformed")
    with socket.create_connection(("127.0.0.1", patient.port)) as connection:
        connection.sendall(sent)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer
    assert cut(patient, "malformed") == before + 1


def test_a_bad_request_behind_a_good_one_ends_the_connection(patient: Door) -> None:
    with socket.create_connection(("127.0.0.1", patient.port)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET nonsense\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_a_body_that_is_too_large_is_refused_before_it_comes(patient: Door) -> None:
    with socket.create_connection(("127.0.0.1", patient.port)) as connection:
        connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 413 ")
    with socket.create_connection(("127.0.0.1", patient.port)) as connection:
        connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(20):
                connection.sendall(b"10000\r\n" + b"a" * 65_536 + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            return                  # it has not waited for all of it
        answer = read_all(connection)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413 ")     # what is sent to a closed socket may reset it


def test_an_answer_that_nobody_reads_ends_the_connection(no_readers: Door) -> None:
    with no_readers.client() as web:
        for _ in range(8):
            put(web, "large", text="x" * 1_000_000)
    before = cut(no_readers, "answer")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", no_readers.port))
        connection.sendall(b"GET /v1/queues/large/jobs?count=10 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: cut(no_readers, "answer") == before + 1, "it is cut")


def test_a_stream_that_nobody_reads_ends_the_connection(no_readers: Door) -> None:
    before = cut(no_readers, "answer")
    message = {"text": "x" * 250_000}
    with socket.socket() as connection, no_readers.client() as web:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", no_readers.port))
        connection.sendall(b"GET /v1/events?type=MSG&name=flood HTTP/1.1\r\nHost: localhost\r\n\r\n")

        def flood() -> bool:
            web.post("/v1/channels/flood/messages", json=message)
            return cut(no_readers, "answer") == before + 1

        until(flood, "it is cut")


@pytest.fixture(scope="module")
def narrow(http_node: Server) -> Iterator[Door]:
    """An instance with two places, and those that are reserved for this machine."""
    patient = ConnectionLimits(connections_max=2, head_timeout_s=PATIENT_S, idle_timeout_s=int(PATIENT_S))
    with Door(http_node.address, connections=patient) as door:
        yield door


def connections(door: Door) -> float:
    return door.service.metrics.registry.get_sample_value("sockpq_http_connections") or 0.0


def is_answered(connection: socket.socket) -> bool:
    connection.settimeout(120)
    connection.sendall(b"GET /v1/queues HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status == 200


@pytest.mark.parametrize("sent", [b"", b"GET /v1/queues HTTP/1.1\r\nHo"], ids=("silent", "half"))
def test_strangers_make_room_for_others_and_users_stay(narrow: Door, sent: bytes) -> None:
    until(lambda: connections(narrow) == 0)
    before = cut(narrow, "room")
    with ExitStack() as held:
        user = held.enter_context(socket.create_connection(("127.0.0.1", narrow.port)))
        assert is_answered(user)
        strangers = []
        for _ in range(40):
            strangers.append(held.enter_context(socket.create_connection(("127.0.0.1", narrow.port))))
            strangers[-1].sendall(sent)
        until(lambda: cut(narrow, "room") == before + 40 - 17)
        with socket.create_connection(("127.0.0.1", narrow.port)) as newest:
            assert is_answered(newest)
        assert read_all(strangers[0]) == b""
        assert is_answered(user)


def test_where_all_places_are_users_nobody_else_comes_in(narrow: Door) -> None:
    until(lambda: connections(narrow) == 0)
    before = cut(narrow, "places")
    with ExitStack() as held:
        users = [held.enter_context(socket.create_connection(("127.0.0.1", narrow.port))) for _ in range(18)]
        assert all(is_answered(user) for user in users)
        with socket.create_connection(("127.0.0.1", narrow.port)) as newest:
            assert read_all(newest) == b""
        assert cut(narrow, "places") == before + 1
        assert all(is_answered(user) for user in users)
    until(lambda: connections(narrow) == 0)
    with narrow.client() as web:
        assert web.get("/healthz").json() == {"status": "ok"}


def test_requests_of_a_user_have_places(http_node: Server) -> None:
    with Door(http_node.address, users=UserLimits(connections_max=1, waiting_max=0)) as door, door.client() as web:
        with web.stream("GET", "/v1/events", params={"type": "LEADER"}) as stream:
            lines = stream.iter_lines()         # at whose end the stream would be closed
            assert next(lines)
            busy = web.get("/v1/cluster")
            assert (busy.status_code, busy.json()["reason"], busy.headers["retry-after"]) == (503, "Busy", "1")
        until(lambda: web.get("/v1/cluster").status_code == 200, "the place is free")


def in_progress(door: Door, number: int) -> bool:
    return door.service.metrics.registry.get_sample_value("sockpq_http_requests_in_progress") == number


def test_clients_that_hang_up_while_they_wait_leave_no_place_taken(http_node: Server) -> None:
    take = (b"POST /v1/queues/none/take HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b'Content-Length: 12\r\n\r\n{"wait": 60}')
    users = UserLimits(connections_max=1, waiting_max=3, patience_s=PATIENT_S)
    with Door(http_node.address, users=users, connections=limits()) as door, door.client() as web:
        with ExitStack() as held:
            for number in range(4):             # one has the place, the others wait for it
                connection = held.enter_context(socket.create_connection(("127.0.0.1", door.port)))
                connection.sendall(take)
                until(partial(in_progress, door, number + 1))
            assert web.get("/v1/cluster").status_code == 503
        until(lambda: web.get("/v1/cluster").status_code == 200, "their places are free")


def test_a_web_page_with_a_foreign_name_gets_no_answer(web: httpx.Client, http_node: Server) -> None:
    assert web.get("/healthz", headers={"Host": "evil.example.com"}).status_code == 400
    settings = {"hosts": ("jobs.example.com",), "cors_origins": ("https://app.example.com",)}
    with Door(http_node.address, **settings) as door, door.client() as named:
        assert named.get("/healthz", headers={"Host": "jobs.example.com"}).status_code == 200
        asked = {"Origin": "https://app.example.com", "Access-Control-Request-Method": "POST"}
        assert named.options("/v1/jobs", headers=asked).status_code == 200
        asked["Origin"] = "https://evil.example.com"
        assert "access-control-allow-origin" not in named.options("/v1/jobs", headers=asked).headers
    asked = {"Origin": "https://app.example.com", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in web.options("/v1/jobs", headers=asked).headers
