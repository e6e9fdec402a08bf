"""The history in QUEUE STAT, and the age of a queue's oldest READY job."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core import (
    Batch,
    Change,
    ConfigureQueue,
    Delete,
    DeleteQueue,
    Done,
    Due,
    End,
    Get,
    How,
    JobState,
    JobTotals,
    Kick,
    Later,
    Machine,
    Move,
    Order,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    QueueHistory,
    Return,
    Selector,
    Then,
    Tick,
)
from sockpqd.core.store.job import Job
from sockpqd.core.store.ready import ReadyJobs
from tests.core.helpers.counted import Counted, counted
from tests.core.helpers.logs import ask, restored, run, snapshot_of

NOTHING = QueueHistory(0, 0, 0, 0, 0, 0, 0, 0)


def past(machine: Machine, queue: str = "q") -> tuple[int, ...]:
    """put, taken, done, later, expired, dead, expired_ttl."""
    found = machine.history(queue, 0)
    return (found.put, found.taken, found.done, found.later, found.expired, found.dead, found.expired_ttl)


def age_ms(machine: Machine, queue: str = "q", now_ms: int | None = None) -> int:
    return machine.history(queue, machine.clock_ms if now_ms is None else now_ms).oldest_ms


# --- counters

def test_each_event_is_counted_where_it_happens() -> None:
    machine = Machine()
    run(
        machine, ConfigureQueue("q", QueueChange(tries=2), create=True),
        *[Put("q", 0, b"%d" % number) for number in range(6)]
    )
    run(machine, PutWith(Put("q", 0, b"fades"), ttl_ms=50), *[Get(("q",), 30, Then.LATER)] * 6)
    assert past(machine) == (7, 6, 0, 0, 0, 0, 0)
    run(machine, Done(1), Later(2), End(3, How.BURY), Move(4, "r"), Return(5), Done(99))
    assert past(machine) == (7, 6, 2, 1, 0, 1, 0)
    assert (past(machine, "r"), past(machine, "q_dead")) == ((1, 0, 0, 0, 0, 0, 0), (0,) * 7)
    run(machine, Tick(), now_ms=100)
    assert past(machine) == (7, 6, 2, 1, 1, 1, 1)
    run(machine, Kick("q", 1), now_ms=100)
    assert past(machine)[0] == 8
    # The second attempt of the job that went back is its last one.
    run(machine, *[Get(("q",), 30, Then.DONE)] * 3, now_ms=100)
    run(machine, Tick(), now_ms=200)
    assert past(machine) == (8, 9, 5, 1, 4, 1, 1)


def test_a_queue_with_settings_keeps_its_past_and_one_without_begins_anew() -> None:
    machine = Machine()
    run(machine, ConfigureQueue("kept", QueueChange(), create=True))
    for queue in ("kept", "q"):
        for number in (1, 2):
            run(machine, Put(queue, 0, b""), Get((queue,)))
            run(machine, Done(machine.next_id - 1))
            assert past(machine, queue) == ((number, number, number) if queue == "kept" else (0, 0, 0)) + (0,) * 4
    copy = restored(snapshot_of(machine))
    assert past(copy, "kept") == past(machine, "kept")
    run(machine, ConfigureQueue("kept", QueueChange(limit=3)))
    assert past(machine, "kept")[0] == 2
    run(machine, DeleteQueue("kept", False), Put("kept", 0, b""))
    assert past(machine, "kept")[0] == 1
    run(machine, ConfigureQueue("kept", QueueChange(limit=3)))      # it is the same queue, now with settings
    assert past(machine, "kept")[0] == 1


def test_what_is_taken_back_was_not_counted() -> None:
    machine = Machine()
    run(
        machine, ConfigureQueue("s", QueueChange(tries=1), create=True), *[Put(queue, 0, b"") for queue in "qsqs"],
        *[Get(None)] * 4
    )
    before = {queue: past(machine, queue) for queue in ("q", "s", "s_dead", "new")}
    state = snapshot_of(machine)
    steps = (Done(1), Put("new", 0, b""), Later(2), Move(3, "s"), End(4, How.BURY), Put("q", 0, b""), Put("s", 0, b""))
    ask(machine, Batch((*steps, Done(99)), atomic=True))
    assert {queue: past(machine, queue) for queue in before} == before
    run(machine, Batch(steps, atomic=True))
    assert sum(past(machine, "q")) + sum(past(machine, "s")) > sum(map(sum, before.values()))
    assert snapshot_of(machine) != state


def test_a_queue_that_ends_in_a_batch_that_is_taken_back_has_its_past() -> None:
    machine = Machine()
    run(machine, Put("q", 0, b""), Get(("q",)))
    run(machine, Batch((Done(1), Put("q", 0, b""), Done(99)), atomic=True))
    assert past(machine) == (1, 1, 0, 0, 0, 0, 0)
    assert machine.total("q") == JobTotals(1, 0, 0, 1)


@pytest.mark.parametrize("step", [Put("r", 0, b""), PutWith(Put("r", 0, b""), Due(50)), Move(1, "r")])
def test_what_came_in_a_batch_that_is_taken_back_was_not_counted(step: Put | PutWith | Move) -> None:
    machine = Machine()
    run(machine, Put("q", 0, b""), Get(("q",)), Put("r", 0, b""))
    run(machine, Batch((step, Done(99)), atomic=True))
    assert (past(machine)[0], past(machine, "r")[0]) == (1, 1)


@pytest.mark.parametrize("when", [None, Due(50)])
def test_so_has_one_that_ends_by_the_removal_of_a_waiting_job(when: Due | None) -> None:
    machine = Machine()
    run(machine, PutWith(Put("q", 0, b""), when, key="k"))
    run(machine, Batch((Delete(Selector(0, "q", "k")), Done(99)), atomic=True))
    assert past(machine) == (1, 0, 0, 0, 0, 0, 0)
    run(machine, Batch((Delete(Selector(0, "q", "k")), Put("q", 0, b""), Done(99)), atomic=True))
    assert past(machine) == (1, 0, 0, 0, 0, 0, 0)


def test_a_configured_queue_is_there_without_a_job() -> None:
    machine = Machine()
    run(
        machine, ConfigureQueue("q", QueueChange(), create=True), ConfigureQueue("p", QueueChange(), create=True),
        Put("p", 0, b""), Put("r", 0, b""),
    )
    assert machine.total("q") == JobTotals(1, 0, 0, 0)
    assert machine.total(None) == JobTotals(3, 2, 2, 0)
    assert machine.total("none") == JobTotals(0, 0, 0, 0)
    run(machine, Get(("p",)), Done(1), DeleteQueue("q", False))
    assert machine.total(None) == JobTotals(2, 1, 1, 0)
    assert restored(snapshot_of(machine)).total(None) == JobTotals(2, 1, 1, 0)
    assert ask(machine, Get(None), Get(None))[1] == ask(Machine(), Get(None), Put("r", 0, b""), Get(None), Get(None))[3]


# --- age

def test_the_age_is_that_of_the_place() -> None:
    machine = Machine()
    run(machine, Put("q", 5, b"a"), Put("q", 0, b"b"), now_ms=1000)
    run(machine, Put("q", 9, b"c"), now_ms=3000)
    assert age_ms(machine, now_ms=4000) == 3000
    assert age_ms(machine, now_ms=500) == 0             # another clock
    run(machine, *[Get(("q",))] * 3, now_ms=5000)       # c, a, b
    assert age_ms(machine) == 0
    run(machine, Later(1), now_ms=6000)
    assert age_ms(machine, now_ms=8000) == 2000         # a new place
    run(machine, End(2, How.LATER, first=True), now_ms=9000)
    assert age_ms(machine, now_ms=9500) == 8500         # its old one
    run(machine, Change(Selector(0, "q", "none"), 3), Get(("q",)), now_ms=9500)
    run(machine, Get(("q",)), now_ms=9500)
    run(machine, Return(3), now_ms=10_000)
    assert age_ms(machine) == 9000


def test_a_job_counts_from_its_activation() -> None:
    machine = Machine()
    run(machine, PutWith(Put("q", 0, b""), Due(5000), key="k"), PutWith(Put("q", 0, b""), Due(90_000), key="l"))
    run(machine, Tick(), now_ms=6000)
    assert age_ms(machine, now_ms=8000) == 2000
    run(machine, Change(Selector(0, "q", "l"), when=Due()), now_ms=7000)
    run(machine, Get(("q",)), now_ms=7000)
    assert age_ms(machine, now_ms=8000) == 1000


@pytest.mark.parametrize("change", [QueueChange(order=Order.TIME), QueueChange(item_limit=1), QueueChange()])
def test_the_oldest_is_found_whatever_the_order(change: QueueChange) -> None:
    random = Random(3)
    machine = Machine()
    run(machine, ConfigureQueue("q", change))
    placed: dict[bytes, int] = {}
    for step in range(600):
        now_ms = 1000 * step
        data = b"%d" % step
        put = Put("q", random.randrange(-3, 3), data, random.choice([None, "x", "y"]))
        at = Due(0, random.randrange(now_ms)) if step and random.random() < 0.5 else None
        run(machine, PutWith(put, at), now_ms=now_ms)
        placed[data] = now_ms
        if random.random() < 0.6:
            (handed,) = ask(machine, Get(("q",)), now_ms=now_ms)
            number = getattr(handed, "id", 0)
            kind = random.choice([Done, Later, Return])
            ask(machine, kind(number), now_ms=now_ms)
            if kind is Later and number:
                placed[handed.data] = now_ms      # type: ignore[union-attr]
        ready = [job.data for job in machine.peek_queue("q", JobState.READY, 10_000)]
        assert age_ms(machine) == max((now_ms - placed[data] for data in ready), default=0)
        if step % 100 == 50:
            order = random.choice(list(Order))
            run(machine, ConfigureQueue("q", QueueChange(order=order, item_limit=random.randrange(2))), now_ms=now_ms)
        if step % 150 == 0:
            machine = restored(snapshot_of(machine))
    run(machine, PurgeQueue("q", Purged.ALL), now_ms=1)
    assert age_ms(machine) == 0


@pytest.mark.parametrize("priorities", [1, 3, 150, 100_000])
def test_the_oldest_of_many_is_found_without_a_search(priorities: int) -> None:
    random = Random(4)
    jobs = ReadyJobs()
    there: dict[int, Job] = {}
    for seq in range(20_000):
        there[seq] = counted(random.randrange(priorities), seq)
        jobs.add(there[seq])
    looked = 0
    for _ in range(300):
        job = there.pop(random.choice(list(there)))
        jobs.remove(job)
        taken = jobs.take_first()
        del there[taken.seq]
        Counted.compared = 0
        assert jobs.oldest_seq() == min(there)
        looked += Counted.compared
        back = random.choice([job, taken])      # to its old place
        jobs.add(back)
        there[back.seq] = back
        assert jobs.oldest_seq() == min(there)
    assert looked == 0              # the first of each of a few runs, or of an index: no job is compared with another


def test_the_oldest_is_right_while_runs_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.store.ready.UNSPLIT_JOBS_MAX", 3)
    monkeypatch.setattr("sockpqd.core.store.ready.SCANNED_RUNS_MAX", 4)
    for seed in range(20):
        random = Random(seed)
        jobs = ReadyJobs()
        there: list[Job] = []
        for step in range(1000):
            if random.random() < (0.6 if step // 200 % 2 == 0 else 0.4):
                there.append(counted(random.randrange(12), step))
                jobs.add(there[-1])
            elif there:
                there.sort(key=lambda job: (job.rank, job.seq))
                if random.random() < 0.5:
                    assert jobs.take_first() is there.pop(0)
                else:
                    jobs.remove(there.pop(random.randrange(len(there))))
            if there:
                assert jobs.oldest_seq() == min(job.seq for job in there)
