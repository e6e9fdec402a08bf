"""The fake server keeps the promise of sessions, however late its threads are: a repeated request hands out one job."""

from __future__ import annotations

import socket
import time

import pytest

from devcluster import ports
from tests.client.fake_server import FakeCluster
from tests.waiting import until


def connect(cluster: FakeCluster, session: str) -> socket.socket:
    """Return a connection that has opened or attached a session."""
    connection = socket.create_connection(("127.0.0.1", cluster.servers[0].port), 60)
    connection.sendall(f"SESSION{session}\r\n".encode())
    assert connection.recv(1000).startswith(b"200 OK")
    return connection


def put(cluster: FakeCluster, *bodies: bytes) -> None:
    with cluster.lock:
        cluster.waiting["q"].extend((0, body, None) for body in bodies)
        cluster.lock.notify_all()


def test_nobody_else_listens_where_it_has_stopped(cluster: FakeCluster) -> None:
    before = [server.port for server in cluster.servers]
    for server in cluster.servers:
        server.stop()
    assert max(before) < ports._highest(), "outgoing connections take such ports"
    assert {*before} <= {*ports._used}, "claimed against other processes"


def test_what_waits_on_a_connection_gives_up_when_the_request_is_repeated_on_another_one(cluster: FakeCluster) -> None:
    with connect(cluster, "") as first, connect(cluster, f" 1_{1:016x}") as second:
        first.sendall(b"REQ 1 GETB q EXPIRE 30\r\n")
        until(lambda: "GETB q EXPIRE 30" in cluster.servers[0].received)
        second.sendall(b"REQ 1 GETB q EXPIRE 30 FOR 5\r\n")
        assert first.recv(1000) == b"", "also though its client has not closed it"
        put(cluster, b"x", b"y")
        assert second.recv(1000) == b"200 OK q 1 0 1\r\nx"
        assert list(cluster.running) == [1]
        assert cluster.bodies("q") == [b"y"]


def test_a_request_that_is_repeated_while_it_is_executed_is_executed_once(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = cluster.servers[0]
    put(cluster, b"x")
    end = server._end

    def slow(words: list[str]) -> bytes:
        answer = end(words)
        time.sleep(0.2)         # until the repetition is there
        return answer

    monkeypatch.setattr(server, "_end", slow)
    with connect(cluster, "") as first, connect(cluster, f" 1_{1:016x}") as second:
        first.sendall(b"GET q EXPIRE 30\r\n")
        assert first.recv(1000) == b"200 OK q 1 0 1\r\nx"
        for connection in (first, second):
            connection.sendall(b"REQ 1 DONE 1\r\n")
        assert {first.recv(1000), second.recv(1000)} == {b"200 OK FINQ\r\n"}
