"""Producers, workers and callers, each a loop that runs until it is stopped."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Protocol

from tests.chaos.workload.bodies import LARGE
from tests.chaos.workload.history import Get, Outcome, Policy, Put, Record

LEASE_MS = 1500
OUTPUT_LEASE_MS = 2500
CONSUMER_LEASE_MS = 20_000      # a job whose hand-out got lost comes back late, but before the end
PRIORITIES = (-1, 0, 0, 0, 5, 9)
# Half of them ask as the original does; by "fair" priority and order would not hold in a queue.
POLICIES: tuple[Policy | None, ...] = (
    None, None, None, None, None, None, None, None,
    "order", "sorted", "priority", "place", "oldest", "rr", "weight", "random",
)
BACKLOG_MAX = 1500      # producers rest while so many more jobs were put than taken


class Stoppable(Protocol):
    """A client of any kind."""

    name: str

    def stop(self) -> None: ...
    def close(self) -> None: ...


class Client(Stoppable, Protocol):
    """The calls of PlainClient and SessionClient that actors make."""

    def put(self, put: Put) -> Record | None: ...
    def get(self, get: Get) -> Record | None: ...
    def done(self, number: int) -> Record | None: ...
    def later(self, number: int) -> Record | None: ...
    def call(self, put: Put, output: Get) -> list[Record]: ...


class Meter:
    """A rough count of jobs that were put and not yet taken: it only paces the producers."""

    def __init__(self) -> None:
        self.put = 0
        self.taken = 0

    @property
    def backlog(self) -> int:
        return self.put - self.taken


class Actor(threading.Thread):
    """Repeats one action with a client of its own."""

    def __init__(self, client: Stoppable, act: Callable[[], None]) -> None:
        super().__init__(name=client.name, daemon=True)
        self._client = client
        self._act = act
        self._stopping = threading.Event()
        self.error: Exception | None = None

    def stop(self) -> None:
        """Finish the call in progress, and start no more."""
        self._stopping.set()
        self._client.stop()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._act()
        except Exception as error:
            self.error = error
        finally:
            self._client.close()


class Producer:
    """Puts jobs of all kinds into its queues."""

    def __init__(
        self, client: Client, queues: list[str], pause_s: float, meter: Meter, seed: str, large: float = 0,
    ) -> None:
        """`large`: the share of jobs that are replicated in fragments."""
        self._client, self._queues, self._pause_s, self._meter = client, queues, pause_s, meter
        self._random = random.Random(seed)
        self._large = large
        self._numbers = count(1)
        self._item: str | None = None

    def __call__(self) -> None:
        chance = self._random
        if self._meter.backlog > BACKLOG_MAX:
            time.sleep(self._pause_s)
            return
        if chance.random() < 0.1:       # a few jobs of one item, some of them named by the server
            self._item = chance.choice(["", None, f"{self._client.name}.{next(self._numbers)}"])
        name = f"{self._client.name}-{next(self._numbers)}{LARGE if chance.random() < self._large else ''}"
        record = self._client.put(Put(name, chance.choice(self._queues), chance.choice(PRIORITIES), self._item))
        if record is not None and record.outcome is Outcome.OK:
            self._meter.put += 1
        time.sleep(chance.expovariate(1 / self._pause_s))


class Worker:
    """Takes jobs and treats them as workers do: finishes, puts back, forgets, or finishes too late."""

    def __init__(self, client: Client, queues: list[str], waits: bool, meter: Meter, seed: str) -> None:
        """`waits`: it uses GETB and GETBE and no GET."""
        self._client, self._queues, self._waits, self._meter = client, queues, waits, meter
        self._random = random.Random(seed)

    def __call__(self) -> None:
        chance = self._random
        queues = tuple(chance.sample(self._queues, chance.randint(1, len(self._queues))))
        last = self._waits and chance.random() < 0.2
        get = Get(queues, LEASE_MS, blocks=self._waits, until_finished=last, policy=chance.choice(POLICIES))
        record = self._client.get(get)
        if record is None or record.handed is None:
            if not self._waits or record is None:
                time.sleep(0.05)
            return
        number, fate = record.handed.id, chance.random()
        if fate < 0.05:
            self._client.later(number)
            return
        if fate < 0.06:
            return                              # it dies, for all that the queue knows
        if fate < 0.065:
            time.sleep(LEASE_MS / 1000 * 1.2)
        elif fate < 0.3:
            time.sleep(chance.random() * 0.05)
        ended = self._client.done(number)
        if ended is not None and ended.outcome is Outcome.OK and not ended.missing:
            self._meter.taken += 1


class Consuming(Protocol):
    """The call of SessionClient that consumers make."""

    def consume(self, get: Get, prefetch: int, took: Callable[[], None]) -> None: ...


class Consumer:
    """Takes jobs by consume(): the end of one and the request for the next in one packet, or several at once."""

    def __init__(self, client: Consuming, queue: str, prefetch: int, meter: Meter) -> None:
        self._client, self._prefetch, self._meter = client, prefetch, meter
        self._get = Get((queue,), CONSUMER_LEASE_MS)

    def __call__(self) -> None:
        self._client.consume(self._get, self._prefetch, self._took)

    def _took(self) -> None:
        self._meter.taken += 1


class Servant:
    """Answers calls: takes a job, puts its output with the same item, then finishes it."""

    def __init__(self, client: Client, calls: str, outputs: str) -> None:
        self._client, self._calls, self._outputs = client, calls, outputs
        self._numbers = count(1)

    def __call__(self) -> None:
        record = self._client.get(Get((self._calls,), LEASE_MS, blocks=True))
        if record is None or record.handed is None:
            time.sleep(0.01)
            return
        name = f"{self._client.name}-{next(self._numbers)}"
        output = self._client.put(Put(name, self._outputs, 0, record.handed.item))
        if output is not None and output.outcome is Outcome.OK:
            self._client.done(record.handed.id)


class Caller:
    """Makes calls: puts a job and waits for its output."""

    def __init__(self, client: Client, calls: str, outputs: str, pause_s: float) -> None:
        self._client, self._calls, self._outputs, self._pause_s = client, calls, outputs, pause_s
        self._numbers = count(1)

    def __call__(self) -> None:
        put = Put(f"{self._client.name}-{next(self._numbers)}", self._calls, 0, "")
        records = self._client.call(put, Get((self._outputs,), OUTPUT_LEASE_MS, blocks=True))
        if len(records) == 2 and records[1].handed is not None:
            self._client.done(records[1].handed.id)
        time.sleep(self._pause_s)
