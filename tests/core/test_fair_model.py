"""A second model of fair shares, written from the rules alone (spec/fair 3), and random histories of both.

It knows a few queues, priorities, LIMIT and PAUSE; every step costs as much as there are jobs and groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

import pytest

from core import (
    Batch,
    ConfigureFair,
    ConfigureQueue,
    Done,
    DoneRan,
    Empty,
    Get,
    GetWith,
    Handed,
    LaterRan,
    LaterWith,
    Machine,
    Operation,
    PauseQueue,
    Policy,
    PutGrouped,
    QueueChange,
    ResumeQueue,
    Tick,
    Touch,
    TouchRan,
)
from core import Put as PlainPut
from tests.core.helpers.logs import restored, snapshot_of

SECOND = 1_000_000


@dataclass(eq=False)
class One:
    """A job."""

    queue: str
    group: str
    priority: int
    place: int
    id: int | None = None
    since_us: int = 0


@dataclass
class Group:
    """A group."""

    used: int = 0
    level: int = 0
    priority: int = 0
    turn: int = 0
    offered: bool = False
    idle_us: int | None = None


@dataclass
class Model:
    """Groups, levels and jobs."""

    now_us: int = 0
    thresholds: list[int] = field(default_factory=lambda: [0, 1, 10, 60, 300])
    cap: int = 30 * SECOND
    multiplier: int = 2
    keep_us: int = 600 * SECOND
    jobs: list[One] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    time: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(16), 0))
    least: dict[int, int] = field(default_factory=dict)
    selected: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(16), 0))
    paused: set[str] = field(default_factory=set)
    limits: dict[str, int] = field(default_factory=dict)
    turns: int = 0
    places: int = 0
    ids: int = 0

    def ready(self, group: str | None = None, queue: str | None = None) -> list[One]:
        """The READY jobs, the next one first."""
        return sorted(
            (one for one in self.jobs if one.id is None and group in (None, one.group) and queue in (None, one.queue)),
            key=lambda one: (-one.priority, one.place),
        )

    def is_open(self, queue: str) -> bool:
        """Whether it gives a job."""
        running = sum(one.id is not None and one.queue == queue for one in self.jobs)
        return queue not in self.paused and not 0 < self.limits.get(queue, 0) <= running

    def level0(self) -> int:
        """From this the targets follow."""
        used = {*range(len(self.thresholds))} | {one.level for one in self.groups.values()}
        return max(self.time[level] * self.multiplier**level for level in used)

    def offer(self, name: str) -> None:
        """The group takes its place."""
        group = self.groups[name]
        if not any(one.offered and one.level == group.level for one in self.groups.values()):
            self.time[group.level] = self.level0() // self.multiplier**group.level
        group.priority = max(group.priority, self.least.get(group.level, group.priority))
        self.turns += 1
        group.turn, group.offered = self.turns, True

    def settle(self) -> None:
        """After a step: who is offered, who is idle."""
        for name in sorted({one.group for one in self.jobs} | {*self.groups}):
            group = self.groups.setdefault(name, Group())
            ready = self.ready(name)
            if group.offered and not ready:
                group.offered = False
            elif not group.offered and any(one.queue not in self.paused for one in ready):
                self.offer(name)
            has = any(one.group == name for one in self.jobs)
            group.idle_us = None if has else self.now_us if group.idle_us is None else group.idle_us

    def charge(self, job: One, ran_us: int | None) -> None:
        """A hand-out has run for so long."""
        group = self.groups[job.group]
        q = self.now_us - job.since_us if ran_us is None else ran_us
        job.since_us = self.now_us
        group.used += q
        new = max(level for level, s in enumerate(self.thresholds) if s * SECOND <= group.used)
        old, rest, own = group.level, min(q, self.cap), q
        if new == old:
            self.time[old] += rest
            group.priority += q
            return
        for level in range(old, new):
            a = min((self.thresholds[level + 1] - self.thresholds[level]) * SECOND, rest)
            self.time[level] += a
            rest -= a
            own -= a
        self.time[new] += rest
        self.least.setdefault(new, group.used)
        group.priority = self.least[new] + own
        group.level = new
        if group.offered:
            group.offered = False
            self.offer(job.group)

    def choose(self, asked: tuple[str, ...] | None) -> One | None:
        """The next job by FAIR."""
        level0 = self.level0()

        def lag(level: int) -> tuple[Fraction, int]:
            time = self.time[level]
            ratio = Fraction(level0 // self.multiplier**level, time) if time else Fraction(0)
            return -ratio, level

        for level in sorted({one.level for one in self.groups.values() if one.offered}, key=lag):
            order = sorted(
                (one.priority, one.turn, name)
                for name, one in self.groups.items() if one.offered and one.level == level
            )
            for _, _, name in order:
                ready = self.ready(name)
                given = [one for one in ready if self.is_open(one.queue) and (asked is None or one.queue in asked)]
                if given:
                    group = self.groups[name]
                    group.priority = max(group.priority, self.least.get(level, group.priority))
                    self.least[level] = group.priority
                    self.selected[level] += 1
                    self.turns += 1
                    group.turn = self.turns
                    return given[0]
                if all(one.queue in self.paused for one in ready):
                    self.groups[name].offered = False
        return None

    def take(self, job: One) -> None:
        """It runs."""
        self.ids += 1
        job.id, job.since_us = self.ids, self.now_us
        self.settle()

    def end(self, number: int, ran_us: int | None, *, back: bool) -> None:
        """A hand-out ends."""
        job = next((one for one in self.jobs if one.id == number), None)
        if job is None:
            return
        self.charge(job, ran_us)
        job.id = None
        if back:
            self.places += 1
            job.place = self.places
        else:
            self.jobs.remove(job)
        self.settle()

    def forget(self) -> None:
        """At the beginning of an entry."""
        self.groups = {
            name: one for name, one in self.groups.items()
            if one.idle_us is None or one.idle_us + self.keep_us > self.now_us
        }


def step(random: Random, model: Model, machine: Machine) -> None:
    """One entry with one operation, to both; they must agree."""
    now_ms = model.now_us // 1000 + random.choice([0, 1, 300, 2500, 40_000])
    model.now_us = now_ms * 1000
    model.forget()
    queue, group = random.choice("qrs"), random.choice(["a", "b", "c", "q", "d"])
    ran_ms = random.choice([0, 5, 900, 1000, 7000, 700_000])
    number = random.choice([one.id for one in model.jobs if one.id] or [0])
    operation: Operation
    expected: One | None = None
    kind = random.random()
    if kind < 0.3:
        priority = random.choice([0, 0, 1])
        operation = PutGrouped(PlainPut(queue, priority, b""), group)
        if random.random() < 0.3:
            operation, group = PlainPut(queue, priority, b""), queue
        model.places += 1
        model.jobs.append(One(queue, group, priority, model.places))
        model.settle()
    elif kind < 0.6:
        asked = random.choice([None, None, ("q",), ("r", "s")])
        operation = GetWith(Get(asked), policy=Policy.FAIR)
        expected = model.choose(asked)
        if expected is not None:
            model.take(expected)
    elif kind < 0.7:
        operation = DoneRan(number, ran_ms) if random.random() < 0.7 else Done(number)
        model.end(number, ran_ms * 1000 if isinstance(operation, DoneRan) else None, back=False)
    elif kind < 0.82:
        operation = LaterRan(LaterWith(number), ran_ms)
        model.end(number, ran_ms * 1000, back=True)
    elif kind < 0.87:
        operation = TouchRan(Touch(number), ran_ms) if random.random() < 0.5 else Touch(number)
        for job in model.jobs:
            if job.id == number and number:
                model.charge(job, ran_ms * 1000 if isinstance(operation, TouchRan) else None)
    elif kind < 0.9:
        operation = PauseQueue(queue, False, True)
        model.paused.add(queue)
    elif kind < 0.94:
        operation = ResumeQueue(queue)
        model.paused.discard(queue)
        model.settle()
    elif kind < 0.96:
        limit = random.choice([0, 1, 2])
        operation = ConfigureQueue(queue, QueueChange(limit=limit))
        model.limits[queue] = limit
    elif kind < 0.97:
        model.multiplier, keep_s = random.choice([1, 2, 4]), random.choice([1, 600])
        model.keep_us = keep_s * SECOND
        operation = ConfigureFair(multiplier=model.multiplier, keep_ms=keep_s * 1000)
    elif kind < 0.98:
        operation = Batch((
            PutGrouped(PlainPut(queue, 5, b""), "new"), DoneRan(number, 9000), LaterRan(LaterWith(number), 1), Done(0),
        ), atomic=True)
    else:
        operation = Tick()
    (reply,) = machine.apply(machine.index + 1, now_ms, 0, [operation]).replies
    if isinstance(operation, GetWith):
        if expected is None:
            assert isinstance(reply, Empty)
        else:
            assert isinstance(reply, Handed)
            assert (reply.id, reply.queue, reply.priority) == (expected.id, expected.queue, expected.priority)
    assert_same(model, machine)


def assert_same(model: Model, machine: Machine) -> None:
    """Everything that can be read is the same."""
    for level in machine.fair_levels():
        offered = sum(one.offered and one.level == level.level for one in model.groups.values())
        assert (level.time_us, level.waiting, level.selected) == (
            model.time[level.level], offered, model.selected[level.level],
        )
    for name, group in model.groups.items():
        found = machine.fair_group(name)
        waiting = len(model.ready(name))
        running = sum(one.id is not None and one.group == name for one in model.jobs)
        assert found is not None
        assert (found.level, found.used_us, found.priority_us) == (group.level, group.used, group.priority)
        assert (found.waiting, found.running) == (waiting, running)


@pytest.mark.parametrize("seed", range(12))
def test_random_histories_of_both(seed: int) -> None:
    random, model, machine = Random(seed), Model(now_us=1_000_000_000), Machine()
    machine.apply(1, 1_000_000, 0, [ConfigureFair(cap_ms=30_000)])
    for number in range(250):
        step(random, model, machine)
        if number % 50 == 49:
            before = snapshot_of(machine)
            machine = restored(before)
            assert snapshot_of(machine) == before
