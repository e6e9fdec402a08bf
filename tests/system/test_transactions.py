"""Transactions under load and leader kills: what is moved by them is neither lost nor doubled."""

from __future__ import annotations

import socket
import threading
import time

from devcluster.cluster import LocalCluster
from tests.system.load import drain

JOBS = 40
KILLS = 3
ANSWER_S = 5.0


class Mover(threading.Thread):
    """Takes a job and puts it anew, by one transaction; repeats by number what it does not know the outcome of."""

    def __init__(self, servers: list[str]) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self._stopping = threading.Event()
        self._session = b""
        self._number = 1
        self._stream: socket.SocketIO | None = None
        self.moved = 0
        self.error: Exception | None = None

    def finish(self) -> None:
        """Stop between two moves."""
        self._stopping.set()
        self.join(60)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._move()
        except Exception as error:
            self.error = error

    def _move(self) -> None:
        line, data = self._ask(b"REQ %d GET balls EXPIRE 600\r\n", 0)
        if line == b"404 Queue Empty":
            self._number += 1
            return
        number = line.split()[3]
        transaction = b"BEGIN\r\nDONE %s\r\nPUT balls 0 %d\r\n%s" % (number, len(data), data)
        answer, _ = self._ask(transaction + b"REQ %d COMMIT\r\n", 1, before=3)
        assert answer == b"200 OK 2", answer
        self._number += 2
        self.moved += 1

    def _ask(self, command: bytes, offset: int, before: int = 0) -> tuple[bytes, bytes]:
        """The answer's last line, and data; asked as often as it takes."""
        command = command % (self._number + offset)
        end = time.monotonic() + 60
        while True:
            try:
                answer = self._once(command, before)
            except OSError:
                answer = None
            if answer is not None:
                return answer
            assert time.monotonic() < end, "nobody answers"
            self._close()
            time.sleep(0.02)

    def _once(self, command: bytes, before: int) -> tuple[bytes, bytes] | None:
        if self._stream is None:
            self._connect()
        stream = self._stream
        assert stream is not None
        stream.write(command)
        lines = [self._line() for _ in range(before)]
        if not all(line.startswith((b"200", b"202")) for line in lines):
            return None
        line = self._line()
        if line.startswith((b"50", b"404 Session")) or not line:
            assert not line.startswith(b"404"), "the session has ended"
            return None
        words = line.split()
        if before:
            for _ in range(int(words[2]) if words[0] == b"200" else 0):
                assert self._line().startswith(b"200 OK")
            return line, b""
        data = b""
        while words[0] == b"200" and len(data) < int(words[5]):
            piece = stream.read(int(words[5]) - len(data))
            if not piece:
                return None
            data += piece
        return line, data

    def _line(self) -> bytes:
        assert self._stream is not None
        line = b""
        while not line.endswith(b"\r\n"):
            byte = self._stream.read(1)
            if not byte:
                raise OSError("closed")
            line += byte
        return line[:-2]

    def _connect(self) -> None:
        for server in self._servers:
            host, port = server.rsplit(":", 1)
            try:
                with socket.create_connection((host, int(port)), 1.0) as connection:
                    connection.settimeout(ANSWER_S)
                    self._stream = connection.makefile("rwb", buffering=0)  # type: ignore[assignment]
                assert self._stream is not None
                self._stream.write(b"SESSION %s\r\n" % self._session if self._session else b"SESSION\r\n")
                words = self._line().split()
            except OSError:
                self._close()
                continue
            if words[:3] == [b"200", b"OK", b"SESSION"]:
                self._session = words[3]
                return
            self._close()
        raise OSError("nobody serves")

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def test_jobs_that_are_moved_by_transactions_are_neither_lost_nor_doubled() -> None:
    with LocalCluster(3) as cluster:
        leader = cluster.server(cluster.wait_for_leader())
        host, port = leader.rsplit(":", 1)
        bodies = [b"ball-%d" % number for number in range(JOBS)]
        with socket.create_connection((host, int(port)), ANSWER_S) as connection:
            lines = b"".join(b"balls 0 %d\r\n%s" % (len(body), body) for body in bodies)
            connection.sendall(b"PUTS %d\r\n%s" % (JOBS, lines))
            assert connection.makefile("rb").readline() == b"200 OK %d\r\n" % JOBS
        movers = [Mover(cluster.servers) for _ in range(4)]
        for mover in movers:
            mover.start()
        for _ in range(KILLS):
            target, end = sum(mover.moved for mover in movers) + 100, time.monotonic() + 60
            while sum(mover.moved for mover in movers) < target:
                assert all(mover.error is None for mover in movers), [mover.error for mover in movers]
                assert time.monotonic() < end, "no progress"
                time.sleep(0.01)
            victim = cluster.wait_for_leader()
            cluster.kill(victim)
            cluster.wait_for_leader()
            cluster.restart(victim, wait=False)
        for mover in movers:
            mover.finish()
        cluster.wait_until_level()
        assert sorted(drain(cluster, "balls")) == sorted(bodies)
        for name in cluster.names:
            assert "Traceback" not in cluster.logs(name), cluster.logs(name)
