"""Workers of queues that choose by groups, each with one connection: what they were given, and for how long it ran."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from msgspec import Struct

from tests.wire import Broken, Wire

TIMEOUT_S = 1.0
AGAIN_S = 0.02              # before another server is tried, or the same one after an empty queue
WORKS_S = 0.1               # at most
LEASE_S = 3.0               # so that a job whose hand-out was lost with a killed leader comes back
SLOWEST = 0.9               # the cluster's time may run faster than this clock


class Run(Struct, frozen=True):
    """A hand-out that a worker got. `started_ms` by the cluster's time, the others by time.monotonic()."""

    queue: str
    group: str
    index: int              # of the job among those of its group in this queue
    started_ms: int
    asked: float            # before the GET was sent,
    got: float              # and after it was answered
    runs_until: float       # it ran until then for sure: its DONE was sent later, and its lease ended later


class Tenants:
    """This many workers of these queues, while the `with` block runs."""

    def __init__(self, servers: Sequence[str], queues: Sequence[str], workers: int) -> None:
        self._servers = list(servers)
        self._queues = "|".join(queues)
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(workers)]
        self.runs: list[Run] = []
        self.strange: list[str] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _work(self, number: int) -> None:
        draw = random.Random(number)
        while not self._stopping.is_set():
            with suppress(Broken), Wire(draw.choice(self._servers), TIMEOUT_S) as wire:
                while not self._stopping.is_set() and self._one(wire, draw):
                    pass
            self._stopping.wait(AGAIN_S)

    def _one(self, wire: Wire, draw: random.Random) -> bool:
        """Take a job and finish it; returns False if this server does not serve."""
        asked = time.monotonic()
        words = wire.say(f"GET {self._queues} EXPIRE {LEASE_S:g} META LIFE").split()
        if words[0] == "404":
            self._stopping.wait(AGAIN_S)
            return True
        if words[:2] != ["200", "OK"]:
            if words[0] != "500":
                self.strange.append(" ".join(words))
            return False
        got = time.monotonic()
        queue, job = words[2], words[3]
        told = dict(zip(words[6::2], words[7::2], strict=False))
        index = int(wire.exactly(int(words[5])))
        self._stopping.wait(draw.uniform(0, WORKS_S))
        ends = min(time.monotonic(), asked + SLOWEST * LEASE_S)
        self.runs.append(Run(queue, told["GROUP"], index, int(told["STARTED"]), asked, got, ends))
        done = wire.say(f"DONE {job}")
        if not done.startswith(("200 OK", "404", "500")):
            self.strange.append(done)
        return not done.startswith("500")
