"""Jobs with numbers: found in every state and queue, at the same place for life, counted, with leases of their own."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable

import pytest
from msgspec import UNSET

from sockpqd.core import (
    Accepted,
    Batch,
    Change,
    ConfigureQueue,
    DataTooLarge,
    Delete,
    Done,
    Due,
    Empty,
    End,
    Finished,
    Get,
    GetWith,
    Handed,
    How,
    JobCounts,
    JobRunning,
    JobState,
    Kick,
    Later,
    Life,
    Machine,
    Move,
    NotFound,
    Number,
    OnDup,
    Operation,
    PauseQueue,
    Put,
    PutWith,
    QueueChange,
    QueueFull,
    QueuePaused,
    Reply,
    Return,
    Stored,
    StoredNumber,
    Tick,
    Touch,
)
from tests.core.helpers.logs import restored, snapshot_of

START_MS = 1_700_000_000_000


class Cluster:
    """A machine with a clock."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.now_ms = START_MS

    def do(self, *operations: Operation, after_ms: int = 0) -> list[Reply]:
        self.now_ms += after_ms
        return self.machine.apply(self.machine.index + 1, self.now_ms, 1, list(operations)).replies

    def put(self, data: bytes, **options: object) -> int:
        (reply,) = self.do(PutWith(Put("q", 0, data), **options, number=True))  # type: ignore[arg-type]
        assert isinstance(reply, StoredNumber)
        return reply.number

    def take(self, queue: str = "q") -> Handed:
        (reply,) = self.do(Get((queue,)))
        assert isinstance(reply, Handed)
        return reply

    def ready(self, queue: str = "q") -> list[bytes]:
        return [job.data for job in self.machine.peek_queue(queue, JobState.READY, 9)]

    def counts(self, number: int) -> JobCounts:
        job = self.machine.peek(Number(number))
        assert job is not None
        assert job.counts is not None
        return job.counts


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_numbers_rise(cluster: Cluster) -> None:
    numbers = [cluster.put(b"%d" % at) for at in range(3)]
    assert numbers == sorted({*numbers})


@pytest.mark.parametrize(("setting", "refusal"), [
    (ConfigureQueue("q", QueueChange(capacity=1)), QueueFull()),
    (ConfigureQueue("q", QueueChange(data_bytes_max=1)), DataTooLarge()),
    (PauseQueue("q", incoming=True, outgoing=False), QueuePaused()),
])
def test_its_queue_may_refuse_it(cluster: Cluster, setting: Operation, refusal: Reply) -> None:
    (first,) = cluster.do(PutWith(Put("q", 0, b"a"), number=True))
    assert isinstance(first, StoredNumber)
    assert cluster.do(setting, PutWith(Put("q", 0, b"bc"), number=True)) == [Accepted(), refusal]
    counts = cluster.machine.counts("q")
    assert counts is not None
    assert counts.ready == 1


def test_without_a_number_there_is_none(cluster: Cluster) -> None:
    assert cluster.do(PutWith(Put("q", 0, b"a"), lease_ms=60_000)) == [Stored()]
    (job,) = cluster.machine.peek_queue("q", JobState.READY, 1)
    assert job.number is None
    assert cluster.machine.peek(Number(job.seq)) is None


@pytest.mark.parametrize("back", [
    lambda job: [Later(job)], lambda job: [End(job, How.LATER, yielded=True)], lambda job: [Return(job)],
    lambda job: [Move(job, "q")], lambda job: [End(job, How.BURY), Kick("q", 1)],
])
def test_it_comes_back_to_its_old_place(cluster: Cluster, back: object) -> None:
    number = cluster.put(b"first")
    cluster.do(Put("q", 0, b"second"))
    cluster.do(*back(cluster.take().id), after_ms=5)  # type: ignore[operator]
    assert cluster.ready() == [b"first", b"second"]
    assert cluster.machine.peek(Number(number)) is not None


def test_after_its_time_it_stands_where_its_number_says(cluster: Cluster) -> None:
    number = cluster.put(b"first", when=Due(50))
    cluster.do(Put("q", 0, b"second"))
    cluster.do(Tick(), after_ms=100)
    assert cluster.ready() == [b"first", b"second"]
    cluster.do(End(cluster.take().id, How.LATER, Due(50)), after_ms=1)
    delayed = cluster.machine.peek(Number(number))
    assert delayed is not None
    assert delayed.state is JobState.DELAYED
    cluster.do(Tick(), after_ms=100)
    assert cluster.ready() == [b"first", b"second"]


def test_it_is_found_in_every_state_and_queue(cluster: Cluster) -> None:
    number = cluster.put(b"a", when=Due(50))

    def seen() -> tuple[str, JobState]:
        job = cluster.machine.peek(Number(number))
        assert job is not None
        assert job.number == number
        return job.queue, job.state
    assert seen() == ("q", JobState.DELAYED)
    cluster.do(Tick(), after_ms=100)
    assert seen() == ("q", JobState.READY)
    job = cluster.take().id
    assert seen() == ("q", JobState.RUNNING)
    cluster.do(Move(job, "r"))
    assert seen() == ("r", JobState.READY)
    cluster.do(End(cluster.take("r").id, How.BURY))
    assert seen() == ("r_dead", JobState.READY)
    cluster.do(Kick("r", 1))
    assert seen() == ("r", JobState.READY)
    assert cluster.do(Done(cluster.take("r").id)) == [Finished(True, False)]
    assert cluster.machine.peek(Number(number)) is None


@pytest.mark.parametrize("takes", [False, True])
def test_it_is_changed_and_deleted_even_while_it_runs(cluster: Cluster, takes: bool) -> None:
    number = cluster.put(b"a")
    if takes:
        cluster.take()
    cluster.do(Change(Number(number), priority=5, data=b"b"))
    job = cluster.machine.peek(Number(number))
    assert job is not None
    assert (job.priority, job.data) == (5, b"b")
    assert cluster.do(Delete(Number(number)), Get(("q",))) == [Finished(True, False), Empty(False)]
    assert cluster.do(Delete(Number(number)), Change(Number(number), 1)) == [NotFound(), NotFound()]


def test_it_can_be_deleted_unless_it_runs(cluster: Cluster) -> None:
    number = cluster.put(b"a")
    job = cluster.take().id
    assert cluster.do(Delete(Number(number), unless_running=True), Later(job)) == [JobRunning(), Accepted()]
    assert cluster.do(*[Delete(Number(number), unless_running=True)] * 2) == [Finished(True, False), NotFound()]


def test_a_replaced_job_keeps_its_number(cluster: Cluster) -> None:
    number = cluster.put(b"a", key="k")
    cluster.do(PutWith(Put("q", 3, b"b"), key="k", on_dup=OnDup.REPLACE))
    job = cluster.machine.peek(Number(number))
    assert job is not None
    assert (job.data, job.priority, job.number) == (b"b", 3, number)


def test_what_it_has_gone_through_is_counted(cluster: Cluster) -> None:
    number = cluster.put(b"a")
    cluster.do(Return(cluster.take().id))
    assert cluster.counts(number) == JobCounts()
    cluster.do(Later(cluster.take().id))
    cluster.do(Get(("q",), 100))
    cluster.do(Tick(), after_ms=200)
    cluster.do(End(cluster.take().id, How.BURY), Kick("q", 1))
    assert cluster.counts(number) == JobCounts(reserves=3, timeouts=1, releases=1, buries=1, kicks=1)


@pytest.mark.parametrize("buried", [False, True])
def test_the_ttl_of_a_job_taken_before_its_time_counts_from_its_hand_out(cluster: Cluster, *, buried: bool) -> None:
    """Also if the hand-out is undone, with which the job becomes READY."""
    number = cluster.put(b"a", when=None if buried else Due(60_000), ttl_ms=1000)
    if buried:
        cluster.do(End(cluster.take().id, How.BURY, here=True))
    (given,) = cluster.do(GetWith(Get(None), number=number))
    assert isinstance(given, Handed)
    cluster.do(Return(given.id), after_ms=500)
    assert restored(snapshot_of(cluster.machine)).total("q").jobs == 1
    cluster.do(Tick(), after_ms=400)
    assert cluster.machine.total("q").jobs == 1
    cluster.do(Tick(), after_ms=200)
    assert cluster.machine.total("q").jobs == 0


def test_a_job_that_goes_back_as_it_was_counts_as_released_by_nobody(cluster: Cluster) -> None:
    number = cluster.put(b"a")
    cluster.do(End(cluster.take().id, How.LATER, first=True))
    cluster.do(End((cluster.take().id,), How.LATER, first=True))
    cluster.do(End(cluster.take().id, How.LATER, first=True, yielded=True))
    assert cluster.counts(number) == JobCounts(reserves=3)
    cluster.do(End(cluster.take().id, How.LATER, priority=0, first=True))
    assert cluster.counts(number) == JobCounts(reserves=4, releases=1)


def test_it_remembers_when_it_was_handed_out(cluster: Cluster) -> None:
    def life() -> Life | None:
        job = cluster.machine.peek(Number(number))
        assert job is not None
        return job.life

    number = cluster.put(b"a")
    cluster.do(Return(cluster.take().id), after_ms=5)
    assert life() == Life(START_MS, None, None, 0)
    cluster.do(Get(("q",)), after_ms=5)
    assert life() == Life(START_MS, START_MS + 10, START_MS + 10, 1)
    (running,) = cluster.machine.running()
    cluster.do(Touch(running.id, 100), End(running.id, How.LATER, first=True), after_ms=5)
    assert life() == Life(START_MS, START_MS + 10, START_MS + 10, 1)
    cluster.do(Get(("q",), 10), after_ms=5)
    cluster.do(Tick(), after_ms=30)
    assert life() == Life(START_MS, START_MS + 10, START_MS + 20, 2)
    cluster.do(Return(cluster.take().id), after_ms=5)
    assert life() == Life(START_MS, START_MS + 10, START_MS + 20, 2)
    cluster.do(Get(("q",)), after_ms=5)
    cluster.do(End(cluster.machine.running()[0].id, How.BURY), after_ms=5)
    dead = Life(START_MS, START_MS + 10, START_MS + 60, 3, "q")
    assert life() == dead
    assert restored(snapshot_of(cluster.machine)).peek_queue("q", JobState.DEAD, 1)[0].life == dead
    cluster.do(Kick("q", 1))
    (given,) = cluster.do(GetWith(Get(("q",)), meta=True, life=True), after_ms=5)
    assert isinstance(given, Handed)
    assert given.life == life() == Life(START_MS, START_MS + 10, START_MS + 70, 4)
    restored_life = restored(snapshot_of(cluster.machine)).peek(Number(number))
    assert restored_life is not None
    assert restored_life.life == given.life
    cluster.do(Move(given.id, "q"), after_ms=5)
    cluster.do(End(cluster.take().id, How.BURY, here=True), PutWith(Put("q", 0, b"b")))
    assert life() == Life(START_MS, START_MS + 10, START_MS + 75, 5)


def test_a_job_without_a_number_has_no_life_to_show(cluster: Cluster) -> None:
    cluster.do(Put("q", 0, b"a"))
    (given,) = cluster.do(GetWith(Get(("q",)), meta=True, life=True))
    assert isinstance(given, Handed)
    assert given.life is UNSET
    assert [job.started_ms for job in cluster.machine.running()] == [0]


def test_a_replaced_job_keeps_its_life(cluster: Cluster) -> None:
    number = cluster.put(b"a", key="k")
    cluster.do(Later(cluster.take().id), PutWith(Put("q", 3, b"b"), key="k", on_dup=OnDup.REPLACE), after_ms=5)
    job = cluster.machine.peek(Number(number))
    assert job is not None
    assert job.life == Life(START_MS, START_MS, START_MS, 1)


def test_an_aborted_batch_undoes_the_end_of_a_hand_out(cluster: Cluster) -> None:
    number = cluster.put(b"a")
    running = cluster.take().id
    cluster.do(Batch((Later(running), Done(99)), atomic=True), after_ms=5)
    (job,) = cluster.machine.running()
    assert job.started_ms == START_MS
    view = cluster.machine.peek(Number(number))
    assert view is not None
    assert view.life == Life(START_MS, START_MS, START_MS, 1)


def test_an_aborted_batch_leaves_no_number(cluster: Cluster) -> None:
    number = cluster.put(b"a")
    numbered = PutWith(Put("q", 0, b"b"), number=True)
    cluster.do(Batch((numbered, Delete(Number(number)), Done(999)), atomic=True))
    assert cluster.ready() == [b"a"]
    assert cluster.machine.peek(Number(number)) is not None
    assert cluster.machine.peek(Number(number + 1)) is None


@pytest.mark.parametrize("many", [None, 1])
def test_a_job_has_a_lease_of_its_own(cluster: Cluster, many: int | None) -> None:
    def deadline(expire_ms: int | None = None) -> int | None:
        cluster.do(GetWith(Get(("q",), expire_ms), many))
        (job,) = cluster.machine.running()
        cluster.do(Later(job.id))
        return job.deadline_ms
    cluster.do(PutWith(Put("q", 0, b"a"), lease_ms=7_000))
    assert deadline() == START_MS + 7_000
    assert deadline(1_000) == START_MS + 1_000
    assert deadline(0) is None


def _traced(puts: Iterable[Operation]) -> int:
    machine = Machine()
    tracemalloc.start()
    for at, put in enumerate(puts, start=1):
        machine.apply(at, START_MS, 1, [put])
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used


def test_a_number_takes_at_most_300_bytes() -> None:
    jobs = 2000
    plain = _traced([Put("q", 0, b"x" * 100) for _ in range(jobs)])
    numbered = _traced([PutWith(Put("q", 0, b"x" * 100), number=True, lease_ms=60_000) for _ in range(jobs)])
    assert (numbered - plain) / jobs <= 300
