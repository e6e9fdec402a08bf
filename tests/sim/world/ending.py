"""The end of a run: faults stop, the cluster must get well, serve and drain, and all promises are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sockpqd.core import (
    Change,
    Configure,
    DeleteGroup,
    Done,
    Due,
    End,
    Get,
    HoldItem,
    How,
    Kick,
    Operation,
    PauseQueue,
    Put,
    PutWith,
    RunningJob,
    Selector,
    Stored,
    SwitchService,
)
from tests.sim.clients.outcomes import Outcome
from tests.sim.faults.operators import install
from tests.sim.world.digest_codes import Kind
from tests.sim.world.plan import NEW_LEVEL, OLD_LEVEL
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.world.node import SimNode
    from tests.sim.world.world import World

LIVENESS_S = 30.0               # all must be well within so long
LOOK_S = 0.05
FAR_MS = 300                    # what becomes active later than that is called forward, if it has a key
SOON_MS = 400                   # the drain waits so long for the end of a session
SLEEPERS = "sleepers"           # a queue that no client knows
SLEEPS_MS = (40,)
LATE_S = 0.1
CALM_S = 1.5                    # removed nodes that run have so long to disturb the others
STRANGERS_RUN = 0.5             # the chance that a removed node that is down is still started


class Ending:
    """The end of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._end = 0.0
        self._asked: list[Outcome] = []
        self._switch: Outcome | None = None

    def run(self) -> None:
        """Run the ending. Raises Violation."""
        world = self._world
        self.heal()
        self._end = world.events.now + LIVENESS_S
        self._until(self._well, "is not whole and serving", self._help)
        self._until(lambda: all(client.content for client in world.clients), "does not answer", self._help)
        if world.plan.extended:
            self._until(self._has_room, "finds no room", lambda: None)
            self._wake_in_time()
        self._until(lambda: self._drained() and self._well(), "does not drain", self._drain)
        if any(node not in world.members for node in world.present):
            self._stay_calm()
        for node in world.members:
            state = node.state()
            if state is not None:
                world.checks.state(node.name, node.machine.index, state)
        world.trace.seen["levels raised"] += world.plan.upgraded and world.level > OLD_LEVEL
        world.checks.finish(world.outcomes)
        world.trace.note(Kind.WELL, "all is well")

    def heal(self) -> None:
        """End all faults: the network is repaired, and all members run."""
        world = self._world
        world.trace.note(Kind.FAULTS_STOP, "faults stop")
        world.healed = world.clients_stopped = True
        world.network.repair()
        members = world.members
        for node in world.nodes.values():
            ran = node.running      # a removed one, too, which the others may still need until they know of it
            install(node, at_least=NEW_LEVEL)       # clients wait for what the older release does not know
            node.disk.repair()
            node.clock.wall_offset_ms = 0
            node.resume()
            if node.running:
                node.switch(online=True)
            elif ran or node in members or (node.name in world.strangers and world.rng.random() < STRANGERS_RUN):
                node.start_again()

    def _until(self, holds: Callable[[], bool], what: str, meanwhile: Callable[[], None]) -> None:
        world = self._world
        while not holds():
            if world.events.now > self._end:
                raise Violation(f"{LIVENESS_S:.0f} s after the last fault the cluster {what}: {world.describe()}")
            meanwhile()
            world.steps += world.events.run_until(world.events.now + LOOK_S)

    def _help(self) -> None:
        """Act as operators do: start members, even those that a late answer has made, and go online."""
        world = self._world
        for node in world.members:
            node.start_again()
        if world.checks.model.online or (self._switch is not None and self._switch.state == "open"):
            return
        for node in world.present:
            if node.leads():
                self._switch = world.command(SwitchService(True))
                node.ask(self._switch)
                return

    def _well(self) -> bool:
        """Return whether all added nodes have become voters, and one serves."""
        world = self._world
        return world.checks.model.learner is None and world.serving() in world.members and self._equal()

    def _equal(self) -> bool:
        members = self._world.members
        if not all(node.running and node.voter for node in members):
            return False
        drivers = [node.up for node in members]
        return len({d.replica.applied_index for d in drivers} | {d.journal.last_index for d in drivers}) == 1

    def _has_room(self) -> bool:
        """Return whether all nodes know that there is room again, which they check once a second only."""
        return not any(node.running and node.up.journal.segments.short for node in self._world.members)

    def _wake_in_time(self) -> None:
        """Check that a job that was put for later can be taken at its time, or hardly later."""
        world = self._world
        node, before = world.serving(), self._leadership()
        if node is None:
            return
        puts = [PutWith(Put(SLEEPERS, 0, b"%d ms" % delay_ms), Due(delay_ms)) for delay_ms in SLEEPS_MS]
        asked = [Outcome(operation, world.told) for operation in puts]
        world.outcomes += asked
        node.propose(list(asked))
        self._until(lambda: all(outcome.state != "open" for outcome in asked), "does not answer", lambda: None)
        told_at = world.events.now
        for awake, delay_ms in enumerate(SLEEPS_MS, start=1):
            slowly_s = delay_ms / 1000 * (1 + 2 * world.plan.drift)
            world.steps += world.events.run_until(max(told_at + slowly_s + LATE_S, world.events.now))
            if self._leadership() != before or any(outcome.reply != Stored() for outcome in asked):
                return
            if node.machine.ready(SLEEPERS) < awake:
                raise Violation(f"{LATE_S} s after its time a job that was put {delay_ms} ms before cannot be had")

    def _drained(self) -> bool:
        model = self._world.checks.model
        return not model.jobs and not model.buried

    def _drain(self) -> None:
        """Take and finish everything; ask again when all was answered."""
        self._help()
        world = self._world
        node = world.serving()
        if node is None or any(outcome.state == "open" for outcome in self._asked):
            return
        operations = [*self._open_queues(), *self._call_forward()]
        graves = {job.queue for job in world.checks.model.buried}
        operations += [Kick(queue, 1000, here=True, buried=True) for queue in sorted(graves)]
        operations += [HoldItem(item, None) for item in sorted(world.checks.model.holds)]
        operations += [Get(None) for job in world.checks.model.jobs if job.ready]
        operations += [self._finish(job) for job in node.machine.running() if not self._returns_soon(job.session)]
        self._asked = [Outcome(operation, world.told) for operation in operations]
        world.outcomes += self._asked
        node.propose(list(self._asked))

    def _open_queues(self) -> list[Operation]:
        """Open all queues, so that nothing holds back waiting jobs."""
        model = self._world.checks.model
        paused = [name for name, settings in model.queues.items() if settings.paused_in or settings.paused_out]
        operations: list[Operation] = [PauseQueue(name, False, False) for name in paused]
        operations += [DeleteGroup(group) for group in model.groups]
        return operations if model.settings.autocreate else [Configure(autocreate=True), *operations]

    def _call_forward(self) -> list[Operation]:
        """Bring forward jobs that are due much later."""
        model = self._world.checks.model
        return [
            Change(Selector(queue=job.queue, key=job.key), when=Due())
            for job in model.jobs if job.key is not None and (job.due_ms or 0) > model.clock_ms + FAR_MS
        ]

    def _finish(self, job: RunningJob) -> Operation:
        """Finish a job; a periodic one would come again."""
        extras = job.extras
        return Done(job.id) if extras is None or extras.every_ms is None else End(job.id, How.DONE, last=True)

    def _returns_soon(self, session: int | None) -> bool:
        """Return whether its session ends soon, so that no action is needed."""
        model = self._world.checks.model
        found = None if session is None else model.sessions.find(session)
        return found is not None and found.deadline_ms < model.clock_ms + SOON_MS

    def _stay_calm(self) -> None:
        """Check that removed nodes do not disturb the others."""
        world = self._world
        before = self._leadership()
        world.steps += world.events.run_until(world.events.now + CALM_S)
        if self._leadership() != before:
            raise Violation(f"a node that is no member has disturbed the others: {before} led, {world.describe()}")
        self._until(self._equal, "is not equal again", self._help)

    def _leadership(self) -> tuple[SimNode | None, int]:
        node = self._world.serving()
        return node, 0 if node is None else node.up.replica.term
