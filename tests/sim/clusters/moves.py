"""Rounds of `pqctl map move` while programs put and take, pqctl is killed, and the leaders of both clusters die.

Besides what holds in every run of two clusters: while pqctl runs and both clusters have a leader, a name that it moves
is without an owner for less than UNOWNED_S; and each job is done once.
"""

from __future__ import annotations

import random
from typing import Any

from sockpqd.core import Done, Finished, Get, Handed, Request
from sockpqd.pqctl.actions.maps.changes import owner_of_prefix, rule_of
from tests.sim.clusters.world import NAMES, PREFIXES, Cluster, TwoClusters
from tests.sim.oracles.checks import Past
from tests.sim.world.trace import Violation

UNOWNED_S = 2.0                 # NEXT.md 100: well below two seconds for the two versions of a change
TICK_S = 0.02
JOBS_MAX = 20                   # that wait, or a move would end only when producers happen to be slow
ROUND_S = 120.0                 # a move ends within so long, whatever goes wrong
KILL_S = (0.0, 1.0)             # so soon after the beginning of a round each leader dies
# What else goes wrong: only what ends a leadership, since a leader that is cut off or waits for its disk does not show.
FIXED: dict[str, Any] = {
    "weights": {"crash": 1.0, "power loss": 1.0, "crash at a step": 1.0, "connection lost": 1.0}, "fault_s": 3.0,
}


class Moves(TwoClusters):
    """A run of this many rounds.

    `unowned_s`: for how long a name had no owner, each time: while pqctl ran and both had a leader, and altogether.
    """

    def __init__(self, seed: int, rounds: int) -> None:
        self.done: dict[bytes, set[tuple[str, int, int]]] = {}      # by its data, the requests that ended the job
        self.unowned_s: list[tuple[float, float]] = []
        self._rounds = rounds
        self._prefix = ""                                           # of the round
        self._taken: dict[tuple[str, int], bytes] = {}              # the data of running jobs
        self._without: dict[str, tuple[float, float]] = {}          # names that no cluster accepts now
        super().__init__(seed, **FIXED)
        self._kills = random.Random(f"kills {seed}")

    @property
    def enough(self) -> bool:
        """Implement TwoClusters."""
        return len(self.asked) - len(self.done) >= JOBS_MAX

    def judge(self, cluster: Cluster, past: Past) -> None:
        """See TwoClusters; and note which request has ended which job."""
        super().judge(cluster, past)
        for operation, reply in zip(past.operations, past.replies, strict=True):
            if not isinstance(operation, Request):
                continue
            if isinstance(operation.operation, Get) and isinstance(reply, Handed):
                self._taken[cluster.name, reply.id] = bytes(reply.data)
            elif isinstance(operation.operation, Done) and isinstance(reply, Finished):
                data = self._taken[cluster.name, operation.operation.id]
                self.done.setdefault(data, set()).add((cluster.name, operation.session, operation.number))

    def _make_trouble(self) -> None:
        self.events.after(TICK_S, self._look)
        for _ in range(self._rounds):
            self._round()

    def _round(self) -> None:
        prefix = self._prefix = self._kills.choice(PREFIXES)
        owner = owner_of_prefix(self.newest(), prefix)
        to = "b" if owner == "a" else "a" if owner == "b" else self._kills.choice("ab")
        over = False

        def must_be_over() -> None:
            if not over:
                described = [cluster.describe() for cluster in self.clusters.values()]
                raise Violation(f"the move of {prefix} to {to} does not end: {self.newest()}, {described}")
        self.events.after(ROUND_S, must_be_over)
        for cluster in self.clusters.values():
            self.events.after(self._kills.uniform(*KILL_S), lambda cluster=cluster: self._kill_leader(cluster))
        self.operator.move(prefix, to)
        over = True
        self.trace.seen["rounds"] += 1

    def _kill_leader(self, cluster: Cluster) -> None:
        node = cluster.serving()
        if node is None:
            return
        node.crash(power=self._kills.random() < 0.5)
        cluster.start_later(node)
        self.trace.seen["leaders killed"] += 1

    def _look(self) -> None:
        """Count a tick of the time for which names have no owner. Raises Violation when one has none for too long."""
        counts = self.operator.changing and all(one.serving() is not None for one in self.clusters.values())
        for name in NAMES:
            changing_s, all_s = self._without.pop(name, (0.0, 0.0))
            if any(one.accepts(name) for one in self.clusters.values()):
                if all_s:
                    self.unowned_s.append((changing_s, all_s))
                continue
            # Another pqctl may have died over other names: they wait until somebody runs that again.
            changing_s += TICK_S if counts and rule_of(self.newest(), name) == self._prefix else 0.0
            self._without[name] = changing_s, all_s + TICK_S
            if changing_s > UNOWNED_S:
                raise Violation(f"{name} is accepted by no cluster for {changing_s:.2f} s while pqctl runs")
        if not self.stopping:
            self.events.after(TICK_S, self._look)

    def _end(self) -> None:
        super()._end()
        for data in self.asked:
            if len(self.done.get(data, ())) != 1:
                raise Violation(f"{data!r} was done by these requests: {self.done.get(data)}")
