"""One run: a cluster, its clients, what goes wrong, and the end, when nothing does any more."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from typing import Any

from cluster.settings import Member
from core import Done, Get
from tests.sim import plan as plans
from tests.sim.checks import Checks
from tests.sim.clients import Client
from tests.sim.events import DriftingClock, Events
from tests.sim.faults import Faults
from tests.sim.network import Network
from tests.sim.node import SimNode
from tests.sim.outcomes import Outcome
from tests.sim.trace import Trace, Violation

OPERATIONS = 120                # of clients, answered; then faults stop (the end adds about as many),
FAULTS = 5                      # when there were so many,
TROUBLE_S = 3.5                 # or after so long
LIVENESS_S = 30.0               # afterwards all must be well within so long
LOOK_S = 0.05
RESTART_S = (0.02, 1.0)

log = logging.getLogger("sockpqd")


class World:
    """Everything of a run. `fixed` overrides fields of the seed's plan."""

    def __init__(self, seed: int, *, digesting: bool = False, **fixed: Any) -> None:
        self.seed = seed
        self.plan = plans.draw(seed, **fixed)
        self.rng = random.Random(seed)
        self.events = Events()
        self.trace = Trace(self.events, digesting=digesting)
        self.checks = Checks(self.trace)
        self.steps = 0
        self.healed = False
        self.clients_stopped = False
        self.outcomes: list[Outcome] = []
        self._answered = 0
        names = [f"n{number + 1}" for number in range(self.plan.nodes)]
        self.members = tuple(Member(name, f"h:{k + 1}", f"h:{k + 101}") for k, name in enumerate(names))
        self.network = Network(self.events, self.rng, self.trace, names)
        self.nodes = {name: SimNode(self, name, self._clock()) for name in names}
        self.network.nodes.update(self.nodes)

    def _clock(self) -> DriftingClock:
        drift = self.plan.drift
        return DriftingClock(self.events, self.rng.uniform(1, 1000), 1 + self.rng.uniform(-drift, drift))

    def run(self) -> None:
        """The whole run; raises Violation."""
        level, log.disabled = logging.root.manager.disable, True
        logging.disable(logging.CRITICAL)
        try:
            with plans.surroundings(self.seed, self.plan):
                self._trouble()
                self._heal()
                self._settle()
        finally:
            logging.disable(level)
            log.disabled = False

    def _trouble(self) -> None:
        for node in self.nodes.values():
            self.events.after(self.rng.random() * 0.1, node.start)
        for number in range(self.plan.clients):
            self.events.after(0.3 + self.rng.random() * 0.2, Client(self, f"c{number}").act)
        self.events.after(self.plan.calm_s, Faults(self).next)
        self.steps += self.events.run_until(TROUBLE_S)

    def told(self, outcome: Outcome) -> None:
        """A client got an answer."""
        if outcome.state != "refused":
            self._answered += 1
            self.halt_if_enough()
        self.trace.seen[outcome.state] += 1
        self.trace.bytes(outcome.state.encode())

    def halt_if_enough(self) -> None:
        """End the trouble when enough has happened."""
        if self._answered >= OPERATIONS and not self.healed and self.trace.faults.total() >= FAULTS:
            self.events.halt()

    def committed(self, index: int, term: int | None) -> None:
        """Some node applies this entry, as the first of all: it must be on the disks of a majority."""
        if term is not None:
            self.checks.terms[index] = term
        have = [node.name for node in self.nodes.values() if node.has_durably(index, term)]
        if 2 * len(have) <= len(self.nodes):
            raise Violation(f"entry {index} of term {term} is applied and only on the disk of {have}{self.describe()}")

    def start_later(self, node: SimNode) -> None:
        """Somebody starts the node again after a while."""
        seconds = LOOK_S if self.healed else self.rng.uniform(*RESTART_S)
        self.events.after(seconds, node.start)

    # When faults have stopped

    def _heal(self) -> None:
        self.trace.note("faults stop")
        self.healed = self.clients_stopped = True
        self.network.repair()
        for node in self.nodes.values():
            node.disk.repair()
            node.clock.wall_offset_ms = 0
            node.resume()
            if node.running:
                node.switch(online=True)
            else:
                node.start()

    def _settle(self) -> None:
        """The cluster must serve, every node catch up, and all queues drain."""
        end = self.events.now + LIVENESS_S
        for _ in self._until(end, self._well, "is not whole and serving"):
            pass
        asked: list[Outcome] = []
        for _ in self._until(end, self._drained, "does not drain"):
            asked = self._drain(asked)
        for _ in self._until(end, self._equal, "is not equal again"):
            pass
        for node in self.nodes.values():
            self.checks.state(node.name, node.machine.index, node.machine.snapshot())
        self.checks.finish(self.outcomes)
        self.checks.nothing_lost(self.outcomes)
        self.trace.note("all is well")

    def _until(self, end: float, holds: Any, what: str) -> Iterator[None]:
        while not holds():
            if self.events.now > end:
                raise Violation(f"{LIVENESS_S:.0f} s after the last fault the cluster {what}: {self.describe()}")
            self.steps += self.events.run_until(self.events.now + LOOK_S)
            yield

    def serving(self) -> SimNode | None:
        """The only node that serves."""
        serving = [node for node in self.nodes.values() if node.serving]
        return serving[0] if len(serving) == 1 else None

    def _well(self) -> bool:
        running = [node.driver for node in self.nodes.values() if node.driver is not None]
        return len(running) == len(self.nodes) and self.serving() is not None and self._equal()

    def _equal(self) -> bool:
        if not all(node.running and node.voter for node in self.nodes.values()):
            return False
        drivers = [node.up for node in self.nodes.values()]
        return len({d.replica.applied_index for d in drivers} | {d.journal.last_index for d in drivers}) == 1

    def _drained(self) -> bool:
        return not self.checks.model.jobs and self._equal()

    def _drain(self, asked: list[Outcome]) -> list[Outcome]:
        """Take and finish everything, as an operator would; ask anew when all was answered."""
        node = self.serving()
        if node is None or any(outcome.state == "open" for outcome in asked):
            return asked
        machine = node.machine
        operations = [Get(None) for _ in range(machine.total(None).jobs)]
        asked = [Outcome(operation, self.told) for operation in operations]
        asked += [Outcome(Done(job.id), self.told) for job in machine.running()]
        self.outcomes += asked
        node.propose(asked)
        return asked

    def describe(self) -> str:
        """All nodes in a line each."""
        lines = []
        for node in self.nodes.values():
            if node.driver is None:
                lines.append(f"{node.name} is down")
                continue
            driver = node.driver
            peers = " ".join(
                f"{peer.name}:{'up' if peer.up else 'down'}{' choked' if peer.choked else ''}"
                f"{' sending' if peer.sending else ''} high={peer.high} match={peer.match}"
                for peer in driver.guard.context.peers.values()
            )
            lines.append(
                f"{node.name} {driver.role()} term={driver.replica.term}"
                f" entries={driver.journal.first_index}..{driver.journal.last_index}"
                f" commit={driver.replica.commit_index} applied={driver.replica.applied_index}"
                f" voter={driver.journal.voter} serving={node.serving} {peers}"
            )
        return "\n  ".join(["", *lines])
