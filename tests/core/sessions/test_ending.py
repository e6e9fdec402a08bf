"""A session ends with more bound jobs than one entry may put back: those that stand first come back first."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from sockpqd.core import (
    Batch,
    Change,
    Done,
    End,
    Get,
    GetWith,
    How,
    JobState,
    Lead,
    Machine,
    OpenSession,
    Put,
    Selector,
    Tick,
)
from sockpqd.core.rules import expire
from sockpqd.core.store.job import RunningJob
from tests.core.helpers.logs import MEMBERS, LogEntry, ask, restored, run, snapshot_of

JOBS = 4500


@pytest.fixture
def machine() -> Machine:
    """Return a machine with a session that has all jobs, of five priorities."""
    machine, random = Machine(), Random(1)
    run(machine, Lead("n1", 1, MEMBERS, b"sixteen bytes id", 0), OpenSession(1, 1000))
    ask(machine, *[Put("q", random.randrange(5), b"%d" % number) for number in range(JOBS)])
    while machine.ready("q"):
        ask(machine, GetWith(Get(("q",), session=1), 1000))
    assert len(machine.taken(1)) == JOBS
    return machine


def entries(machine: Machine) -> Iterator[LogEntry]:
    """Ticks until the session is gone; meanwhile others finish some of its jobs, or change them."""
    random, now_ms = Random(2), 5000
    while machine.session_count:
        yield LogEntry(now_ms, 1, [Tick()])
        now_ms += 20
        behind = sorted(machine.running(), key=lambda job: (-job.priority, job.seq))[2000:]     # for two entries yet
        left = [job.id for job in behind]
        if left:
            one, other, third = (random.choice(left) for _ in range(3))
            yield LogEntry(now_ms, 1, [
                Batch((Done(one), Done(other), Done(10**6)), True), End(third, How.DONE, last=True),
                Change(Selector(id=random.choice(left)), priority=random.randrange(10)),
            ])
            now_ms += 20


def test_a_node_that_was_restarted_meanwhile_puts_the_same_back(machine: Machine) -> None:
    for entry in entries(machine):
        other = restored(snapshot_of(machine))
        index = machine.index + 1
        assert other.apply(index, *entry).replies == machine.apply(index, *entry).replies
        assert snapshot_of(other) == snapshot_of(machine)


def test_the_first_places_are_back_first(machine: Machine) -> None:
    places = sorted((-job.priority, job.seq) for job in machine.running())
    run(machine, Tick(), now_ms=5000)
    back = [(-job.priority, job.seq) for job in machine.peek_queue("q", JobState.READY, JOBS)]
    assert len({rank for rank, _ in back}) == 2
    assert [rank for rank, _ in back] == [rank for rank, _ in places[:len(back)]]


def test_the_jobs_are_not_looked_at_in_each_entry(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    place = expire._place

    def counted(job: RunningJob) -> tuple[int, int, int]:
        nonlocal looks
        looks += 1
        return place(job)
    monkeypatch.setattr(expire, "_place", counted)
    for number in range(100):
        run(machine, Tick(), now_ms=5000 + 20 * number)
    assert not machine.session_count
    assert looks == JOBS
