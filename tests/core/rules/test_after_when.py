"""PUT .. AFTER .. WHEN: jobs that wait until an item is done, has ended, or has failed."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Aborted,
    Await,
    Batch,
    Change,
    Delete,
    Done,
    Due,
    End,
    Event,
    Get,
    GetWith,
    How,
    JobDropped,
    JobState,
    Kick,
    Later,
    Machine,
    NotFound,
    Number,
    Place,
    Put,
    PutWith,
    Results,
    Selector,
    Stored,
    Tick,
    Until,
)
from sockpqd.core.limits import PORTION_MAX
from tests.core.helpers.logs import ask, restored, run, snapshot_of

DONE, END, FAILED = Until


def after(name: str, until: Until, *items: str, **options: object) -> PutWith:
    """Return a Put of a job with this data that waits for this of these items, `x` without any."""
    return PutWith(Put("w", 0, name.encode(), None), after=items or ("x",), until=until, **options)     # type: ignore[arg-type]


ALL = [after("done", DONE), after("end", END), after("failed", FAILED)]


def ready(machine: Machine) -> list[str]:
    """Return the data of the READY jobs of the queue of those who wait, here and on a machine restored from here."""
    ask(machine, Tick())
    other = restored(snapshot_of(machine))
    found = [bytes(job.data).decode() for job in machine.peek_queue("w", JobState.READY, 10)]
    ask(other, Tick())
    assert [bytes(job.data).decode() for job in other.peek_queue("w", JobState.READY, 10)] == found
    return found


def waiting(machine: Machine) -> int:
    """Return how many jobs wait."""
    counts = machine.counts("w")
    return 0 if counts is None else counts.delayed


@pytest.fixture
def machine() -> Machine:
    """Return one with two running jobs of an item, and those who wait for it."""
    machine = Machine()
    ask(machine, *[Put("q", 0, b"", "x")] * 2, *ALL, Get(("q",)), Get(("q",)))
    return machine


def test_all_done_is_no_failure_and_who_waited_for_one_is_gone(machine: Machine) -> None:
    ask(machine, Done(1))
    assert (ready(machine), waiting(machine)) == ([], 3)
    ask(machine, Done(2))
    assert (ready(machine), waiting(machine)) == (["done", "end"], 0)


@pytest.mark.parametrize("here", [False, True])
def test_first_death_is_a_failure_and_the_last_one_the_end(machine: Machine, here: bool) -> None:
    ask(machine, End(1, How.BURY, here=here))
    assert (ready(machine), waiting(machine)) == (["failed"], 2)
    ask(machine, Done(2))
    assert (ready(machine), waiting(machine)) == (["failed", "end"], 1)
    ask(machine, Kick("q", 1, here=here), Get(("q",)), Done(3))
    assert (ready(machine), waiting(machine)) == (["failed", "end", "done"], 0)


def test_dead_job_that_is_put_back_ends_its_item_for_who_came_meanwhile(machine: Machine) -> None:
    ask(machine, Done(1), End(2, How.BURY), Tick(), Get(("q_dead",)))
    assert ask(machine, after("late", END), after("later", FAILED)) == [Stored(), Stored()]
    assert waiting(machine) == 3
    ask(machine, Later(3))
    assert (ready(machine), waiting(machine)) == (["end", "failed", "late", "later"], 1)


def test_items_that_have_ended_or_failed_hold_nobody_up(machine: Machine) -> None:
    ask(machine, Done(1), End(2, How.BURY), Tick())
    assert ready(machine) == ["end", "failed"]
    assert ask(machine, after("f", FAILED), after("e", END), after("o", FAILED, "none", "x")) == [Stored()] * 3
    assert ready(machine) == ["end", "failed", "f", "e", "o"]


def test_failure_that_cannot_come_is_dropped_and_leaves_nothing() -> None:
    machine = Machine()
    before = snapshot_of(machine)
    assert ask(machine, after("f", FAILED, "x", "y")) == [JobDropped()]
    assert machine.queue_names("") == []
    assert machine.event_seq == 0
    assert len(snapshot_of(machine)) == len(before)
    assert ask(machine, Batch((after("f", FAILED), Put("w", 0, b"")), atomic=True)) == [
        Results((JobDropped(), Stored())),
    ]


def test_one_failure_of_several_items_is_enough() -> None:
    machine = Machine()
    ask(machine, Put("q", 0, b"", "x"), Put("q", 0, b"", "y"), after("f", FAILED, "x", "y"), Get(("q",)), Get(("q",)))
    ask(machine, Done(1))
    assert (ready(machine), waiting(machine)) == ([], 1)
    ask(machine, End(2, How.BURY))
    assert ready(machine) == ["f"]


def test_failure_and_end_of_an_item_in_one_transaction_is_a_failure(machine: Machine) -> None:
    ask(machine, Done(1), PutWith(Put("q", 1, b"", "x"), key="k"), Get(("q",)))
    batch = Batch((Done(2), End(3, How.BURY), Delete(Selector(queue="q_dead", key="k"))), atomic=True)
    ask(machine, batch)
    assert (ready(machine), waiting(machine)) == (["done", "end", "failed"], 0)


def test_refused_transaction_decides_nothing(machine: Machine) -> None:
    before = machine.item("x")
    assert ask(machine, Batch((End(1, How.BURY), Done(2), Done(99)), atomic=True)) == [Aborted(3, NotFound())]
    assert (ready(machine), waiting(machine)) == ([], 3)
    assert machine.item("x") == before


def test_who_is_removed_ends_its_own_item_and_so_on_down_a_chain() -> None:
    machine = Machine()
    machine.record(["FINI"])
    ask(machine, Put("q", 0, b"", "i0"), Get(None))
    ask(machine, *[
        PutWith(Put("w", 0, b"", f"i{number}"), after=(f"i{number - 1}",), until=FAILED) for number in range(1, 9)
    ])
    ask(machine, Done(1))
    events: list[Event] = run(machine, Tick()).events
    assert [event.name for event in events] == [f"i{number}" for number in range(1, 9)]
    assert machine.queue_names("") == []


def test_wait_for_the_end_of_a_removed_job_ends() -> None:
    machine = Machine()
    ask(machine, Put("q", 0, b"", "x"), Get(None), after("f", FAILED, key="k"))
    awaited = machine.watch(Selector(queue="w", key="k"))
    assert awaited is not None
    machine.keep_watch(awaited[0])
    ask(machine, Done(1))
    assert run(machine, Tick()).effects.outcomes == {awaited[0]: NotFound()}
    assert ask(machine, Await(Selector(queue="w", key="k"))) == [NotFound()]


def test_what_is_decided_comes_in_portions_and_stays_so() -> None:
    machine = Machine()
    count = PORTION_MAX + 10
    ask(machine, Put("q", 0, b"", "x"), Get(None), *[after("f", FAILED)] * count)
    ask(machine, End(1, How.BURY), Kick("q", 1), Get(("q",)), Done(2))
    ask(machine, Tick())
    assert waiting(machine) == 10
    assert machine.item("x") is None
    machine = restored(snapshot_of(machine))
    ask(machine, Tick())
    assert waiting(machine) == 0
    counts = machine.counts("w")
    assert counts is not None
    assert counts.ready == count


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("when", [None, Due(delay_ms=0), Due(delay_ms=100_000)])
def test_change_between_decision_and_portion_changes_no_decision(fails: bool, when: Due | None) -> None:
    machine = Machine()
    ask(machine, Put("q", 0, b"", "x"), Put("q", 0, b"", "y"), after("f", FAILED, "x", "y"), Get(None), Get(None))
    seq = machine.peek_queue("w", JobState.DELAYED, 1)[0].seq
    ask(machine, Done(1))
    ask(machine, End(2, How.BURY) if fails else Done(2), Change(Place("w", seq), when=when, data=b"g"))
    assert waiting(machine) == 1
    ask(machine, Tick())
    assert waiting(machine) == int(fails and when is not None and when.delay_ms > 0)
    assert ready(machine) == (["g"] if fails and not waiting(machine) else [])


def test_job_that_is_taken_waits_for_nothing_any_more(machine: Machine) -> None:
    ask(machine, PutWith(Put("n", 0, b"", None), after=("x",), until=END, number=True))
    number = machine.peek_queue("n", JobState.DELAYED, 1)[0].number
    assert number is not None
    ask(machine, GetWith(Get(None), number=number), Later(3), Done(1), Done(2), Tick())
    assert restored(snapshot_of(machine)).peek(Number(number)) == machine.peek(Number(number))
