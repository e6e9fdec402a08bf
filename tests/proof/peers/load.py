"""The clients of an episode: producers that put jobs and workers that take and end them, each on one connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tests.proof.peers.ledger import CONFIRMED, REFUSED, UNKNOWN, Delivery, Ledger, Put
from tests.proof.peers.system import LEASE_S, Hand, Lost, Refused, Server, System

PRODUCERS, WORKERS = 3, 3
PAUSE_S = 0.01
AGAIN_S = 0.2                   # after a connection that failed
WAIT_S = 0.5
EMPTY_S = 2 * LEASE_S + 2       # without a job, after which nothing is left: the leases of lost clients have ended
LOOK_S = 0.5


class Load:
    """Producers and workers; a context."""

    def __init__(
        self, system: System, servers: Sequence[Server], ledger: Ledger, empty_s: float = EMPTY_S,
    ) -> None:
        """Each client begins with one of the servers and goes on to the next one when a connection fails.

        `empty_s`: for how long workers must find nothing until the queue counts as empty.
        """
        self._empty_s = empty_s
        self._system = system
        self._servers = servers
        self._ledger = ledger
        self._no_more = threading.Event()       # of jobs
        self._end = threading.Event()
        self._failed: BaseException | None = None   # a defect of this program
        self._empty_since = [0.0] * WORKERS     # since when each worker has seen nothing; 0: its last look found a job
        self._threads = [threading.Thread(target=self._run, args=(number, action), daemon=True)
                         for number, action in (*enumerate([self._produce] * PRODUCERS),
                                                *enumerate([self._work] * WORKERS))]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None,
    ) -> None:
        self._no_more.set()
        self._end.set()
        for thread in self._threads:
            thread.join()
        if self._failed is not None:
            raise self._failed

    def drain(self, limit_s: float) -> bool:
        """Put no more jobs, and wait until the workers find none for a while; returns whether they do in time."""
        self._no_more.set()
        until = time.monotonic() + limit_s
        while time.monotonic() < until and self._failed is None:
            if self._idle() and self._left() == 0:
                return True
            time.sleep(LOOK_S)
        return False

    def _idle(self) -> bool:
        """Return whether no worker has found a job for long enough."""
        return all(since and time.monotonic() - since > self._empty_s for since in self._empty_since)

    def _left(self) -> int | None:
        """Return how many jobs the system has; None when no server says it."""
        for server in self._servers:
            try:
                hand = self._system.hand(server)
            except Lost:
                continue
            try:
                return hand.left()
            except (Lost, Refused):
                continue
            finally:
                hand.close()
        return None

    def _run(self, number: int, action: Callable[[int, Hand], None]) -> None:
        try:
            self._stay_connected(number, action)
        except BaseException as error:
            self._failed = error

    def _stay_connected(self, number: int, action: Callable[[int, Hand], None]) -> None:
        turn = number
        while not self._end.is_set():
            try:
                hand = self._system.hand(self._servers[turn % len(self._servers)])
            except Lost:
                self._end.wait(AGAIN_S)
            else:
                try:
                    action(number, hand)
                except (Lost, Refused):
                    self._end.wait(AGAIN_S)
                finally:
                    hand.close()
            turn += 1

    def _produce(self, number: int, hand: Hand) -> None:
        while not self._no_more.is_set():
            began = time.monotonic_ns()
            job, outcome = f"{number}-{began}", UNKNOWN
            try:
                hand.put(job)
                outcome = CONFIRMED
            except Refused:
                outcome = REFUSED
                raise
            finally:
                self._ledger.note_put(Put(job, time.monotonic_ns(), outcome))
            time.sleep(PAUSE_S)
        self._end.wait()

    def _work(self, number: int, hand: Hand) -> None:
        self._empty_since[number] = 0.0
        while not self._end.is_set():
            asked = time.monotonic()
            taken = hand.take(WAIT_S)
            if taken is None:
                self._empty_since[number] = self._empty_since[number] or asked
                continue
            self._empty_since[number] = 0.0
            delivery = Delivery(taken.job, time.monotonic_ns())
            self._ledger.note_delivery(delivery)
            hand.end(taken)
            delivery.ended_ns = time.monotonic_ns()
            time.sleep(PAUSE_S)
