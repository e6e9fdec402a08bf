"""Two clusters in one simulated time: what goes wrong in each, programs that follow the map, and what must hold.

No name is accepted by two clusters at one moment. A program that puts gets an answer, and what it put is in exactly one
cluster. A program that takes by name finds every job.
"""

from __future__ import annotations

import logging
import random
from contextlib import ExitStack
from typing import Any

from sockpq import ClusterMap
from sockpq._protocol.cluster_map import parse_map

from sockpqd.core import Operation, Put, Request, Stored
from tests.core.model.cluster_map import accepts
from tests.sim.clients.outcomes import Outcome
from tests.sim.clusters.operator import Operator
from tests.sim.clusters.programs import Consumer, Producer
from tests.sim.faults.kinds import Faults
from tests.sim.oracles.checks import Checks, Past
from tests.sim.world.ending import Ending
from tests.sim.world.events import Events
from tests.sim.world.plan import MACHINES, NETWORK, SIDES, surroundings
from tests.sim.world.trace import Trace, Violation
from tests.sim.world.world import World

NAMES = ("mail", "film.a", "film.b", "film.new.c", "filmed", "film.a_dead")
PREFIXES = ("film.", "film.new.", "fil", "mail")
PRODUCERS, CONSUMERS = 3, 3
BEGIN_S = 1.0                   # until a leader serves in each, and the operator begins
TROUBLE_S = 10.0
FAULT_S = 0.6                   # mean time between two faults of a cluster
LIVENESS_S = 30.0               # after the last fault all must be well, answered and worked off
LOOK_S = 0.05
# Of each cluster, besides what its own seed decides: only the programs of both send it commands. If most
# clocks were wrong, sessions could end, and with them what is known of a command in doubt.
QUIET: dict[str, Any] = {
    "nodes": 3, "spares": 0, "clients": 0, "sessions": 0.0, "extended": 0.0, "clones": 0.0, "subscribed": False,
    "upgraded": False, "paged": False, "fragments": False, "constants": [], "fault_s": FAULT_S,
    "wrong_clocks": 1,
}

log = logging.getLogger("sockpqd")


class Cluster(World):
    """One of the two clusters."""

    def __init__(self, pair: TwoClusters, name: str, seed: int, **fixed: Any) -> None:
        self.pair = pair
        self.name = name
        draw = random.Random(f"faults {seed}")
        weights = {kind: draw.choice((0.0, 1.0, 1.0, 3.0)) for kind in (*NETWORK, *SIDES, *MACHINES)}
        self._accepted: dict[tuple[tuple[int, bytes], str], bool] = {}      # by the map and a name
        super().__init__(seed, **{**QUIET, "weights": weights, **fixed})

    def _new_events(self) -> Events:
        return self.pair.events

    def _new_checks(self, founders: tuple[str, ...]) -> Checks:
        return ClusterChecks(self, founders)

    def halt_if_enough(self) -> None:
        """See World: time is up when the operator has finished."""

    def begin(self) -> None:
        """Start the nodes; faults begin at BEGIN_S."""
        for node in self.nodes.values():
            self.events.after(self.rng.random() * 0.1, node.start)
        self.events.after(BEGIN_S, Faults(self).next)

    @property
    def id(self) -> str:
        """The cluster's id, as CLUSTER ID shows it."""
        known = self.checks.model.cluster_id
        assert known is not None
        return known[:8].hex()

    def accepts(self, name: str) -> bool:
        """Return whether it accepts the name by its committed entries. Without a map it is no part of the pair."""
        known = self.checks.model.map
        if not known[0]:
            return False
        found = self._accepted.get((known, name))
        if found is None:
            found = accepts(known[1].decode(), self.checks.model.cluster_id or b"", name)
            self._accepted[known, name] = found
        return found


class ClusterChecks(Checks):
    """Judges both clusters after each entry of one."""

    def __init__(self, cluster: Cluster, founders: tuple[str, ...]) -> None:
        super().__init__(cluster.trace, founders)
        self._cluster = cluster

    def _first(self, name: str, index: int, now_ms: int, seed: int, operations: list[Operation]) -> Past:
        past = super()._first(name, index, now_ms, seed, operations)
        self._cluster.pair.judge(self._cluster, past)
        return past


class TwoClusters:
    """A run. `fixed` overrides fields of both clusters' plans."""

    def __init__(self, seed: int, **fixed: Any) -> None:
        self.seed = seed
        self.rng = random.Random(f"clusters {seed}")
        self.events = Events()
        self.clusters = {"a": Cluster(self, "a", 2 * seed, **fixed), "b": Cluster(self, "b", 2 * seed + 1, **fixed)}
        self.trace: Trace = self.clusters["a"].trace
        self.stopping = False           # producers put no more
        self.answered: dict[bytes, str] = {}            # the data of each job, and the cluster that accepted it
        self.asked: set[bytes] = set()
        self.stored: dict[bytes, set[str]] = {}         # the same, by history
        self.operator = Operator(self)
        self.producers = [Producer(self, f"p{number}") for number in range(PRODUCERS)]
        self.consumers = [Consumer(self) for _ in range(CONSUMERS)]

    def run(self) -> None:
        """Run it to its end; raises Violation."""
        level, log.disabled = logging.root.manager.disable, True
        logging.disable(logging.CRITICAL)
        try:
            with ExitStack() as stack:
                for cluster in self.clusters.values():
                    stack.enter_context(surroundings(cluster.seed, cluster.plan))
                self._trouble()
                self._end()
        finally:
            logging.disable(level)
            log.disabled = False

    @property
    def enough(self) -> bool:
        """True if there are enough waiting jobs for producers to pause."""
        return False

    def newest_of(self, name: str, node: str) -> ClusterMap:
        """Return the map of one node, which may be behind."""
        known = self.clusters[name].nodes[node]
        if known.driver is None or known.machine.cluster_map is None:
            return ClusterMap()
        held = known.machine.cluster_map
        return parse_map(held.version, held.text.decode())

    def newest(self) -> ClusterMap:
        """Return the newest map of all nodes."""
        held = [self.newest_of(name, node) for name, cluster in self.clusters.items() for node in cluster.nodes]
        return max(held, key=lambda one: one.version)

    def judge(self, cluster: Cluster, past: Past) -> None:
        """Check both clusters after a new entry of one."""
        for operation, reply in zip(past.operations, past.replies, strict=True):
            if isinstance(operation, Request) and isinstance(operation.operation, Put) and isinstance(reply, Stored):
                self.stored.setdefault(bytes(operation.operation.data), set()).add(cluster.name)
        for name in NAMES:
            by = [one.name for one in self.clusters.values() if one.accepts(name)]
            if len(by) > 1:
                maps = {one.name: one.checks.model.map for one in self.clusters.values()}
                raise Violation(f"{name} is accepted by {' and '.join(by)}: {maps}")

    def _trouble(self) -> None:
        for cluster in self.clusters.values():
            cluster.begin()
        self.operator.join()
        for act in (program.act for programs in (self.producers, self.consumers) for program in programs):
            self.events.after(self.rng.random() * 0.2, act)
        self._make_trouble()
        self.stopping = True

    def _make_trouble(self) -> None:
        """Let the operator work while faults occur."""
        end = self.events.now + TROUBLE_S
        while self.events.now < end:
            self.operator.change_something()

    def _end(self) -> None:
        for cluster in self.clusters.values():
            Ending(cluster).heal()
        self.until(self._serving, "no leader serves")
        self.operator.complete()
        self.until(lambda: all(program.content for program in self.producers), "a program that puts has no answer")
        self.until(self._worked_off, "jobs are not found by those who take")
        if self.answered.keys() != self.asked:
            raise Violation(f"{self.asked - self.answered.keys()} were put without an answer")
        for data, by in self.answered.items():
            if self.stored.get(data) != {by}:
                raise Violation(f"{data!r} was accepted by {by} and is in {self.stored.get(data)}")
        for cluster in self.clusters.values():
            cluster.checks.finish(cluster.outcomes)

    def until(self, holds: Any, what: str) -> None:
        """Let time pass until a condition holds; operators start nodes that ended. Raises Violation after LIVENESS_S.
        """
        end = self.events.now + LIVENESS_S
        while not holds():
            if self.events.now > end:
                described = [cluster.describe() for cluster in self.clusters.values()]
                raise Violation(f"{LIVENESS_S:.0f} s after the last fault {what}: {described}")
            for cluster in self.clusters.values():
                for node in cluster.members:
                    node.start_again()
            self.pass_time(LOOK_S)

    def pass_time(self, seconds: float) -> None:
        """Let this many simulated seconds pass."""
        self.events.run_until(self.events.now + seconds)

    def _serving(self) -> bool:
        return all(cluster.serving() is not None for cluster in self.clusters.values())

    def _worked_off(self) -> bool:
        return not any(cluster.checks.model.jobs for cluster in self.clusters.values())

    def told(self, cluster: str, outcome: Outcome) -> None:
        """Note that a program or an operator got an answer."""
        self.clusters[cluster].told(outcome)
