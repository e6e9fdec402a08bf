"""Clients that put, get and finish jobs, find the leader by themselves and try again after a refusal."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from sockpqd.core import (
    CloneChunk,
    DeleteQueue,
    Done,
    Due,
    Get,
    Handed,
    HandedMany,
    Later,
    Operation,
    Place,
    Put,
    PutWith,
    Reply,
    Return,
    Then,
)
from tests.sim.clients.outcomes import Outcome
from tests.sim.clients.random_commands import PASSING, QUEUES, RandomCommands

if TYPE_CHECKING:
    from tests.sim.world.world import World

ITEMS = (None, None, "i", "j")
EXPIRES_MS = (None, 0, 30, 200, 1000, 5000)
BODY_BYTES = (0, 0, 10, 300, 3000)
BACKOFF_S = 0.15                # after a refusal
PATIENCE_S = 5.0                # then the client gives up its connection
HELD_MAX = 10
SLEEPS_MS = (100, 300, 700, 1500, 1501)      # for which plain jobs of deep queues are delayed
LOOKED = 0.1                    # so often somebody looks whether a queue is idle, as the leader's gateway does,
UNUSED_MS = (0, 40, 41, 300, 500)       # and finds that no client has waited for it for this long


class Client:
    """Sends one request after the other, or several at once; a refused one is sent again unchanged."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._rng = random.Random(world.rng.random())
        self.passing = world.plan.passing       # are there queues that do not last, and jobs in several?
        self.ended = world.plan.ended           # does it ask for numbers, headers, results and records?
        self.queues = (*QUEUES, PASSING) if self.passing else QUEUES
        self._sent = 0
        self._held: list[int] = []              # ids of jobs that this client works on
        self._wishes = RandomCommands(self, self._rng)
        self._waiting: list[Outcome] = []
        self._again: list[Operation] = []
        self._asked_at = 0.0
        self._target: str | None = None

    @property
    def content(self) -> bool:
        """True if it has no open question."""
        return True

    def act(self) -> None:
        """Send the next request, if the last one has ended."""
        world = self._world
        if world.clients_stopped:
            return
        now = world.events.now
        if self._waiting and now - self._asked_at < PATIENCE_S:
            world.events.after(world.plan.think_s, self.act)
            return
        self._waiting = []
        operations, self._again = self._again, []
        if not operations:
            for _ in range(self._rng.choice(world.plan.pipeline)):
                operations += self._request()
        self._asked_at = now
        self._waiting = [Outcome(operation, self._told) for operation in operations]
        world.outcomes += self._waiting
        world.nodes[self._choose()].propose(list(self._waiting))
        refused = self._target is None
        world.events.after(self._rng.expovariate(1 / (BACKOFF_S if refused else world.plan.think_s)), self.act)

    def _choose(self) -> str:
        """Choose the node that served last, one that serves, or any."""
        nodes = self._world.nodes
        if self._target is None:
            serving = [node.name for node in nodes.values() if node.serving]
            present = [node.name for node in self._world.present]
            names = serving if serving and self._rng.random() < 0.9 else present
            self._target = self._rng.choice(names)
        return self._target

    def _told(self, outcome: Outcome) -> None:
        self._world.told(outcome)
        if outcome not in self._waiting:
            return
        self._waiting.remove(outcome)
        if outcome.state == "applied":
            self._hold(outcome.reply)
            return
        self._target = None
        if outcome.state == "refused":
            self._again.append(outcome.operation)       # surely not executed: the same job may be sent again
        elif isinstance(outcome.operation, Done | Later):
            self._again.append(outcome.operation)       # harmless when executed twice

    def _hold(self, reply: Reply | None) -> None:
        jobs = reply.jobs if isinstance(reply, HandedMany) else (reply,) if isinstance(reply, Handed) else ()
        for job in jobs:
            self._held = [*self._held[-HELD_MAX:], job.id]

    # What it wants

    def _request(self) -> list[Operation]:
        rng = self._rng
        if self._world.plan.deep and rng.random() < self._world.plan.deep:
            put = Put(QUEUES[0], 0, self.body())
            if self._world.plan.asleep and rng.random() < self._world.plan.asleep:
                return [PutWith(put, Due(rng.choice(SLEEPS_MS)))]
            return [put]
        if self.passing and rng.random() < LOOKED:
            return [DeleteQueue(PASSING, force=True, idle_since_ms=max(0, self.clock_ms - rng.choice(UNUSED_MS)))]
        if self._world.plan.extended and rng.random() < self._world.plan.extended:
            return [self._wishes.draw()]
        draw = rng.random()
        if self._held and draw < 0.4:
            number = self._held.pop(rng.randrange(len(self._held)))
            return [rng.choice((Done, Done, Done, Later, Return))(number)]
        if draw < 0.65:
            return [self.put(new_item=rng.random() < 0.1)]
        if draw < 0.72:
            return [self.put(new_item=True), Get((rng.choice(QUEUES),), 1000, item_of_put=True)]
        if draw < 0.72 + self._world.plan.clones:
            return self._clone() or [self.put(new_item=False)]
        names = None if rng.random() < 0.2 else tuple(sorted(rng.sample(self.queues, rng.randrange(1, 3))))
        return [Get(names, rng.choice(EXPIRES_MS), rng.choice(sorted(Then)), rng.choice((None, None, None, "i")))]

    @property
    def clock_ms(self) -> int:
        """Return roughly the time of the replicated clock."""
        return self._world.checks.model.clock_ms

    def place(self) -> Place:
        """Return the place of a job that waits, if there is one."""
        waiting = [job for job in self._world.checks.model.jobs if job.id is None]
        job = self._rng.choice(waiting) if waiting else None
        return Place(QUEUES[0], 1) if job is None else Place(job.queue, job.seq)

    def queue_of_dead(self, queue: str) -> str:
        """Return a queue from which dead jobs come, if there is one; otherwise this one."""
        return min((job.origin for job in self._world.checks.model.jobs if job.origin and job.ready), default=queue)

    def number(self) -> int:
        """Return the number of a job that has one, if there is one."""
        model = self._world.checks.model
        numbered = [job.known_as for job in (*model.jobs, *model.buried) if job.known_as is not None]
        return self._rng.choice(numbered) if numbered else 1

    def ended_number(self) -> int:
        """Return the number of a record, if there is one."""
        records = self._world.checks.model.records
        return (self._rng.choice(records).view.number or 0) if records else 1

    def held(self) -> int:
        """Return a job that it works on, if there is one."""
        return self._rng.choice(self._held) if self._held else 1

    def release(self) -> int:
        """Return a job that it works on, and stop working on it."""
        return self._held.pop(self._rng.randrange(len(self._held))) if self._held else 1

    def body(self) -> bytes:
        """Return data that no other job has."""
        self._sent += 1
        return b"%s-%d" % (self._name.encode(), self._sent) + bytes(self._rng.choice(BODY_BYTES))

    def put(self, *, new_item: bool) -> Put:
        """Return a PUT of the original protocol."""
        rng = self._rng
        body = self.body()
        item = None if new_item else rng.choice(ITEMS)
        return Put(rng.choice(self.queues), rng.randrange(3), body, item, new_item)

    def _clone(self) -> list[Operation]:
        """SNAPSHOT the leader, and restore it a moment later."""
        world = self._world
        for node in world.nodes.values():
            if node.serving and node.machine.index == world.checks.model.index:
                state = node.state()
                if state is None:
                    continue
                data = b"".join(state)
                world.checks.cloned(data)
                world.trace.seen["clones"] += 1
                number, half = self._rng.getrandbits(32), len(data) // 2
                return [
                    CloneChunk(number, total_bytes=len(data)), CloneChunk(number, data[:half]),
                    CloneChunk(number, data[half:]),
                    CloneChunk(number, last=True),
                ]
        return []
