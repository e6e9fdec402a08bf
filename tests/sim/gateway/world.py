"""A cluster of simulated nodes with gateways, clients of pulses, and leaders that fail one after the other."""

from __future__ import annotations

import random
from typing import Any

from sockpqd.core import Event, Machine
from tests.sim.gateway.clients import GatewayClient, operates, puts_jobs, takes_jobs, takes_turns
from tests.sim.gateway.failovers import Failovers
from tests.sim.gateway.grants import GrantMonitor
from tests.sim.gateway.hearers import TYPES, Tale, listens, sends_messages
from tests.sim.gateway.node import GatewayNode
from tests.sim.gateway.witness import WitnessedChecks
from tests.sim.oracles.checks import Checks
from tests.sim.oracles.replicated_time import TimePromises
from tests.sim.world.digest_codes import Kind
from tests.sim.world.ending import Ending
from tests.sim.world.events import DriftingClock
from tests.sim.world.node import SimNode
from tests.sim.world.plan import DRIFT_MAX
from tests.sim.world.trace import Violation
from tests.sim.world.world import World

CALM_S = 1.5                    # until the first fault
LATE_S = 60.0                   # a run takes longer by so much at most when leaders do not fail in time
WELL_S = 30.0                   # after the last one all must be well, and everybody served
DRIFTS = (0.0, 0.0, 0.001, DRIFT_MAX)
MOODS = (0.0, 0.0, 0.02, 0.15)  # so many results are complaints
FAST = ((1, 0.5), (3, 1.0), (5, 1.0), (10, 1.0), (25, 2.0))     # grants in so many seconds
SLOW = ((1, 1.5), (2, 3.0), (3, 4.0), (5, 6.0), (8, 10.0))      # windows are longer than most failovers take
CLOCKS_ARE_SET = 0.3            # in so many runs all wall clocks are wrong together now and then
SPREAD = 0.3                    # in so many runs grants are given at even distances
BUSY = 0.1                      # so many runs have fast pulses and many clients
QUIET: dict[str, Any] = {
    "spares": 0, "weights": {}, "clients": 0, "sessions": 0.0, "extended": 0.0, "clones": 0.0, "subscribed": False,
    "upgraded": False, "heartbeat_ms": 150,
}


class NoTimePromises(TimePromises):
    """An oracle without promises about time: where most clocks are wrong, replicated time is wrong."""

    def committed(self, seed: int, clock_ms: int) -> None:
        """Accept any committed entry."""


class GatewayWorld(World):
    """A run of this many seconds with this many failovers. `fixed` overrides fields of the seed's plan."""

    def __init__(
        self, seed: int, *, seconds: float = 120.0, failovers: int = 5, spread: bool | None = None, **fixed: Any,
    ) -> None:
        draw = random.Random(seed + 3)
        self.secrets = random.Random(seed + 4)
        self._spread = random.Random(seed + 5).random() < SPREAD if spread is None else spread
        self.seconds = seconds
        self.failovers = failovers
        self.prepared = False               # pulses and queues have their settings
        self.clocks_are_set = draw.random() < CLOCKS_ARE_SET
        self.busy = draw.random() < BUSY
        self.rates = [draw.choice(FAST if self.busy else SLOW) for _ in range(4)]
        self._complaints = draw.choice(MOODS)
        plan = {**QUIET, "nodes": draw.choice((3, 3, 3, 5)), "drift": draw.choice(DRIFTS), "constants": [], **fixed}
        super().__init__(seed, **plan)
        self.events_told = Tale(self.trace.seen)
        self.monitor = GrantMonitor(self.events, self.trace.seen, 1 + self.plan.drift)
        if self.clocks_are_set:
            self.timekeeping = NoTimePromises(self.events, self.wrong_clocks)

    def _new_checks(self, founders: tuple[str, ...]) -> Checks:
        return WitnessedChecks(self.trace, founders, TYPES, self._came_about)

    def _came_about(self, machine: Machine, events: list[Event]) -> None:
        self.monitor.history(machine)
        self.events_told.told(events)

    def _new_node(self, name: str, clock: DriftingClock) -> SimNode:
        return GatewayNode(self, name, clock)

    # For clients

    def gateway(self, node: SimNode) -> GatewayNode:
        """True: all nodes have a gateway."""
        assert isinstance(node, GatewayNode)
        return node

    def ready(self, queue: str) -> int:
        """Return how many jobs can be taken."""
        return int(self.checks.model.machine.ready(queue))

    def mood(self, rng: random.Random) -> str:
        """Return what a client adds to its result: complaints about the rate, or nothing."""
        complains = rng.random() < self._complaints
        return rng.choice(("SLOW", "SLOW", "SLEEP 0.7")) if complains else ""

    # A run

    def _trouble(self) -> None:
        for name in self.voters:
            self.events.after(self.rng.random() * 0.1, self.nodes[name].start)
        for number, life in enumerate(self._lives()):
            GatewayClient(self, number, life)
        failing = Failovers(self)
        self.events.after(CALM_S, failing.begin)
        self.steps += self.events.run_until(self.seconds)
        while failing.left and self.events.now < self.seconds + LATE_S:
            self.steps += self.events.run_until(self.events.now + 1)

    def _lives(self) -> list[Any]:
        more = 2 if self.busy else 1
        (turns, turns_s), (group, group_s), (shared, shared_s), (own, own_s) = self.rates
        law, spread = "STEP 0.2 MAXPAUSE 1 MAXRUN 20", " SPREAD" if self._spread else ""
        return [
            operates([
                f"PULSE CREATE turns RATE {turns} PER {turns_s} {law}{spread}",
                f"PULSE CREATE group RATE {group} PER {group_s} {law} TOGETHER MAXWAIT 0.4",
                f"PULSE CREATE shared RATE {shared} PER {shared_s} {law}{spread}",
                f"QUEUE CONFIG own RATE {own} PER {own_s}{spread}",
                "QUEUE CONFIG work PULSE shared", "PULSE SET turns 3\r\nabc", "CONFIG FASTEMPTY ON",
            ]),
            *(takes_turns("turns", numbered=number % 3 == 0) for number in range(4 * more)),
            *(takes_turns("group", numbered=number % 3 == 0) for number in range(3 * more)),
            *(takes_turns("shared", numbered=False) for _ in range(2)),
            *(takes_jobs("work", numbered=number % 2 == 0) for number in range(2 * more)),
            *(takes_jobs("own", numbered=number % 2 == 0) for number in range(2 * more)),
            puts_jobs("own"), puts_jobs("work"),
            listens(self.events_told), listens(self.events_told), sends_messages(self.events_told),
        ]

    def _end(self) -> None:
        Ending(self).heal()
        healed = self.events.now
        while not self._well(healed):
            if self.events.now > healed + WELL_S:
                late = {name: f"{healed - at:.1f} s before" for name, at in self.monitor.last.items() if at < healed}
                raise Violation(f"{WELL_S:.0f} s after the last fault not all is well: {late} {self.describe()}")
            self.steps += self.events.run_until(self.events.now + 0.1)
        for node in self.members:
            state = node.state()
            if state is not None:
                self.checks.state(node.name, node.machine.index, state)
        self.trace.note(Kind.WELL, "all is well")

    def _well(self, since: float) -> bool:
        """Return whether some node serves, and each pulse gives grants again."""
        last = self.monitor.last
        return self.serving() is not None and len(last) == len(self.rates) and min(last.values()) > since
