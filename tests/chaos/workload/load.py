"""A whole workload: who takes part, from the first command to the last job drained."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType

from msgspec import Struct
from sockpq import Client

from tests.chaos.history import Get, History, Outcome
from tests.chaos.workload import actors
from tests.chaos.workload.actors import Actor, Caller, Meter, Producer, Servant, Worker
from tests.chaos.workload.plain import PlainClient
from tests.chaos.workload.session import CALL_S, SessionClient

CALLS, OUTPUTS = "calls", "outputs"
STOP_S = 40.0
DRAIN_S = 60.0


class Load(Struct, frozen=True):
    """Who takes part: as many plain clients as clients with sessions."""

    queues: int = 3
    producers: int = 2      # of each kind
    workers: int = 2        # of each kind, that ask with GET
    waiters: int = 2        # of each kind, that wait with GETB and GETBE
    callers: int = 1        # of each kind
    pause_s: float = 0.004  # of a producer between two jobs, on the average


class Running:
    """A load at work, until the block ends."""

    def __init__(self, load: Load, servers: Mapping[str, str], history: History, seed: int) -> None:
        """`servers`: the address of each node as clients dial it."""
        self._servers = servers
        self._history = history
        self._client = Client(list(servers.values()), timeout=CALL_S, server_timeout=2.0)
        self._queues = [f"q{number}" for number in range(load.queues)]
        self._meter = Meter()
        self._actors: list[Actor] = []
        for kind, make in (("plain", self._plain), ("session", self._session)):
            self._add(load, kind, make, seed)

    def _plain(self, name: str) -> actors.Client:
        return PlainClient(name, self._servers, self._history)

    def _session(self, name: str) -> actors.Client:
        return SessionClient(name, self._client, self._history)

    def _add(self, load: Load, kind: str, make: Callable[[str], actors.Client], seed: int) -> None:
        def begin(role: str, count: int, act: Callable[[actors.Client, str], Callable[[], None]]) -> None:
            for number in range(count):
                client = make(f"{kind}.{role}{number}")
                self._actors.append(Actor(client, act(client, f"{seed} {client.name}"), client.name))

        queues, meter = self._queues, self._meter
        begin("producer", load.producers, lambda client, chance: Producer(client, queues, load.pause_s, meter, chance))
        begin("worker", load.workers, lambda client, chance: Worker(client, queues, False, meter, chance))
        begin("waiter", load.waiters, lambda client, chance: Worker(client, queues, True, meter, chance))
        begin("servant", load.callers, lambda client, chance: Servant(client, CALLS, OUTPUTS))
        begin("caller", load.callers, lambda client, chance: Caller(client, CALLS, OUTPUTS, 0.02))

    def __enter__(self) -> Running:
        for actor in self._actors:
            actor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        self._client.close()

    def check(self) -> None:
        """Raise what an actor died of: a defect of the servers, of the client library, or of the actor."""
        for actor in self._actors:
            if actor.error is not None:
                raise actor.error

    def stop(self) -> None:
        """Begin nothing new, and wait for what is under way."""
        for actor in self._actors:
            actor.stop()
        until = time.monotonic() + STOP_S
        for actor in self._actors:
            if actor.ident is not None:
                actor.join(max(until - time.monotonic(), 0.1))
        late = [actor.name for actor in self._actors if actor.is_alive()]
        assert not late, f"{', '.join(late)} did not stop within {STOP_S} s"

    def drain(self) -> None:
        """Take and finish all that is left, until nothing waits and nothing runs."""
        client = PlainClient("drain", self._servers, self._history)
        queues = (*self._queues, CALLS, OUTPUTS)
        until = time.monotonic() + DRAIN_S
        while time.monotonic() < until:
            record = client.get(Get(queues, actors.LEASE_MS))
            if record is not None and record.handed is not None:
                client.done(record.handed.id)
            elif record is not None and record.outcome is Outcome.OK:
                totals = self._client.total()
                if totals.jobs == totals.running == 0:
                    client.close()
                    return
                time.sleep(0.1)
        raise AssertionError(f"not empty {DRAIN_S} s after the end: {self._client.total()}")
