"""The end of a watched job is among the effects of its entry; the rest is in the laws, against the reference model."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Await,
    Batch,
    CloneChunk,
    DeleteQueue,
    Done,
    End,
    EndState,
    Get,
    How,
    JobAwaited,
    JobEnded,
    Later,
    Machine,
    NotFound,
    Number,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    Selector,
    StoredNumber,
)
from tests.core.helpers.logs import ask, run, snapshot_of
from tests.core.helpers.paging import MemoryStore, paged_machine, small_collections

KEYED = Selector(queue="q", key="k")


def put(key: str = "k") -> PutWith:
    return PutWith(Put("q", 0, b"x"), key=key)


@pytest.fixture(name="machine")
def fixture_machine() -> Machine:
    machine = Machine()
    run(machine, put())
    return machine


def watched(machine: Machine) -> int:
    found = machine.watch(KEYED)
    assert found is not None
    machine.keep_watch(found[0])
    return found[0]


def test_it_is_told_in_the_entry_of_the_question_already(machine: Machine) -> None:
    applied = run(machine, Await(KEYED), Get(("q",)), Done(1))
    job = applied.replies[0]
    assert isinstance(job, JobAwaited)
    assert applied.effects.outcomes == {job.job: JobEnded("q", EndState.DONE)}


def test_a_question_that_nobody_follows_up_is_forgotten_with_the_next_entry(machine: Machine) -> None:
    run(machine, Await(KEYED))
    assert machine.watched == 1
    applied = run(machine, Get(("q",)), Done(1))
    assert (machine.watched, applied.effects.outcomes) == (0, None)


def test_a_watch_lasts_until_it_is_given_up(machine: Machine) -> None:
    job = watched(machine)
    for _ in range(3):
        run(machine)
    machine.unwatch(job)
    assert machine.watched == 0
    watched(machine)
    machine.unwatch_all()
    assert machine.watched == 0


def test_a_job_without_a_number_is_the_same_one_at_each_of_its_places(machine: Machine) -> None:
    first = watched(machine)
    run(machine, Get(("q",)), Later(1))
    second = watched(machine)
    run(machine, Get(("q",)))
    third = watched(machine)
    assert (first != second, second == third, machine.watched) == (True, True, 1)
    end = JobEnded("q", EndState.DONE, b"4")
    assert run(machine, End(2, How.DONE, text=b"4")).effects.outcomes == {first: end, second: end}
    assert machine.watched == 0


def test_a_batch_that_is_undone_ends_no_wait(machine: Machine) -> None:
    job = watched(machine)
    run(machine, Get(("q",)))
    for parts in ((Done(1), Done(9)), (Later(1), Done(9)), (End(1, How.BURY), Done(9)), (Later(1), put(), Done(9))):
        assert run(machine, Batch(parts, True)).effects.outcomes is None
        assert machine.watched == 1
    assert run(machine, Batch((Done(1), put("l")), True)).effects.outcomes == {job: JobEnded("q", EndState.DONE)}


def test_nothing_of_it_is_state(machine: Machine) -> None:
    before = snapshot_of(machine)
    watched(machine)
    assert snapshot_of(machine) == before
    other = Machine()
    other.restore([before])
    assert other.watched == 0


def test_a_clone_ends_all_waits(machine: Machine) -> None:
    job, snapshot = watched(machine), snapshot_of(machine)
    applied = run(machine, CloneChunk(1, total_bytes=len(snapshot)), CloneChunk(1, snapshot), CloneChunk(1, last=True))
    assert (applied.effects.outcomes, machine.watched) == ({job: NotFound()}, 0)


@pytest.mark.parametrize("drops", [PurgeQueue("q", Purged.ALL), DeleteQueue("q", True)])
def test_jobs_of_pages_that_are_dropped_unread_end_too(
    drops: PurgeQueue | DeleteQueue, monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_collections(monkeypatch)
    machine = paged_machine(MemoryStore())
    numbers = [reply.number for reply in ask(
        machine, *[PutWith(Put("q", 0, b"x"), number=True)] * 100, *[PutWith(Put("r", 0, b"x"), number=True)] * 2,
    ) if isinstance(reply, StoredNumber)]
    for number in numbers[::3]:
        found = machine.watch(Number(number))
        assert found is not None
        machine.keep_watch(found[0])
    while machine.page_out():
        pass
    pages = machine.pages
    assert pages is not None
    assert pages.jobs > 80
    read = pages.read
    outcomes = run(machine, drops).effects.outcomes
    assert outcomes == dict.fromkeys(numbers[:100:3], NotFound())
    assert (machine.watched, pages.read - read < 10) == (len(numbers[::3]) - len(outcomes), True)
