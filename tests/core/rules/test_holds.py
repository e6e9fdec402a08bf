"""Holds: an item does not end before its hold is released or expires; what waits for it does not come either."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    Batch,
    Done,
    End,
    Finished,
    Get,
    HoldItem,
    HoldThen,
    How,
    ItemCancelled,
    ItemNotHeld,
    Machine,
    Moved,
    Put,
    PutWith,
    RetryItem,
    Stored,
    TooManyHolds,
    Until,
    limits,
)
from tests.core.helpers.logs import ask, lead, restored, run, snapshot_of

RELEASE = HoldThen.RELEASE


@pytest.fixture
def machine() -> Machine:
    machine = Machine()
    run(machine, lead())
    return machine


def waiting(machine: Machine) -> int:
    """Return the number of jobs in "after" that may be taken, an entry later."""
    run(machine)
    return machine.ready("after")


@pytest.mark.parametrize("until", [Until.DONE, Until.END])
def test_nobody_comes_before_the_release(machine: Machine, until: Until) -> None:
    ask(machine, HoldItem("x", 60_000), PutWith(Put("after", 0, b""), after=("x",), until=until))
    ask(machine, Put("q", 0, b"", "x"), Get(("q",)))
    assert ask(machine, Done(1)) == [Finished(True, False)]
    assert waiting(machine) == 0
    assert ask(machine, HoldItem("x", None)) == [Finished(False, True)]
    assert waiting(machine) == 1
    assert machine.item("x") is None
    assert ask(machine, HoldItem("x", None)) == [ItemNotHeld()]


def test_an_item_with_a_dead_job_is_settled_by_the_release_but_does_not_end(machine: Machine) -> None:
    ask(machine, HoldItem("x", 60_000), PutWith(Put("after", 0, b""), after=("x",), until=Until.END))
    ask(machine, Put("q", 0, b"", "x"), Get(("q",)), End(1, How.BURY))
    assert waiting(machine) == 0
    assert ask(machine, HoldItem("x", None)) == [Finished(False, False)]
    assert waiting(machine) == 1


def test_a_hold_is_over_at_its_time_and_not_before_and_one_more_sets_it_again(machine: Machine) -> None:
    start_ms = machine.clock_ms
    ask(machine, HoldItem("x", 5_000, RELEASE), PutWith(Put("after", 0, b""), after=("x",)))
    machine.apply(machine.index + 1, start_ms + 4_000, 0, [HoldItem("x", 5_000, RELEASE)])
    machine.apply(machine.index + 1, start_ms + 8_999, 0, [])
    assert machine.item_names() == ["x"]
    assert machine.next_due_ms() is not None
    machine = restored(snapshot_of(machine))
    machine.record(["FINI"])
    applied = machine.apply(machine.index + 1, start_ms + 9_000, 0, [])
    assert [event.name for event in applied.events] == ["x"]
    assert waiting(machine) == 1


def test_a_hold_has_the_grace_of_a_lease_once(machine: Machine) -> None:
    start_ms = machine.clock_ms
    ask(machine, HoldItem("x", 30_000, RELEASE), HoldItem("short", 2_000, RELEASE))
    end_ms = start_ms + 40_000
    new = lead(term=2, grace_ms=10_000)
    machine.apply(machine.index + 1, end_ms, 0, [new])
    machine.apply(machine.index + 1, end_ms + 1_999, 0, [])
    assert machine.held_items() == ["x", "short"]
    machine.apply(machine.index + 1, end_ms + 2_000, 0, [new])
    assert machine.held_items() == ["x", "short"]          # the entry of a new leader ends nothing,
    machine.apply(machine.index + 1, end_ms + 2_001, 0, [])
    assert machine.held_items() == ["x"]                   # and there is no grace on top of the first
    machine.apply(machine.index + 1, end_ms + 10_000, 0, [])
    assert machine.held_items() == []


def test_a_new_item_is_its_users_until_it_ends(machine: Machine) -> None:
    assert ask(machine, HoldItem(None, 60_000, user="ann"), HoldItem("x", 60_000, user="ann")) == [
        Stored("i1"), Accepted(),
    ]
    ask(machine, Put("q", 0, b"", "i1"), HoldItem("i1", None))
    machine = restored(snapshot_of(machine))
    assert (machine.owner_of_item("i1"), machine.owner_of_item("x")) == ("ann", None)
    ask(machine, Get(("q",)), Done(1), HoldItem("i1", 60_000, user="bob"))
    assert machine.owner_of_item("i1") is None


def test_too_many_items_are_not_held(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HOLDS_MAX", 2)
    ask(machine, Put("q", 0, b"", "z"))
    holds = [HoldItem(name, 60_000) for name in ("x", "y", "z", None)]
    assert ask(machine, *holds) == [
        Accepted(), Accepted(), TooManyHolds(), TooManyHolds(),
    ]
    assert ask(machine, HoldItem("x", 1_000), HoldItem("x", None), HoldItem("z", 60_000)) == [
        Accepted(), Finished(False, True), Accepted(),
    ]


def test_an_aborted_batch_leaves_no_hold_and_takes_none(machine: Machine) -> None:
    ask(machine, HoldItem("kept", 60_000, RELEASE), Put("q", 0, b"", "jobs"))
    batch = Batch((
        HoldItem("new", 1_000), HoldItem(None, 1_000, user="ann"), HoldItem("kept", 1_000), HoldItem("jobs", 1_000),
        HoldItem("kept", None), HoldItem("kept", 2_000), HoldItem("kept", None), Done(99),
    ), True)
    ask(machine, batch)
    after = restored(snapshot_of(machine))
    assert [after.item(name) for name in ("new", "i1")] == [None, None]
    assert after.held_items() == ["kept"]
    ask(machine, batch)
    machine.apply(machine.index + 1, machine.clock_ms + 3_000, 0, [])
    assert machine.held_items() == ["kept"]


def test_retry_brings_each_job_back_once_straight_to_where_it_died(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"a", "x"), Put("q", 0, b"b", "x"), Get(("q",)), End(1, How.BURY))
    ask(machine, Get(("q_dead",)), End(2, How.BURY, here=True), Get(("q",)), End(3, How.BURY))
    assert ask(machine, RetryItem("x")) == [Moved(2)]
    assert (machine.ready("q"), machine.ready("q_dead")) == (2, 0)
    figures = machine.item("x")
    assert figures is not None
    assert (figures.ready, figures.dead, figures.buried) == (2, 0, 0)


def test_what_the_ends_of_holds_cancel_is_portioned_by_its_work(
    machine: Machine, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Items with one running job each, in a queue where many run, whose holds end at the same time."""
    monkeypatch.setattr(limits, "PORTION_BYTES_MAX", 20 * limits.STEP)
    monkeypatch.setattr(limits, "SPENT_MAX", 40 * limits.STEP)
    items = [f"x{number}" for number in range(5)]
    jobs = [*[Put("q", 0, b"", item) for item in items], *[Put("q", 0, b"")] * 200]
    ask(machine, *jobs, *[Get(("q",))] * len(jobs))
    ask(machine, *[HoldItem(item, 6_000) for item in items])
    end_ms = machine.clock_ms + 6_000
    for ended in range(1, 6):
        again = restored(snapshot_of(machine))
        entry = [Put("p", 0, b"")] * 3 + [Put("p", 0, b"", items[ended - 1])]
        replies = ask(machine, *entry, now_ms=end_ms)
        assert len(replies) == 4                        # commands have a part of each of these entries
        assert replies[3] == ItemCancelled()
        assert machine.held_items() == items[ended:]
        if ended < 5:
            assert machine.next_due_ms() == (end_ms + 15) // 16 * 16        # that it has come already is no matter
        assert ask(again, *entry, now_ms=end_ms) == replies
        assert again._own.spent == machine._own.spent
        assert snapshot_of(again) == snapshot_of(machine)
    ask(machine, *[Done(number) for number in range(1, 6)])
    assert machine.item_names() == []
