"""Clients that want more than a real node has: more commands, more memory, more places."""

from __future__ import annotations

import contextlib
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import sockpq

from devcluster.cluster import LocalCluster, say

PATIENCE_S = 60.0       # far more than anything takes
MIB = 1 << 20


def connect(server: str) -> socket.socket:
    host, port = server.rsplit(":", 1)
    return socket.create_connection((host, int(port)), PATIENCE_S)


@contextlib.contextmanager
def all_closed(connections: list[socket.socket]) -> Iterator[None]:
    try:
        yield
    finally:
        for connection in connections:
            connection.close()


class Greedy(threading.Thread):
    """Pipelines small commands on a connection, `count` of them, and counts the answers."""

    def __init__(self, server: str, count: int) -> None:
        super().__init__(daemon=True)
        self._connection = connect(server)
        self._commands = b"GET nothing\r\n" * count
        self.answered = 0
        self.begun = threading.Event()

    def run(self) -> None:
        sender = threading.Thread(target=self._send, daemon=True)
        sender.start()
        with contextlib.suppress(OSError):
            while data := self._connection.recv(1 << 16):
                self.answered += data.count(b"\n")
                self.begun.set()

    def _send(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.sendall(self._commands)

    def close(self) -> None:
        self._connection.shutdown(socket.SHUT_RDWR)
        self.join(PATIENCE_S)
        self._connection.close()


def test_who_pipelines_without_end_does_not_keep_others_waiting() -> None:
    count, clients, commands = 20_000, 30, 60
    with LocalCluster(1) as cluster:
        server = cluster.server(cluster.wait_for_leader())
        greedy = [Greedy(server, count) for _ in range(clients)]
        try:
            for one in greedy:
                one.start()
            for one in greedy:
                assert one.begun.wait(PATIENCE_S)
            before = sum(one.answered for one in greedy)
            with connect(server) as ordinary:
                answers = ordinary.makefile("rb")
                for _ in range(commands):
                    ordinary.sendall(b"DONE 1\r\n")
                    assert answers.readline() == b"404 Job Not Found\r\n"
            # In one line with the others each command would wait for what all of them have queued.
            waited_for = (sum(one.answered for one in greedy) - before) / commands
            assert waited_for < 5 * 640, "an ordinary command waits for a few entries"
            assert sum(one.answered for one in greedy) < count * clients, "it was not tested"
        finally:
            for one in greedy:
                one.close()


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_bodies_that_never_end_take_no_more_memory_than_a_node_can_spare() -> None:
    with LocalCluster(1, {"limits": {"memory_mark": 200 * MIB}}) as cluster:
        name = cluster.wait_for_leader()
        server, pid = cluster.server(name), cluster.pid(name)
        assert pid is not None
        before = highest = resident_bytes(pid)
        connections: list[socket.socket] = []
        with all_closed(connections):
            for _ in range(60):
                connection = connect(server)
                connections.append(connection)
                with contextlib.suppress(OSError):      # it may be cut, holding most
                    connection.sendall(b"PUT q 0 8000000\r\n" + bytes(6 * MIB))
                highest = max(highest, resident_bytes(pid))
                assert say(server, "PING", PATIENCE_S) == "200 OK"
            with sockpq.Client([server]) as client:
                client.put("small", b"is taken all the same")
        assert highest - before < 160 * MIB             # 360 MiB were sent; 64 MiB are held at most


def test_a_full_node_says_so_and_its_health_page_answers() -> None:
    with LocalCluster(1, {"limits": {"connections_max": 5}}) as cluster:
        name = cluster.wait_for_leader()
        server = cluster.server(name)
        connections: list[socket.socket] = []
        with all_closed(connections):
            for _ in range(5 + 16):                     # this machine has 16 further places
                connections.append(connect(server))
                connections[-1].sendall(b"PING\r\n")
                assert connections[-1].recv(100) == b"200 OK\r\n"
            (view,) = sockpq.survey([server], PATIENCE_S)
            assert isinstance(view.error, sockpq.Busy)
            with urllib.request.urlopen(f"http://{cluster.http(name)}/healthz", timeout=PATIENCE_S) as page:
                assert page.status == 200
        with sockpq.Client([server]) as client:
            client.put("q", b"there is room again")
