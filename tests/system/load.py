"""Producers that put numbered jobs and remember what was acknowledged, whatever happens to the servers."""

from __future__ import annotations

import socket
import threading
import time

from devcluster.cluster import LocalCluster

ANSWER_S = 5.0


class Producer(threading.Thread):
    """Puts jobs one after the other, each with a body of its own, on whatever server takes them."""

    def __init__(self, servers: list[str], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._servers = servers
        self._stopping = threading.Event()
        self.acknowledged: list[bytes] = []
        self.refused: list[bytes] = []
        self.unknown: list[bytes] = []
        self.error: Exception | None = None

    def finish(self) -> None:
        """Stop after the present command."""
        self._stopping.set()
        self.join(30)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error

    def run(self) -> None:
        try:
            self._work()
        except Exception as error:
            self.error = error

    def _work(self) -> None:
        number, turn = 0, 0
        connection: socket.socket | None = None
        while not self._stopping.is_set():
            if connection is None:
                turn += 1
                connection = self._connect(self._servers[turn % len(self._servers)])
                continue
            number += 1
            body = f"{self.name}-{number}".encode()
            answer = self._put(connection, body)
            if answer == b"200 OK\r\n":
                self.acknowledged.append(body)
                continue
            if answer in (b"500 Offline Mode\r\n", b"503 Busy\r\n"):
                self.refused.append(body)
            else:
                assert answer == b"", f"an answer nobody expects: {answer!r}"
                self.unknown.append(body)
            connection.close()
            connection = None
        if connection is not None:
            connection.close()

    def _connect(self, server: str) -> socket.socket | None:
        host, port = server.rsplit(":", 1)
        try:
            connection = socket.create_connection((host, int(port)), 1.0)
        except OSError:
            time.sleep(0.02)
            return None
        connection.settimeout(ANSWER_S)
        return connection

    def _put(self, connection: socket.socket, body: bytes) -> bytes:
        """The answer's line; empty when the connection ended without one."""
        line = b""
        try:
            connection.sendall(b"PUT load 0 %d\r\n%s" % (len(body), body))
            while not line.endswith(b"\n"):
                data = connection.recv(4096)
                if not data:
                    return b""
                line += data
        except OSError:
            return b""
        return line


def drain(cluster: LocalCluster, queue: str = "load") -> list[bytes]:
    """Take all jobs of a queue out of the serving node."""
    host, port = cluster.server(cluster.wait_for_leader()).rsplit(":", 1)
    bodies = []
    with socket.create_connection((host, int(port)), 5.0) as connection, connection.makefile("rb") as stream:
        while True:
            connection.sendall(b"GET %s\r\n" % queue.encode() * 100)
            empty = 0
            for _ in range(100):
                words = stream.readline().split()
                if words[:2] == [b"200", b"OK"]:
                    bodies.append(stream.read(int(words[5])))
                else:
                    assert words[0] == b"404", words
                    empty += 1
            if empty:
                return bodies


def check(producers: list[Producer], bodies: list[bytes]) -> None:
    """Nothing acknowledged is missing, nothing refused is there, nothing is doubled or invented."""
    found = set(bodies)
    assert len(found) == len(bodies), "a job was handed out twice"
    acknowledged = {body for producer in producers for body in producer.acknowledged}
    refused = {body for producer in producers for body in producer.refused}
    unknown = {body for producer in producers for body in producer.unknown}
    assert not acknowledged - found, f"lost: {sorted(acknowledged - found)[:10]} of {len(acknowledged)}"
    assert not refused & found, f"refused and yet executed: {sorted(refused & found)[:10]}"
    assert not found - acknowledged - unknown, "invented"
