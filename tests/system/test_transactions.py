"""Transactions under load and leader kills: what is moved by them is neither lost nor doubled."""

from __future__ import annotations

import contextlib
import threading
import time

from devcluster.cluster import LocalCluster
from tests.system.load import drain
from tests.wire import Broken, Wire

JOBS = 40
KILLS = 3
ANSWER_S = 5.0


class Mover(threading.Thread):
    """Takes a job and puts it again, by one transaction; repeats by number what it does not know the outcome of."""

    def __init__(self, servers: list[str]) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self._stopping = threading.Event()
        self._session = ""
        self._number = 1
        self._wire: Wire | None = None
        self.moved = 0
        self.error: Exception | None = None

    def finish(self) -> None:
        """Stop between two moves, and raise the error of the thread if it had one."""
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
        finally:
            self._close()

    def _move(self) -> None:
        line, data = self._ask(b"REQ %d GET balls EXPIRE 600\r\n", 0)
        if line == "404 Queue Empty":
            self._number += 1
            return
        number = line.split()[3].encode()
        transaction = b"BEGIN\r\nDONE %s\r\nPUT balls 0 %d\r\n%s" % (number, len(data), data)
        answer, _ = self._ask(transaction + b"REQ %d COMMIT\r\n", 1, before=3)
        assert answer == "200 OK 2", answer
        self._number += 2
        self.moved += 1

    def _ask(self, command: bytes, offset: int, before: int = 0) -> tuple[str, bytes]:
        """Return the answer's last line, and data; the question is repeated as often as needed."""
        command = command % (self._number + offset)
        end = time.monotonic() + 60
        while True:
            try:
                answer = self._once(command, before)
            except Broken:
                answer = None
            if answer is not None:
                return answer
            assert time.monotonic() < end, "nobody answers"
            self._close()
            time.sleep(0.02)

    def _once(self, command: bytes, before: int) -> tuple[str, bytes] | None:
        wire = self._wire = self._wire or self._connected()
        wire.send_bytes(command)
        lines = [wire.line() for _ in range(before)]
        if not all(line.startswith(("200", "202")) for line in lines):
            return None
        line = wire.line()
        if line.startswith(("50", "404 Session")):
            assert not line.startswith("404"), "the session has ended"
            return None
        words = line.split()
        if before:
            for _ in range(int(words[2]) if words[0] == "200" else 0):
                assert wire.line().startswith("200 OK")
            return line, b""
        return line, wire.exactly(int(words[5])) if words[0] == "200" else b""

    def _connected(self) -> Wire:
        for server in self._servers:
            with contextlib.suppress(Broken), contextlib.ExitStack() as closing:
                wire = closing.enter_context(Wire(server, ANSWER_S, connect_timeout=1.0))
                words = wire.say(f"SESSION {self._session}".rstrip()).split()
                if words[:3] == ["200", "OK", "SESSION"]:
                    self._session = words[3]
                    closing.pop_all()
                    return wire
        raise Broken("nobody serves")

    def _close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None


def test_jobs_that_are_moved_by_transactions_are_neither_lost_nor_doubled() -> None:
    with LocalCluster(3) as cluster:
        leader = cluster.server(cluster.wait_for_leader())
        bodies = [b"ball-%d" % number for number in range(JOBS)]
        with Wire(leader, ANSWER_S) as wire:
            lines = b"".join(b"balls 0 %d\r\n%s" % (len(body), body) for body in bodies)
            assert wire.say(f"PUTS {JOBS}", lines) == f"200 OK {JOBS}"
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
