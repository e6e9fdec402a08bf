"""The failed jobs of an item, and the event FAILI."""

from __future__ import annotations

from sockpqd.core import (
    Aborted,
    Batch,
    Change,
    Done,
    End,
    Event,
    Get,
    How,
    ItemCounts,
    ItemSummary,
    Kick,
    Later,
    Machine,
    NotFound,
    Put,
    Selector,
    Then,
    Tick,
)
from sockpqd.core.ops.jobs import Due, PutWith
from tests.core.helpers.logs import ask, restored, run, snapshot_of

BURY = End(1, How.BURY)

NEITHER = {"held": False, "cancelling": False}


def said(machine: Machine, *operations: object) -> list[str]:
    """Return the events of these operations that are about an item."""
    machine.record(["FINI", "FAILI"])
    events: list[Event] = run(machine, *operations).events     # type: ignore[arg-type]
    return [f"{event.type} {event.name}" for event in events]


def counts(machine: Machine, item: str = "x") -> ItemCounts:
    """Return the figures of the item, which a restored machine has as well."""
    found = machine.item(item)
    assert found is not None
    assert restored(snapshot_of(machine)).item(item) == found
    return found


def test_jobs_of_an_item_are_counted_by_their_states() -> None:
    machine = Machine()
    ask(machine, *[Put("q", 0, b"", "x")] * 5, PutWith(Put("p", 0, b"", "x"), when=Due(delay_ms=1000)))
    ask(machine, *[Get(("q",))] * 4, BURY, End(2, How.BURY, here=True), Done(3))
    ask(machine, PutWith(Put("p", 0, b"", "y"), after=("x",)))
    assert counts(machine) == ItemCounts(
        ready=1, delayed=1, running=1, dead=1, buried=1, done=1, cancelled=0, **NEITHER, waiters=1,
    )
    assert machine.item_summary("x") == ItemSummary("x", unfinished=5, dead=2, done=1, **NEITHER)
    assert sorted(machine.item_names()) == ["x", "y"]


def test_done_counts_from_the_beginning_of_the_item() -> None:
    machine = Machine()
    ask(machine, Put("q", 0, b"", "x"), Put("q", 0, b"", "x"), Get(None), Done(1))
    assert counts(machine).done == 1
    ask(machine, Get(None), Done(2))
    assert machine.item("x") is None
    ask(machine, Put("q", 0, b"", "x"))
    assert counts(machine).done == 0


def test_lease_that_ends_with_done_counts() -> None:
    machine = Machine()
    ask(machine, Put("q", 0, b"", "x"), Put("q", 0, b"", "x"), Get(None, 1, Then.DONE))
    ask(machine, Tick(), now_ms=100)
    assert counts(machine).done == 1


def test_first_death_is_told_and_the_second_is_not() -> None:
    machine = Machine()
    ask(machine, *[Put("q", 0, b"", "x")] * 2, Get(None), Get(None))
    assert said(machine, BURY) == ["FAILI x"]
    assert said(machine, End(2, How.BURY, here=True)) == []
    assert said(machine, Kick("q", 1), Kick("q", 1, here=True)) == []
    ask(machine, Get(None))
    assert said(machine, End(3, How.BURY)) == ["FAILI x"]


def test_dead_job_that_is_put_back_is_told_again() -> None:
    machine = Machine()
    ask(machine, Put("q", 0, b"", "x"), Get(None), BURY, Get(("q_dead",)))
    assert counts(machine) == ItemCounts(0, 0, running=1, dead=0, buried=0, done=0, cancelled=0, **NEITHER, waiters=0)
    assert said(machine, Later(2)) == ["FAILI x"]


def test_change_of_a_dead_job_is_no_failure_but_for_another_item() -> None:
    machine = Machine()
    ask(machine, PutWith(Put("q", 0, b"", "x"), key="k"), Get(None), BURY)
    dead = Selector(queue="q_dead", key="k")
    assert said(machine, Change(dead, priority=5)) == []
    assert said(machine, Change(dead, item="y")) == ["FINI x", "FAILI y"]


def test_failure_survives_a_restart() -> None:
    machine = Machine()
    ask(machine, *[Put("q", 0, b"", "x")] * 2, Get(None), Get(None), BURY)
    machine = restored(snapshot_of(machine))
    assert said(machine, End(2, How.BURY)) == []


def test_refused_transaction_counts_and_tells_nothing() -> None:
    machine = Machine()
    ask(machine, *[Put("q", 0, b"", "x")] * 3, *[Get(None)] * 3, Done(1))
    before, seq = counts(machine), machine.event_seq
    refused = Batch((Done(2), End(3, How.BURY), Done(99)), atomic=True)
    assert ask(machine, refused) == [Aborted(3, NotFound())]
    assert (counts(machine), machine.event_seq) == (before, seq)
    assert said(machine, End(3, How.BURY)) == ["FAILI x"]


def test_item_that_a_refused_transaction_ended_keeps_its_count() -> None:
    machine = Machine()
    ask(machine, *[Put("q", 0, b"", "x")] * 2, *[Get(None)] * 2, Done(1))
    refused = Batch((Done(2), Put("q", 0, b"", "x"), Done(99)), atomic=True)
    assert ask(machine, refused) == [Aborted(3, NotFound())]
    assert counts(machine).done == 1
