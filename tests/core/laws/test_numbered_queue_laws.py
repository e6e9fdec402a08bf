"""The law of NUMBERED: jobs have numbers by which they are found, and all else is as it is without the setting."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from sockpqd.core import (
    Batch,
    Change,
    ConfigureQueue,
    Delete,
    Done,
    Due,
    End,
    Get,
    GetWith,
    Handed,
    How,
    JobState,
    JobView,
    Kick,
    Later,
    Machine,
    Move,
    Number,
    OnDup,
    Operation,
    Order,
    Place,
    Put,
    PutWith,
    QueueChange,
    Return,
    Selector,
    Tick,
    ToQueues,
)

QUEUES = ("a", "b")
STATES = (JobState.READY, JobState.DELAYED, JobState.RUNNING, JobState.DEAD, JobState.BURIED)


def operation(random: Random, ids: list[int], seqs: list[int]) -> Operation:
    """Return an operation that names no job by its number."""
    queue, id_ = random.choice(QUEUES), random.choice([*ids, 0])
    when = random.choice([None, None, Due(random.choice([1, 40, 400]))])
    put = Put(queue, random.choice([0, 0, 7]), random.randbytes(5), random.choice([None, None, "x"]))
    if random.random() < 0.4:
        return random.choice([put, PutWith(put, when=when), PutWith(put, when=when, every_ms=90), PutWith(
            put, when=when, key=random.choice("kl"), on_dup=random.choice([*OnDup]), ttl_ms=random.choice([None, 300]),
        ), PutWith(put, after=("x",)), PutWith(put, targets=ToQueues(QUEUES))])
    if random.random() < 0.4:
        return GetWith(Get(random.choice([None, (queue,)]), random.choice([None, 40])), random.choice([1, 3]))
    place = Place(queue, random.choice([*seqs, 0]))
    ones: list[Any] = [
        Done(id_), Later(id_), Later(id_), End(id_, How.LATER, when, first=True), End(id_, How.LATER, when),
        End(id_, How.LATER, yielded=True), Move(id_, queue), Move(id_, random.choice(QUEUES), when=when),
        End(id_, How.BURY), End(id_, How.BURY, here=True), End(id_, How.DONE, last=True), Delete(place),
        Change(place, when=when), Change(Selector(queue, "k"), when=Due(0)), Kick(queue, 2), Kick(queue, 2, here=True),
    ]
    if random.random() < 0.2:
        return Batch((*random.choices(ones, k=3), Done(random.choice([id_, 0]))), True)
    return random.choice([*ones, Return(id_), Tick()])


def machine_with(numbered: bool) -> Machine:
    machine = Machine()
    change = QueueChange(tries=4, backoff_ms=20, backoff_max_ms=80, numbered=numbered)
    machine.apply(1, 1_700_000_000_000, 0, [
        ConfigureQueue("a", change), ConfigureQueue("b", replace(change, order=Order.TIME)),
    ])
    return machine


def seen(machine: Machine) -> list[JobView]:
    """Return all jobs, by queues and states."""
    return [job for queue in QUEUES for state in STATES for job in machine.peek_queue(queue, state, 10_000)]


@pytest.mark.parametrize("seed", range(6))
def test_jobs_have_numbers_and_all_else_is_as_without(seed: int) -> None:
    random = Random(seed)
    numbered, plain = machine_with(True), machine_with(False)
    ids: list[int] = []
    seqs: list[int] = []
    now_ms = 1_700_000_000_000
    known: dict[int | None, object] = {}
    moved = 0
    for index in range(2, 500):
        now_ms += random.choice([0, 1, 20, 60])
        operations = [operation(random, ids, seqs) for _ in range(random.randrange(1, 6))]
        bits = random.getrandbits(64)
        replies = numbered.apply(index, now_ms, bits, operations).replies
        assert replies == plain.apply(index, now_ms, bits, operations).replies
        ids += [job.id for reply in replies for job in getattr(reply, "jobs", [reply]) if isinstance(job, Handed)]
        ids, jobs = ids[-20:], seen(numbered)
        seqs = [job.seq for job in jobs]
        assert [without_number(job) for job in jobs] == seen(plain)
        numbers = [job.number for job in jobs if job.number is not None]
        assert len({*numbers}) == len(jobs)
        new = {job.data for job in jobs if job.number not in known}
        assert new.isdisjoint(known.values())       # each keeps its number
        known.update((job.number, job.data) for job in jobs)
        assert [numbered.peek(Number(number)) for number in numbers] == [
            job if job.state is not JobState.DEAD else replace(job, state=JobState.READY) for job in jobs]
        moved += sum(job.number != job.seq for job in jobs)
    assert moved > 500


def without_number(job: JobView) -> JobView:
    return replace(job, number=None, counts=None, created_ms=0, life=None)
