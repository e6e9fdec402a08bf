"""Faults that come from outside and need no word with the program: packets that are lost, and power."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from itertools import permutations

from tests.chaos.faults.again import bring_back, kill_at_once
from tests.chaos.faults.fault import Fault, called
from tests.chaos.faults.processes import LEVEL_S
from tests.chaos.faults.roles import Role
from tests.chaos.machines.alterable import AlterableCluster
from tests.chaos.workload.history import Cut
from tests.proof.cluster import NamespacedCluster
from tests.proof.network import CLIENTS, Pair

LATE_NS = 1_000_000_000
SHAPES = "cut off", "halves", "bridge", "ring", "one way"


def both_ways(some: Iterable[str], others: Iterable[str]) -> set[Pair]:
    """Nothing passes between the two groups."""
    one, other = list(some), list(others)
    return {pair for a in one for b in other for pair in ((a, b), (b, a))}


def pairs_of(shape: str, names: list[str], chance: random.Random) -> set[Pair]:
    """Return the pairs whose packets are lost in a network of this shape, with the nodes in an order of chance.

    * cut off: one node can reach no other and no client, nor be reached;
    * halves: two groups, with the clients on one side;
    * bridge: one node sees two groups that do not see each other, of which clients see one;
    * ring: each node sees two others only (with three nodes: like halves, without the clients);
    * one way: what one node sends to some other is lost, and perhaps to more of them.
    """
    names = chance.sample(names, len(names))
    half = len(names) // 2
    if shape == "cut off":
        return both_ways(names[:1], [*names[1:], CLIENTS])
    if shape == "halves":
        return both_ways(names[:half], [*names[half:], *chance.choice(([CLIENTS], []))])
    if shape == "bridge":
        left, right = names[1:1 + half], names[1 + half:]
        return both_ways(left, [*right, *chance.choice(([CLIENTS], []))])
    if shape == "ring":
        seen = {frozenset((names[at - 1], names[at])) for at in range(len(names))}
        far = {(a, b) for a, b in permutations(names, 2) if frozenset((a, b)) not in seen}
        return far or both_ways(names[:1], names[1:])
    deaf = chance.choice((True, False))
    others = chance.sample([*names[1:], CLIENTS], chance.randint(1, len(names)))
    return {(other, names[0]) if deaf else (names[0], other) for other in others}


class Outage(Fault):
    """Packets between some machines are lost."""

    def __init__(self, shape: str, chance: random.Random) -> None:
        super().__init__()
        self._shape = shape
        self._chance = chance
        self._pairs: set[Pair] = set()
        self._since_ns = 0

    def __repr__(self) -> str:
        return f"Outage {self._shape}"

    def _begin(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, NamespacedCluster)
        self._pairs = pairs_of(self._shape, cluster.names, self._chance)
        cluster.network.lose(self._pairs)
        self._since_ns = time.monotonic_ns()
        self.names = sorted({name for pair in self._pairs for name in pair} - {CLIENTS})
        self._saw(True, ", ".join(f"{a}>{b}" for a, b in sorted(self._pairs)))

    def _end(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, NamespacedCluster)
        if self._since_ns:
            now_ns = time.monotonic_ns()
            self.cuts += [Cut(name, self._since_ns, now_ns) for name in self._helpless(cluster.names)]
            # TCP sends again after pauses that double: the next one comes at most as long after the end as this lasted.
            until_ns = 2 * now_ns - self._since_ns + LATE_NS
            self.late += [Cut(name, self._since_ns, until_ns) for name in cluster.names
                          if {(name, CLIENTS), (CLIENTS, name)} & self._pairs]
        cluster.network.lose(())

    def _helpless(self, names: list[str]) -> list[str]:
        """Return those that surely reach no majority."""
        def reached(name: str) -> int:
            return sum((name, other) not in self._pairs and (other, name) not in self._pairs
                       for other in names if other != name)
        return [name for name in names if 2 * (1 + reached(name)) <= len(names)]


class PowerLoss(Fault):
    """The power of these nodes fails at the same moment; they come back with what was on their disks."""

    def __init__(self, role: Role) -> None:
        super().__init__()
        self._role = role

    def __repr__(self) -> str:
        return f"PowerLoss {called(self._role)}"

    def _begin(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, NamespacedCluster)
        self.names = self._role(cluster)
        kill_at_once(cluster, self.names)
        for name in self.names:
            cluster.kill(name)                  # waits for the end
            self._saw(not cluster.running(name), f"{name} is dead")
        self._saw(True, f"{cluster.lose_power(self.names)} files lost something")

    def _end(self, cluster: AlterableCluster) -> None:
        bring_back(cluster)
        cluster.wait_for_leader(LEVEL_S)
