"""A whole workload: who takes part, from the first command to the last job drained."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType

from msgspec import Struct
from sockpq import Client

from tests.chaos.workload import actors, extended_actors
from tests.chaos.workload.actors import Actor, Caller, Consumer, Meter, Producer, Servant, Worker
from tests.chaos.workload.bodies import COPIED
from tests.chaos.workload.extended_actors import ExtendedClient, Handler, Heart, Planner, Steerer
from tests.chaos.workload.history import Get, GetMany, History, Outcome
from tests.chaos.workload.plain_extended import PlainExtendedClient
from tests.chaos.workload.session import CALL_S
from tests.chaos.workload.session_extended import SessionExtendedClient

CALLS, OUTPUTS, CONSUMED = "calls", "outputs", "consumed"
STOP_S = 40.0
DRAIN_S = 150.0         # a safety limit: deep queues on a busy machine take a minute
HEART_S = 0.2           # between two heartbeats of a pool, and between two words of its operator
EXTENDED_SLOWER = 8     # a planner rests so much longer than a producer


class NotDrained(Exception):
    """Not all remaining jobs could be taken: whether something was lost is unknown."""


class Load(Struct, frozen=True):
    """The participants: as many plain clients as clients with sessions, or twice as many with sessions."""

    queues: int = 3
    producers: int = 2      # of each kind
    workers: int = 2        # of each kind, that ask with GET
    waiters: int = 2        # of each kind, that wait with GETB and GETBE
    callers: int = 1        # of each kind
    planners: int = 1       # of each kind, that use extended commands
    handlers: int = 2       # of each kind, likewise
    turns: int = 8          # clients that wait for the turns of one pulse, half of them with sessions
    pools: int = 2          # of workers, with two hearts in two sessions each, and an operator of all of them
    consumers: tuple[int, ...] = (1, 10)    # one with sessions for each: it takes so many jobs at once by consume()
    large: float = 0        # the share of the producers' jobs that are replicated in fragments
    plain: bool = True      # without it all have sessions
    pause_s: float = 0.004  # of a producer between two jobs, on the average


class Running:
    """A load at work, until the block ends."""

    def __init__(self, load: Load, servers: Mapping[str, str], history: History, seed: int) -> None:
        """`servers`: the address of each node as clients dial it."""
        self._servers = servers
        self._history = history
        self._client = Client(list(servers.values()), timeout=CALL_S, server_timeout=2.0)
        self._second = Client(list(servers.values()), timeout=CALL_S, server_timeout=2.0)
        self._queues = [f"q{number}" for number in range(load.queues)]
        self._meter, self._planned = Meter(), Meter()
        self._actors: list[Actor] = []
        first = ("plain", self._plain) if load.plain else ("second", self._session)
        for kind, make in (first, ("session", self._session)):
            self._add(load, kind, make, seed)
        for prefetch in load.consumers:
            client = SessionExtendedClient(f"session.consumer{prefetch}", self._client, self._history)
            self._actors.append(Actor(client, Consumer(client, CONSUMED, prefetch, self._meter)))

        pools = tuple(f"pool{number}" for number in range(load.pools))
        for pool in pools:
            for number, connected in enumerate((self._client, self._second)):
                heart = SessionExtendedClient(f"session.{pool}.heart{number}", connected, self._history)
                self._actors.append(Actor(heart, Heart(heart, pool, HEART_S)))
        if pools:
            operator = PlainExtendedClient("plain.operator", servers, history)
            self._actors.append(Actor(operator, Steerer(operator, pools, HEART_S)))

    def _plain(self, name: str) -> ExtendedClient:
        return PlainExtendedClient(name, self._servers, self._history)

    def _session(self, name: str) -> ExtendedClient:
        return SessionExtendedClient(name, self._client, self._history)

    def _add(self, load: Load, kind: str, make: Callable[[str], ExtendedClient], seed: int) -> None:
        def begin(role: str, count: int, act: Callable[[ExtendedClient, str], Callable[[], None]]) -> None:
            for number in range(count):
                client = make(f"{kind}.{role}{number}")
                self._actors.append(Actor(client, act(client, f"{seed} {client.name}")))

        queues, meter, slow_s = self._queues, self._meter, load.pause_s * EXTENDED_SLOWER
        all_queues = [*queues, CONSUMED] if load.consumers else queues
        begin("producer", load.producers, lambda client, chance: Producer(
            client, all_queues, load.pause_s, meter, chance, load.large))
        begin("worker", load.workers, lambda client, chance: Worker(client, queues, False, meter, chance))
        begin("waiter", load.waiters, lambda client, chance: Worker(client, queues, True, meter, chance))
        begin("servant", load.callers, lambda client, chance: Servant(client, CALLS, OUTPUTS))
        begin("caller", load.callers, lambda client, chance: Caller(client, CALLS, OUTPUTS, 0.02))
        planned, waits = self._planned, kind == "plain"
        begin("planner", load.planners, lambda client, chance: Planner(client, slow_s, planned, chance))
        begin("handler", load.handlers, lambda client, chance: Handler(client, waits, planned, chance))

    def __enter__(self) -> Running:
        for queue, tries in extended_actors.TRIES.items():
            self._client.queue_config(queue, tries=tries)
        for queue, (rate, per_s) in extended_actors.RATES.items():
            self._client.queue_config(queue, rate=rate, per=per_s)
        for queue, idle_s in extended_actors.IDLE_S.items():
            self._client.queue_config(queue, idle=idle_s)
        for queue in COPIED:
            self._client.topic_bind(extended_actors.TOPIC, queue)
        for actor in self._actors:
            actor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        self._client.close()
        self._second.close()

    def check(self) -> None:
        """Raise the error that ended an actor: a defect of the servers, of the client library, or of the actor."""
        for actor in self._actors:
            if actor.error is not None:
                raise actor.error

    def stop(self) -> None:
        """Start nothing new, and wait for commands in flight."""
        for actor in self._actors:
            actor.stop()
        until = time.monotonic() + STOP_S
        for actor in self._actors:
            if actor.ident is not None:
                actor.join(max(until - time.monotonic(), 0.1))
        late = [actor.name for actor in self._actors if actor.is_alive()]
        assert not late, f"{', '.join(late)} did not stop within {STOP_S} s"

    def drain(self, also: Callable[[], object] = lambda: None) -> None:
        """Take and finish all remaining jobs, until nothing waits and nothing runs; raises NotDrained. `also` is called
        repeatedly, to take jobs that others have left."""
        client = PlainExtendedClient("drain", self._servers, self._history)
        until = time.monotonic() + DRAIN_S
        while time.monotonic() < until:
            also()
            if self._take(client):
                totals = self._client.total()
                if totals.jobs == totals.running == 0 and not self._kick():
                    client.close()
                    return
                time.sleep(0.1)
        raise NotDrained(f"not empty {DRAIN_S} s after the end: {self._client.total()}")

    def _kick(self) -> int:
        """Bring back jobs that a client has buried and could not kick; returns how many."""
        return self._client.kick(extended_actors.NUMBERED, 1000, here=True)

    def _take(self, client: PlainExtendedClient) -> bool:
        """Take and finish a job, or a portion; returns True when there is none."""
        record = client.get(Get((*self._queues, CALLS, OUTPUTS, CONSUMED), actors.LEASE_MS))
        if record is None or record.outcome is not Outcome.OK:
            return False
        if record.handed is not None:
            client.done(record.handed.id)
        # Also while others remain: a queue with IDLE is deleted, with its jobs, when it was not used for long.
        portion = client.get_many(GetMany(extended_actors.QUEUES, actors.LEASE_MS))
        if portion is None or portion.outcome is not Outcome.OK:
            return False
        for handed in portion.given:
            client.done(handed.id)
        return record.handed is None and not portion.given
