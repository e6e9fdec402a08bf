"""Clients that ask nodes whether queues are empty while others put at all nodes: answers from the lease.

With `FASTEMPTY ON` a leader answers `404 Queue Empty` from its lease, without asking the others. So each node has an
asker of its own, which stays with it whichever node leads, and a putter. An acknowledged putter notifies the askers
of all other nodes, and takes its job back a moment later. The answers are judged by checker/empties.py.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from typing import Self

from sockpq import Client

from tests.chaos.checker.empties import Asked, Kept, Saw, false_empties
from tests.wire import Broken, Refused, Wire

PREFIX = "empty"
NOBODY = f"{PREFIX}.ever"       # without any put: shows that a leader answers at once
ANSWER_S = 2.0
DIAL_S = 0.3
ASK_S, PUT_S, STANDS_S = 0.004, 0.01, 0.03      # between two questions and two PUTs, and how long a job stays
LEASE_S = 2
NAMES_MAX = 50


class Empties:
    """Connects to the nodes directly, and records their answers."""

    def __init__(self, servers: Mapping[str, str], *, on: bool) -> None:
        """`servers`: the address of each node; without `on` nothing happens."""
        self.kept: list[Kept] = []
        self.asked: list[Asked] = []
        self._servers = dict(servers) if on else {}
        self._names = count()
        self._newest: Kept | None = None        # that stands
        self._left: set[str] = set()            # queues that may have a job
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._loop, args=(name, what), name=f"{name}.{what.__name__}", daemon=True)
            for name in self._servers for what in (self._ask, self._put)]
        self._errors: list[BaseException] = []
        self._running = ExitStack()

    def __enter__(self) -> Self:
        if self._servers:
            with Client(list(self._servers.values())) as client:
                client.config(fast_empty=True)
        for thread in self._threads:
            thread.start()
        self._running.callback(self.stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def stop(self) -> None:
        """Ask and put no more; raises what a thread died of."""
        self._stopping.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        if self._errors:
            raise self._errors.pop()

    def sweep(self) -> bool:
        """Take and finish the remaining jobs; True when certainly none remain. For the end, when the cluster serves."""
        if not self._left:
            return True
        with Client(list(self._servers.values())) as client:
            names = sorted(self._left)
            for at in range(0, len(names), NAMES_MAX):
                while (job := client.get(names[at:at + NAMES_MAX], expire=LEASE_S)) is not None:
                    client.done(job.id)
        return True

    def judge(self) -> Iterator[str]:
        """Return violations, each as a sentence."""
        return false_empties(self.kept, self.asked)

    def summary(self) -> str:
        """Return what was seen, in some words."""
        told = sum(one.saw is Saw.EMPTY for one in self.asked)
        return f"{told} queues were called empty, {len(self.kept)} jobs stood in others"

    # the threads

    def _loop(self, name: str, what: Callable[[str, Wire], None]) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    with Wire(self._servers[name], ANSWER_S, connect_timeout=DIAL_S) as wire:
                        while not self._stopping.is_set():
                            what(name, wire)
                except Broken:
                    self._stopping.wait(5 * ASK_S)
        except BaseException as error:
            self._errors.append(error)

    def _ask(self, name: str, wire: Wire) -> None:
        newest = self._newest
        queue = NOBODY if newest is None or newest.node == name else newest.queue
        try:
            number = self._get(name, wire, queue)
        except Refused:
            self._stopping.wait(ASK_S)
            return
        if number is not None:
            wire.say(f"DONE {number}")
        self._stopping.wait(ASK_S)

    def _put(self, name: str, wire: Wire) -> None:
        queue = f"{PREFIX}.{next(self._names)}"
        self._left.add(queue)
        start = time.monotonic_ns()
        if wire.say(f"PUT {queue} 0 0") != "200 OK":
            self._left.discard(queue)
            self._stopping.wait(PUT_S)
            return
        kept = Kept(queue, name, start, time.monotonic_ns())
        self.kept.append(kept)
        self._newest = kept
        self._stopping.wait(STANDS_S)
        if self._newest is kept:
            self._newest = None
        try:
            number = self._get(name, wire, queue)
        except Refused:
            return
        if number is None or wire.say(f"DONE {number}").startswith("200 OK"):
            self._left.discard(queue)
        self._stopping.wait(PUT_S)

    def _get(self, name: str, wire: Wire, queue: str) -> int | None:
        """Return the id of the job in the queue; None if the answer is that it is empty."""
        start = time.monotonic_ns()
        saw = Saw.UNKNOWN
        try:
            words = wire.say(f"GET {queue} EXPIRE {LEASE_S}").split()
            saw = Saw.JOB if words[0] == "200" else Saw.EMPTY if words[0] == "404" else Saw.NOTHING
        except Broken as broken:
            if not broken.sent:
                saw = Saw.NOTHING
            raise
        finally:
            if saw is not Saw.NOTHING:
                self.asked.append(Asked(queue, name, start, time.monotonic_ns(), saw))
        if saw is Saw.NOTHING:
            raise Refused
        return int(words[3]) if saw is Saw.JOB else None
