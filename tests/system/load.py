"""Producers that put numbered jobs and remember what was acknowledged, whatever happens to the servers."""

from __future__ import annotations

import threading
import time
from itertools import chain

from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.oracles.inventory import differences
from tests.wire import Broken, Wire

ANSWER_S = 5.0
CALL_S = 120.0      # a safety limit of one call, over elections of a busy machine
LEASE_S = 3600.0    # of jobs that are taken at the end: longer than any test
PAUSE_S = 0.01      # of a producer between two jobs: as fast as it can, it takes the processor from what is tested
AT_ONCE = 100


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
        self.join(60)
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
        wire: Wire | None = None
        while not self._stopping.is_set():
            if wire is None:
                turn += 1
                wire = self._connect(self._servers[turn % len(self._servers)])
                continue
            number += 1
            body = f"{self.name}-{number}".encode()
            answer = self._put(wire, body)
            if answer == "200 OK":
                self.acknowledged.append(body)
                self._stopping.wait(PAUSE_S)
                continue
            if answer in ("500 Offline Mode", "503 Busy"):
                self.refused.append(body)
            else:
                assert answer is None, f"an answer nobody expects: {answer!r}"
                self.unknown.append(body)
            wire.close()
            wire = None
        if wire is not None:
            wire.close()

    def _connect(self, server: str) -> Wire | None:
        try:
            return Wire(server, ANSWER_S, connect_timeout=1.0)
        except Broken:
            time.sleep(0.02)
            return None

    def _put(self, wire: Wire, body: bytes) -> str | None:
        """Return the answer to a PUT; None when the connection ended without one."""
        try:
            return wire.say(f"PUT load 0 {len(body)}", body)
        except Broken:
            return None


def drain(cluster: LocalCluster, queue: str = "load") -> list[bytes]:
    """Take all jobs of a queue, each once, whichever node leads."""
    bodies = []
    with Client(cluster.servers, timeout=CALL_S) as client:
        while jobs := client.get_many(AT_ONCE, queue, expire=LEASE_S):
            bodies += [job.data for job in jobs]
    return bodies


def check(producers: list[Producer], bodies: list[bytes]) -> None:
    """Check that no acknowledged job is missing, no refused one exists, and none is doubled or invented."""
    wrong = differences(
        bodies, chain.from_iterable(producer.acknowledged for producer in producers),
        maybe_put=chain.from_iterable(producer.unknown for producer in producers),
        refused=chain.from_iterable(producer.refused for producer in producers),
    )
    assert not wrong
