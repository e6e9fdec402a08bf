"""Limits and rates of groups hold exactly, by replicated time, over random hours with failovers (spec/fair 7)."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core import (
    ConfigureGroup,
    ConfigureQueue,
    End,
    Feedback,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    Machine,
    Operation,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Sched,
)
from sockpqd.core.fair import first_jobs
from tests.core.helpers.logs import restored, snapshot_of
from tests.core.helpers.rankings import RANKING_NAMES, RANKINGS

QUEUES, GROUPS = ("q", "r"), ("a", "b", "q")
LIMIT, GROUP_LIMIT, RATE, GROUP_RATE, PER_MS = 3, 2, 9, 5, 60_000
ENTRIES, FAILOVERS = 600, 20


def operation(random: Random, running: list[int]) -> Operation:
    """Return a put, a hand-out, or the end of one."""
    queue, item = random.choice(QUEUES), random.choice((None, "x", "y"))
    draw = random.random()
    if draw < 0.4:
        return PutWith(Put(queue, random.choice((0, 0, 1)), b"", item), group=random.choice(GROUPS))
    if draw < 0.75 or not running:
        asked = random.choice((None, (queue,)))
        get, policy = Get(asked, random.choice((None, 30_000))), random.choice((None, Policy.FAIR))
        return GetWith(get, random.choice((1, 4)), policy, meta=True)
    feedback = random.choice((None, None, Feedback.SLEEP))
    return End(random.choice(running), random.choice((How.DONE, How.LATER)), feedback=feedback, sleep_ms=700)


@pytest.mark.parametrize(("few", "wide"), RANKINGS, ids=RANKING_NAMES)
@pytest.mark.parametrize("seed", range(8))
def test_no_group_exceeds_its_limits_and_rates(seed: int, few: int, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_jobs, "FEW", few)
    monkeypatch.setattr(first_jobs, "WIDE", wide)
    assert_law(seed)


def assert_law(seed: int) -> None:
    """Assert that never too many jobs run, and never too many are handed out in a period."""
    random, machine, now_ms = Random(seed), Machine(), 1_000_000
    change = QueueChange(group_limit=GROUP_LIMIT, group_rate=GROUP_RATE, group_per_ms=PER_MS, item_limit=1)
    configured: list[Operation] = [
        ConfigureQueue("q", QueueChange(sched=Sched.FAIR), create=True), ConfigureQueue("q", change),
    ]
    configured += [ConfigureQueue("r", QueueChange(sched=Sched.GROUPS), create=True), ConfigureQueue("r", change)]
    configured += [ConfigureGroup(group, LIMIT, RATE, PER_MS) for group in GROUPS]
    machine.apply(1, now_ms, 0, configured)
    given: list[tuple[int, str, str]] = []
    for _ in range(ENTRIES):
        now_ms += random.choice((0, 0, 10, 3_000, 20_000))
        if random.random() < FAILOVERS / ENTRIES:
            machine = restored(snapshot_of(machine))
        entry = [operation(random, [job.id for job in machine.running()]) for _ in range(3)]
        replies = machine.apply(machine.index + 1, now_ms, random.getrandbits(64), entry).replies
        for reply in replies:
            jobs = reply.jobs if isinstance(reply, HandedMany) else (reply,) if isinstance(reply, Handed) else ()
            given += [(now_ms, job.queue, job.meta.group or job.queue) for job in jobs if job.meta]
        for group in GROUPS:
            running = [job.queue for job in machine.running() if _group(machine, job.id) == group]
            assert len(running) <= LIMIT
            assert all(running.count(queue) <= GROUP_LIMIT for queue in QUEUES)
    assert len(given) > 30
    for group in GROUPS:
        assert_rate([at_ms for at_ms, _, name in given if name == group], RATE)
        for queue in QUEUES:
            assert_rate([at_ms for at_ms, name, of in given if (name, of) == (queue, group)], GROUP_RATE)


def _group(machine: Machine, number: int) -> str:
    """Return the group of a running job."""
    (job,) = [job for job in machine.running() if job.id == number]
    return (None if job.extras is None else job.extras.group) or job.queue


def assert_rate(times_ms: list[int], most: int) -> None:
    """Assert that one more than the rate took longer than the period."""
    assert all(after - before >= PER_MS for before, after in zip(times_ms, times_ms[most:], strict=False))
