"""The operator of two simulated clusters: `pqctl map` itself, which is killed now and then, or overtaken by another.

pqctl waits for its answers, so it is what lets time pass: each of its calls runs the simulation until it is answered.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest
from sockpq import ClusterId, ClusterMap, MapChanged, QueueTotals, Unavailable
from sockpq._protocol.cluster_map import parse_map

from sockpqd.core import Accepted, Operation, SetMap
from sockpqd.core import MapChanged as Changed
from sockpqd.pqctl.actions.maps import change, clusters, moves
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import Failure
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.clusters.world import Cluster, TwoClusters
    from tests.sim.world.node import SimNode

TIMEOUT_S = 3.0                 # of a call; then pqctl gives up
LOOK_S = 0.02
KILLED = 0.06                   # so often pqctl dies before or after a call
OVERTAKEN = 0.02                # the chance that another operator changes something in between
REST_S = (0.0, 0.5)             # between two commands
DONE_WORD, KILLED_WORD, FAILED_WORD = "done", "killed", "failed"        # how a pqctl ends


class Killed(BaseException):
    """A pqctl that ends by kill -9."""


class Operator:
    """Changes the map, as `pqctl map` does, and may be killed at any step."""

    def __init__(self, pair: TwoClusters) -> None:
        self._pair = pair
        self._rng = random.Random(pair.rng.random())
        self._calm = False              # nothing kills it, and it is alone
        self._depth = 0                 # 1 while another operator overtakes it
        self._running = False

    @property
    def changing(self) -> bool:
        """True if a pqctl runs, and no other one prevents it from continuing."""
        return self._running and not self._depth

    def join(self) -> None:
        """Make the map of both clusters, before anything goes wrong."""
        self._calm = True
        for cluster in self._pair.clusters.values():
            self._serving(cluster)
        self._do(lambda: change.init(self._call("a"), "a"))
        self._do(lambda: change.add(self._call("a"), "b", "b:1"))
        self._calm = False

    def change_something(self) -> None:
        """Run some command, and repeat it if it was killed, or leave it so."""
        command = self._command()
        while self._do(command) == KILLED_WORD and self._rng.random() < 0.5:
            self._pair.pass_time(self._rng.uniform(*REST_S))
        self._pair.pass_time(self._rng.uniform(*REST_S))

    def move(self, prefix: str, to: str) -> None:
        """Run `pqctl map move` until it is done, whatever kills it or makes it fail."""
        while self._do(lambda: moves.move(self._call(self._rng.choice("ab")), prefix, to, None)) != DONE_WORD:
            self._pair.pass_time(self._rng.uniform(*REST_S))

    def complete(self) -> None:
        """Complete what was left half done."""
        self._calm = True
        for _ in range(2):              # the first command brings the newest map to all
            known = self._read(self._pair.clusters["a"])
            unowned = dict.fromkeys((one for one, owner in known.rules.items() if owner is None), "a")
            for prefix, to in {**unowned, **{one: moving.to for one, moving in known.moving.items()}}.items():
                self._do(partial(moves.move, self._call("a"), prefix, to, None), must=True)
        self._do(lambda: change.add(self._call("a"), "b", "b:1"), must=True)

    def _command(self) -> Callable[[], int]:
        from tests.sim.clusters.world import PREFIXES

        prefix, to = self._rng.choice(PREFIXES), self._rng.choice("ab")
        given = self._rng.choice("ab")
        if self._rng.random() < 0.3:
            return lambda: moves.assign(self._call(given), prefix, to)
        return lambda: moves.move(self._call(given), prefix, to, None)

    def _do(self, command: Callable[[], int], *, must: bool = False) -> str:
        """Run a pqctl; returns how it ended, one of the words at the top."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clusters, "find", lambda call, several: call)
            patch.setattr(clusters.Clusters, "members", lambda _: ("a:1",))
            patch.setattr(moves, "sleep", self._pair.pass_time)
            for module in (moves, clusters):
                patch.setattr(module, "say", lambda _: None)
            try:
                self._running = True
                command()
                end = DONE_WORD
            except Killed:
                end = KILLED_WORD
            except (Failure, Unavailable) as failure:
                if must:
                    raise Violation(f"pqctl fails though all is well: {failure}") from failure
                end = FAILED_WORD
            finally:
                self._running = self._depth > 0         # the one that was overtaken continues
        self._pair.trace.seen[f"pqctl {end}"] += 1
        return end

    def _call(self, given: str) -> Call:
        return cast(Call, SimCall(self, [f"{given}:1"]))

    # Calls of pqctl

    @contextmanager
    def step(self) -> Iterator[None]:
        """Make one call: pqctl may be killed before it and after it."""
        self._may_die()
        yield
        self._may_die()

    def _may_die(self) -> None:
        if self._calm:
            return
        if self._rng.random() < KILLED / 2:
            raise Killed
        if not self._depth and self._rng.random() < OVERTAKEN:
            self._depth = 1
            with suppress(Killed):
                self._do(self._command())
            self._depth = 0

    def execute(self, name: str, operation: Operation) -> Any:
        """Have an operation executed, as the client library repeats it; returns the reply. Raises Unavailable."""
        pair, cluster = self._pair, self._pair.clusters[name]
        end = pair.events.now + TIMEOUT_S
        while pair.events.now < end:
            node = self._serving(cluster)
            outcome = cluster.command(operation)
            node.propose([outcome])
            while outcome.state == "open" and pair.events.now < end:
                pair.pass_time(LOOK_S)
            if outcome.state == "applied":
                return outcome.reply
        raise Unavailable("no server executed the command")

    def read(self, name: str) -> ClusterMap:
        """Return the leader's map. Raises Unavailable."""
        return self._read(self._pair.clusters[name])

    def _read(self, cluster: Cluster) -> ClusterMap:
        held = self._serving(cluster).machine.cluster_map
        return ClusterMap() if held is None else parse_map(held.version, held.text.decode())

    def queues(self, name: str, prefix: str) -> list[QueueTotals]:
        """Count the jobs of queues, at the leader. Raises Unavailable."""
        machine = self._serving(self._pair.clusters[name]).machine
        found = []
        for queue in machine.queue_names(prefix):
            counts = machine.counts(queue)
            if counts is not None:
                found.append(QueueTotals(queue, counts.ready, counts.delayed, counts.running, 0, counts.buried))
        return found

    def id(self, name: str) -> str:
        """Return the id of a cluster."""
        return self._pair.clusters[name].id

    def _serving(self, cluster: Cluster) -> SimNode:
        """Return the leader, waiting for one. Raises Unavailable."""
        end = self._pair.events.now + TIMEOUT_S
        while (node := cluster.serving()) is None:
            if self._pair.events.now > end:
                raise Unavailable("no server leads")
            self._pair.pass_time(LOOK_S)
        return node


class SimCall:
    """A Call of pqctl, and the access to simulated clusters; servers are called like the clusters."""

    timeout = TIMEOUT_S

    def __init__(self, operator: Operator, addresses: list[str]) -> None:
        self.addresses = addresses
        self._operator = operator

    @property
    def access(self) -> SimCall:
        """Implement Call."""
        return self

    def client(self, servers: list[str], timeout: float) -> SimClient:
        """Implement ClusterAccess."""
        return SimClient(self._operator, servers[0].partition(":")[0])

    def answer(self, sentence: str, told: object) -> None:
        """Implement Call."""


class SimClient:
    """The calls of a client that `pqctl map` uses."""

    def __init__(self, operator: Operator, name: str) -> None:
        self._operator, self._name = operator, name

    def __enter__(self) -> SimClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def cluster_id(self) -> ClusterId:
        """Implement Client."""
        with self._operator.step():
            return ClusterId(self._operator.id(self._name), None)

    def cluster_map(self) -> ClusterMap:
        """Implement Client."""
        with self._operator.step():
            return self._operator.read(self._name)

    def set_cluster_map(self, new: ClusterMap) -> None:
        """Implement Client."""
        with self._operator.step():
            reply = self._operator.execute(self._name, SetMap(new.version, new.text().encode()))
            if isinstance(reply, Changed):
                raise MapChanged("409 Map Changed", version=reply.version)
            if not isinstance(reply, Accepted):
                raise Violation(f"a map was answered {reply}: {new.text()}")

    def queues(self, prefix: str) -> list[QueueTotals]:
        """Implement Client."""
        with self._operator.step():
            return self._operator.queues(self._name, prefix)
