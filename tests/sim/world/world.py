"""One run: a cluster, its clients, the faults, and the end without faults."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from sockpqd.cluster.settings import Member
from sockpqd.core import Operation
from tests.sim.clients.of_groups import GroupClient
from tests.sim.clients.outcomes import Outcome
from tests.sim.clients.with_session import SessionClient
from tests.sim.clients.without_session import Client
from tests.sim.faults.kinds import Faults
from tests.sim.oracles.checks import Checks
from tests.sim.oracles.events import Hearer, Tale
from tests.sim.oracles.leases import Leases
from tests.sim.oracles.replicated_time import STEADY_DRIFT, TimePromises
from tests.sim.world import plan as plans
from tests.sim.world.digest_codes import Kind
from tests.sim.world.ending import Ending
from tests.sim.world.events import DriftingClock, Events
from tests.sim.world.network import Network
from tests.sim.world.node import SimNode
from tests.sim.world.trace import Trace

FAULTS = 5                      # at least before the trouble ends, unless it has lasted long enough
SCRIPT_S = 30.0                 # a script may take so long
RESTART_S = (0.02, 1.0)
SOON_S = 0.05                   # the same, when faults have stopped

log = logging.getLogger("sockpqd")


class World:
    """The state of a run. `fixed` overrides fields of the seed's plan."""

    replica = False                 # the nodes are configured to follow a cluster in another region

    def __init__(self, seed: int, *, digesting: bool = False, **fixed: Any) -> None:
        self.seed = seed
        self.plan = plans.draw(seed, **fixed)
        self.rng = random.Random(seed)
        self.events = self._new_events()
        self.trace = Trace(self.events, digesting=digesting)
        self.steps = 0
        self.healed = False
        self.calm_until = 0.0           # nothing else is to go wrong before, and nothing is to be healed
        self.clients_stopped = False
        self.outcomes: list[Outcome] = []
        self.clients: list[Client] = []
        self._answered = 0
        names = [f"n{number + 1}" for number in range(self.plan.nodes + self.plan.spares)]
        self.addresses = {name: Member(name, f"h:{k + 1}", f"h:{k + 101}") for k, name in enumerate(names)}
        founders = tuple(names[:self.plan.nodes])
        self.checks = self._new_checks(founders)
        self.strangers: set[str] = set(founders)        # who was a member once, or is to become one
        self.commits: list[tuple[float, int, int | None]] = []      # when an entry was first applied, index, term
        self.removals: list[tuple[str, int]] = []       # proposed, with the configuration that they were made for
        self.network = Network(self.events, self.rng, self.trace, names, self.plan.bytes_per_s)
        clocks = random.Random(seed + 2)
        self.tale = Tale(self.trace.seen)
        self.roamer = Hearer("the roaming subscriber", self.tale)
        self.roams_on = ""                              # the node that it listens to
        self.nodes = {name: self._new_node(name, self._clock(clocks)) for name in names}
        self.leases = Leases(self.nodes.values())
        self.wrong_clock = clocks.choice(founders)
        more = [name for name in founders if name != self.wrong_clock]
        more = clocks.sample(more, min(len(more), self.plan.wrong_clocks - 1))
        self.wrong_clocks = (self.wrong_clock, *more)       # the only ones whose wall clocks anybody sets
        self.timekeeping = TimePromises(self.events, self.wrong_clocks)
        if self.plan.upgraded:
            for node in self.nodes.values():
                node.known_level = plans.OLD_LEVEL
        for name in founders:
            self.nodes[name].configured = tuple(self.addresses[name] for name in founders)
        self.network.nodes.update(self.nodes)

    def _new_events(self) -> Events:
        return Events()

    def _new_checks(self, founders: tuple[str, ...]) -> Checks:
        return Checks(self.trace, founders, grouped=self.plan.grouped)

    def _new_node(self, name: str, clock: DriftingClock) -> SimNode:
        return SimNode(self, name, clock)

    def _clock(self, clocks: random.Random) -> DriftingClock:
        start_s, drift = self.rng.uniform(1, 1000), self.plan.drift
        drawn = self.rng.uniform(-drift, drift)
        if abs(drawn) > drift / 2:
            drawn = math.copysign(drift, drawn)         # what compares two clocks is tried at the bound
        return DriftingClock(
            self.events, start_s, 1 + drawn, 1 + clocks.uniform(-STEADY_DRIFT, STEADY_DRIFT),
        )

    def run(self) -> None:
        """Run it to its end; raises Violation."""
        level, log.disabled = logging.root.manager.disable, True
        logging.disable(logging.CRITICAL)
        try:
            with plans.surroundings(self.seed, self.plan):
                self._trouble()
                self._end()
        finally:
            logging.disable(level)
            log.disabled = False

    def _trouble(self) -> None:
        for name in self.voters:
            self.events.after(self.rng.random() * 0.1, self.nodes[name].start)
        for number in range(self.plan.clients):
            self.clients.append(self._new_client(number))
            self.events.after(0.3 + self.rng.random() * 0.2, self.clients[-1].act)
        if self.plan.script is None:
            self.events.after(self.plan.calm_s, Faults(self).next)
            self.steps += self.events.run_until(self.plan.trouble_s)
            if self.events.now < self.calm_until:
                self.steps += self.events.run_until(self.calm_until)
        else:
            self._play(self.plan.script(self))
            self.steps += self.events.run_until(SCRIPT_S)

    def _new_client(self, number: int) -> Client:
        if self.plan.grouped:
            return GroupClient(self, f"c{number}")
        kind = SessionClient if number < round(self.plan.sessions * self.plan.clients) else Client
        return kind(self, f"c{number}")

    def _end(self) -> None:
        Ending(self).run()

    def _play(self, script: Iterator[float]) -> None:
        """Resume a script, which yields the seconds until it is to be resumed again."""
        seconds = next(script, None)
        if seconds is None:
            self.events.halt()
        else:
            self.events.after(seconds, lambda: self._play(script))

    # Who belongs to it

    @property
    def voters(self) -> tuple[str, ...]:
        """Return the names of the present voters."""
        return self.checks.configurations.voters

    @property
    def members(self) -> list[SimNode]:
        """Return the voters, and the learner if there is one."""
        learner = self.checks.model.learner
        return [node for name, node in self.nodes.items() if name in self.voters or name == learner]

    @property
    def present(self) -> list[SimNode]:
        """Return all members, and other running nodes."""
        members = self.members
        return [node for node in self.nodes.values() if node.running or node in members]

    @property
    def level(self) -> int:
        """Return the feature level of the cluster, as far as any node knows."""
        return max(node.machine.level for node in self.nodes.values())

    def write_file(self, node: SimNode) -> None:
        """Write the present members, and the node itself, into its configuration file, as an operator does.

        Not if the file names any other voter, which is enough. An empty node that knows only itself, or only such as
        are empty too, would found a cluster of its own.
        """
        if any(member.name in self.voters for member in node.configured if member.name != node.name):
            return
        names = {*(member.name for member in self.members), node.name}
        node.configured = tuple(address for name, address in self.addresses.items() if name in names)

    def expendable(self, name: str) -> bool:
        """Return whether this node was removed, and no voter can forget that any more."""
        left = self.checks.configurations.left.get(name)
        return left is not None and all(self.nodes[voter].memory.commit >= left for voter in self.voters)

    # Outcomes for clients and operators

    def told(self, outcome: Outcome) -> None:
        """Note that a client got an answer."""
        if outcome.state != "refused":
            self._answered += 1
            self.halt_if_enough()
        self.trace.seen[outcome.state] += 1
        self.trace.answer(outcome.state, outcome.operation, outcome.reply)

    def command(self, operation: Operation, then: Callable[[Outcome], None] = lambda outcome: None) -> Outcome:
        """Propose an operator's command; `then` gets its outcome."""
        def told(outcome: Outcome) -> None:
            word = type(outcome.reply).__name__ if outcome.state == "applied" else outcome.state
            self.trace.seen[f"{type(operation).__name__} {word}"] += 1
            self.trace.note(Kind.COMMAND, f"{operation} is {word}")
            self.trace.answer(outcome.state, operation, outcome.reply)
            then(outcome)
        outcome = Outcome(operation, told)
        self.outcomes.append(outcome)
        return outcome

    def halt_if_enough(self) -> None:
        """Halt the run when enough has happened."""
        enough = self._answered >= self.plan.operations and self.trace.faults.total() >= FAULTS
        if enough and not self.healed and self.plan.script is None and self.events.now >= self.calm_until:
            self.events.halt()

    def start_later(self, node: SimNode) -> None:
        """Start the node again after a while."""
        seconds = SOON_S if self.healed else self.rng.uniform(*RESTART_S)
        self.events.after(seconds, node.start)

    def serving(self) -> SimNode | None:
        """Return the only node that serves."""
        serving = [node for node in self.nodes.values() if node.serving]
        return serving[0] if len(serving) == 1 else None

    def describe(self) -> str:
        """Return all nodes in a line each."""
        lines = []
        for node in self.nodes.values():
            if node.driver is None:
                lines.append(f"{node.name} is down")
                continue
            driver = node.driver
            peers = " ".join(
                f"{peer.name}:{'up' if peer.up else 'down'}{' choked' if peer.choked else ''}"
                f"{' sending' if peer.sending else ''} sent_up_to={peer.sent_up_to} match={peer.match}"
                for peer in driver.peers.values()
            )
            lines.append(
                f"{node.name} {driver.role()} term={driver.replica.term}"
                f" entries={driver.journal.first_index}..{driver.journal.last_index}"
                f" commit={driver.replica.commit_index} applied={driver.replica.applied_index}"
                f" voter={driver.journal.voter} serving={node.serving} {peers}"
            )
        return "\n  ".join(["", *lines])
