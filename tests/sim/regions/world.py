"""An origin with clients of all kinds, its replica, and the line between them; what goes wrong in each of the three.

At every index the copy's hash is the origin's. A promoted copy is an exact prefix of the origin. After a fence the
origin serves nobody again, and a copy that has all of its log lacks nothing.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from contextlib import ExitStack
from typing import Any

from sockpqd.cluster.driver import Driver
from sockpqd.cluster.storage.state_hash import Chain
from sockpqd.core import (
    Accepted,
    Event,
    Fence,
    JobState,
    Machine,
    MirrorChunk,
    Mirrored,
    MirrorEntries,
    Operation,
    Promote,
    ReplicaRefused,
    Reply,
)
from sockpqd.core.store.body import bytes_of
from tests.core.model.jobs import ModelApplied
from tests.sim.clients.outcomes import Outcome
from tests.sim.faults.kinds import Faults
from tests.sim.oracles.checks import Checks
from tests.sim.oracles.reference_model import Reference
from tests.sim.regions.line import Line
from tests.sim.world.ending import Ending
from tests.sim.world.events import DriftingClock, Events
from tests.sim.world.node import SimNode
from tests.sim.world.plan import MACHINES, NETWORK, SIDES, surroundings
from tests.sim.world.trace import Violation
from tests.sim.world.world import World

TROUBLE_S = 12.0
SETTLED_S = 60.0                # after the last fault the copy has all
LOOK_S = 0.05
GRACE_MS = 3_600_000            # of a promotion: nothing ends by time while the copy is compared
FENCED = 0.4                    # so often the origin is fenced before
KEPT_BYTES = (0, 1, 8 << 10, 32 << 10, 1 << 20)     # of the journal for a copy; each entry takes at least 512
CALM_S = 3.0                    # a fenced origin serves nobody for so long, when all of it was started again
# Of both clusters, besides what their seeds decide. Members of the replica never change.
COMMON: dict[str, Any] = {"spares": 0, "upgraded": False, "script": None, "wrong_clocks": 1}
OF_ORIGIN: dict[str, Any] = {**COMMON, "clones": 0.01}
OF_REPLICA: dict[str, Any] = {
    **COMMON, "nodes": 3, "clients": 0, "sessions": 0.0, "extended": 0.0, "clones": 0.0, "subscribed": False,
    "fragments": False, "grouped": False, "fault_s": 0.7,
}

log = logging.getLogger("sockpqd")


class RegionNode(SimNode):
    """A node of either cluster, whose chains of hashes are watched."""

    def _built(self, driver: Driver) -> None:
        super()._built(driver)
        assert isinstance(self.world, RegionWorld)
        self.world.regions.watch(self.world, driver)


class RegionWorld(World):
    """One of the two clusters."""

    def __init__(self, regions: Regions, seed: int, **fixed: Any) -> None:
        self.regions = regions
        super().__init__(seed, **fixed)

    def _new_events(self) -> Events:
        return self.regions.events

    def _new_node(self, name: str, clock: DriftingClock) -> SimNode:
        return RegionNode(self, name, clock)

    def halt_if_enough(self) -> None:
        """See World: only time ends the trouble."""

    def begin(self) -> None:
        """Start the nodes, the clients and the faults."""
        for node in self.nodes.values():
            self.events.after(self.rng.random() * 0.1, node.start)
        for number in range(self.plan.clients):
            self.clients.append(self._new_client(number))
            self.events.after(0.3 + self.rng.random() * 0.2, self.clients[-1].act)
        self.events.after(max(1.0, self.plan.calm_s), Faults(self).next)


class ReplicaWorld(RegionWorld):
    """The world of the replica."""

    replica = True

    def _new_checks(self, founders: tuple[str, ...]) -> Checks:
        return ReplicaChecks(self, founders)


class ReplicaChecks(Checks):
    """The checks of a replica, whose events are the origin's."""

    def __init__(self, world: ReplicaWorld, founders: tuple[str, ...]) -> None:
        super().__init__(world.trace, founders)
        self._world = world
        self.model = ReplicaModel()

    def applied(
        self, name: str, index: int, now_ms: int, seed: int, operations: list[Operation], replies: list[Reply],
    ) -> bool:
        """See Checks: after a promotion the replica has the jobs and the time of its origin."""
        first = super().applied(name, index, now_ms, seed, operations, replies)
        for operation, reply in zip(operations, replies, strict=True):
            if isinstance(operation, Promote) and isinstance(reply, Mirrored):
                self._world.regions.note_promotion(self._world.nodes[name], reply.index)
                if first:
                    self._world.timekeeping.take_over(self._world.regions.origin.timekeeping)
        return first

    def told(self, name: str, index: int, recorded: frozenset[str], events: list[Event], event_seq: int) -> None:
        """Do nothing: the mirror's events are compared with the state."""


class ReplicaModel(Reference):
    """The rules by which a replica takes in what its origin has executed: only how far it is."""

    def __init__(self) -> None:
        super().__init__()
        self.mirrored = 0
        self.promoted = False
        self.part = (0, 0)                  # the index of a frame, and the bytes that have come
        self.arriving = (0, 0, 0)           # the index of a snapshot, its size, and the bytes that have come

    def _execute(self, operation: Operation, bits: int, applied: ModelApplied) -> Reply:
        if self.promoted and isinstance(operation, MirrorEntries | MirrorChunk):
            return ReplicaRefused("promoted")
        match operation:
            case MirrorEntries() if operation.offset or not operation.last:
                self._take_part(operation)
            case MirrorEntries():
                if operation.after <= self.mirrored:
                    self.mirrored = max([self.mirrored, *[frame.index for frame in operation.frames]])
            case MirrorChunk(total_bytes=int() as total_bytes):
                known = operation.index > self.mirrored
                self.arriving = (operation.index, total_bytes, 0) if known else (0, 0, 0)
            case MirrorChunk():
                index, total_bytes, received = self.arriving
                if (index, received) == (operation.index, operation.offset):
                    received += len(operation.data)
                    self.arriving = (index, total_bytes, received)
                    if received == total_bytes:
                        self.mirrored, self.part, self.arriving = index, (0, 0), (0, 0, 0)
            case Promote() if self.promoted:        # asked again, because the answer was lost
                return ReplicaRefused("no mirror")
            case Promote():
                self.promoted = True
            case _:
                return super()._execute(operation, bits, applied)
        return Mirrored(self.mirrored)

    def _take_part(self, operation: MirrorEntries) -> None:
        (frame,) = operation.frames
        if not operation.after <= self.mirrored < frame.index:
            return
        begun, self.part = self.part, (0, 0)
        if operation.offset and begun != (frame.index, operation.offset):
            return
        if operation.last:
            self.mirrored = frame.index
        else:
            self.part = (frame.index, operation.offset + len(frame.data))


class Regions:
    """A run. `fixed` overrides fields of the origin's plan."""

    def __init__(self, seed: int, **fixed: Any) -> None:
        self.seed = seed
        self.rng = random.Random(f"regions {seed}")
        self.events = Events()
        self.seen: Counter[str] = Counter()
        self.hashes: dict[int, bytes] = {}          # of the origin, by index
        self.compared: set[int] = set()
        draw = random.Random(f"weights {seed}")
        kept = {"feed_keep_bytes": random.Random(f"kept {seed}").choice(KEPT_BYTES)}     # by both, as after a promotion
        self.origin = RegionWorld(self, 2 * seed, **{**OF_ORIGIN, "weights": _weights(draw), **kept, **fixed})
        self.replica = ReplicaWorld(self, 2 * seed + 1, **{**OF_REPLICA, "weights": _weights(draw), **kept})
        self.line = Line(self)
        self.fenced: Outcome | None = None
        self.promoted: Outcome | None = None
        self.taken_over: list[tuple[str, int, Counter[tuple[str, bytes]]]] = []     # by whom, at which index, and jobs

    def run(self) -> None:
        """Run it to its end; raises Violation."""
        level, log.disabled = logging.root.manager.disable, True
        logging.disable(logging.CRITICAL)
        try:
            with ExitStack() as stack:
                for world in (self.origin, self.replica):
                    stack.enter_context(surroundings(world.seed, world.plan))
                self._run()
        finally:
            logging.disable(level)
            log.disabled = False

    def _run(self) -> None:
        self.origin.begin()
        self.replica.begin()
        self.line.begin()
        promotes = self.rng.random() < 0.5
        self.pass_time(self.rng.uniform(3.0, TROUBLE_S) if promotes else TROUBLE_S)
        if promotes and self.rng.random() >= FENCED:
            self._promote()                 # amid all troubles
            self.pass_time(2.0)
            self._end_of_origin()
        elif promotes:
            self._fence()
            self._heal()
            self._follow()
            self._promote()
            self._stays_fenced()
        else:
            self._end_of_origin()
            self._heal()
            self._follow()
            self._promote()
        self._heal()
        self._until(lambda: self.replica.serving() is not None, "the promoted copy does not serve")
        self._until(self._settled, "the nodes of the promoted copy differ")
        self._judge_promotion()
        self.seen["compared"] += len(self.compared)

    # ---- what is compared

    def watch(self, world: RegionWorld, driver: Driver) -> None:
        """Compare each value of the node's chain of the origin's log from now on."""
        chain = driver.store.mirror_chain if world.replica else driver.chain
        extend, begin_at = chain.extend, chain.begin_at

        def extended(index: int, entry: bytes, replies: list[Any]) -> None:
            extend(index, entry, replies)
            self._note(world, chain)

        def begun(index: int, value: bytes) -> None:
            begin_at(index, value)
            self._note(world, chain)

        chain.extend = extended             # type: ignore[method-assign]
        chain.begin_at = begun              # type: ignore[method-assign]

    def _note(self, world: RegionWorld, chain: Chain) -> None:
        index, value = chain.index, chain.value
        if world.replica:
            if self.hashes.get(index) != value:
                raise Violation(f"the copy has another hash than the origin at entry {index}")
            self.compared.add(index)
        elif self.hashes.setdefault(index, value) != value:
            raise Violation(f"two nodes of the origin have other hashes at entry {index}")

    def _follow(self) -> None:
        """Wait until all nodes of the replica have what is committed at the origin now, whose clients go on."""
        newest = max(self.hashes)
        self._until(lambda: all(
            node.running and (node.machine.mirrored or 0) >= newest for node in self.replica.nodes.values()
        ), f"the copy does not have entry {newest}")

    def _settled(self) -> bool:
        nodes = list(self.replica.nodes.values())
        if not all(node.running and node.voter for node in nodes):
            return False
        drivers = [node.up for node in nodes]
        return len({d.replica.applied_index for d in drivers} | {d.journal.last_index for d in drivers}) == 1

    # ---- what operators do

    def _ask(self, world: World, operation: Operation) -> Outcome:
        """Let the leader execute an operator's command; asked again until it has an answer."""
        found: list[Outcome] = []

        def done() -> bool:
            if found and found[-1].state == "applied":
                return True
            if not found or found[-1].state != "open":
                leading = [node for node in world.nodes.values() if node.leads()]
                if leading:
                    found.append(world.command(operation))
                    leading[0].ask(found[-1])
            return False
        self._until(done, f"{operation} is not executed", help_to=world)
        return found[-1]

    def _fence(self) -> None:
        self.fenced = self._ask(self.origin, Fence("0011223344556677"))
        if self.fenced.reply != Accepted():
            raise Violation(f"the fence was answered {self.fenced.reply}")
        self.seen["fences"] += 1

    def _promote(self) -> None:
        if not any(node.machine.mirrored for node in self.replica.nodes.values() if node.running):
            self._heal()
            self._until(lambda: any(node.machine.mirrored for node in self.replica.nodes.values()), "nothing comes")
        self.promoted = self._ask(self.replica, Promote(GRACE_MS))
        self.seen["promotions"] += 1

    def note_promotion(self, node: SimNode, index: int) -> None:
        """Note the jobs of a node that has just executed the promotion: later, some of them end by time.

        Raises PageLost.
        """
        self.taken_over.append((node.name, index, jobs_of(node.machine)))

    def _judge_promotion(self) -> None:
        """Compare the promoted copies with a machine that has executed the origin's log up to that entry."""
        if not self.taken_over:
            raise Violation("no node has executed the promotion")
        promoted = self.taken_over[0][1]
        prefix = Machine()
        for index, past in sorted(self.origin.checks.history.items()):
            if index <= promoted:
                prefix.apply(index, past.now_ms, past.seed, past.operations)
        jobs = jobs_of(prefix)
        for name, index, found in self.taken_over:
            if index != promoted:
                raise Violation(f"{name} was promoted at entry {index} of the origin, another node at {promoted}")
            if found != jobs:
                raise Violation(f"the promoted {name} has other jobs than the origin had after entry {promoted}")
        if self.fenced is not None and promoted < self._fenced_at():
            raise Violation("the copy of a fenced origin lacks some of its log")

    def _fenced_at(self) -> int:
        return next(
            index for index, past in self.origin.checks.history.items()
            if any(isinstance(one, Fence) for one in past.operations)
        )

    def _stays_fenced(self) -> None:
        for node in self.origin.nodes.values():
            if node.running:
                node.crash(power=True)
            node.start_again()
        end = self.events.now + CALM_S
        while self.events.now < end:
            self.pass_time(LOOK_S)
            if self.origin.serving() is not None:
                raise Violation("a fenced origin serves")

    def _end_of_origin(self) -> None:
        """Let the origin get well, and check its promises to its clients, as of a cluster without a copy."""
        Ending(self.origin).heal()
        self._until(lambda: self.origin.serving() is not None, "the origin does not serve")
        self.origin.checks.finish(self.origin.outcomes)

    def _heal(self) -> None:
        for world in (self.origin, self.replica):
            if not world.healed:
                Ending(world).heal()
        self.line.heal()

    def _until(self, holds: Any, what: str, *, help_to: World | None = None) -> None:
        end = self.events.now + SETTLED_S
        while not holds():
            if self.events.now > end:
                described = [self.origin.describe(), self.replica.describe(), self.line.describe()]
                raise Violation(f"{SETTLED_S:.0f} s later {what}: {described}")
            for world in (self.origin, self.replica):
                if world.healed or world is help_to:
                    for node in world.nodes.values():
                        node.start_again()
            self.pass_time(LOOK_S)

    def pass_time(self, seconds: float) -> None:
        """Let this many simulated seconds pass."""
        self.events.run_until(self.events.now + seconds)


def jobs_of(machine: Machine) -> Counter[tuple[str, bytes]]:
    """Return all unfinished and buried jobs, by queue and data."""
    found: Counter[tuple[str, bytes]] = Counter()
    for queue in machine.queue_names(""):
        for state in (JobState.READY, JobState.DELAYED, JobState.RUNNING, JobState.BURIED):
            found.update((queue, bytes_of(view.data)) for view in machine.peek_queue(queue, state, 100_000))
    return found


def _weights(draw: random.Random) -> dict[str, float]:
    return {kind: draw.choice((0.0, 1.0, 1.0, 3.0)) for kind in (*NETWORK, *SIDES, *MACHINES)}
