"""ITEM CANCEL: nothing of the item is handed out any more, its jobs end, and what waits for it to be done ends too."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from sockpqd.core import (
    CancelItem,
    Change,
    CloseSession,
    ConfigureQueue,
    Delete,
    Done,
    Due,
    Empty,
    End,
    Finished,
    Get,
    GetWith,
    Handed,
    HoldItem,
    How,
    ItemCancelled,
    ItemCounts,
    ItemNotFound,
    JobState,
    Kick,
    Later,
    Machine,
    Move,
    Moved,
    MoveJobs,
    Number,
    OnDup,
    OpenSession,
    Operation,
    Put,
    PutWith,
    QueueChange,
    Removed,
    RetryItem,
    Return,
    Selector,
    Then,
    Until,
    limits,
)
from tests.core.helpers.logs import ask, lead, restored, run, snapshot_of


@pytest.fixture
def machine() -> Machine:
    machine = Machine()
    run(machine, lead())
    return machine


def figures(machine: Machine, item: str = "x") -> ItemCounts:
    found = machine.item(item)
    assert found is not None
    return found


def settle(machine: Machine, most: int = 20) -> int:
    """Let all that is due happen; returns in how many entries."""
    for entries in range(most):
        due_ms = machine.next_due_ms()
        if due_ms is None or due_ms > machine.clock_ms:
            return entries
        run(machine)
    raise AssertionError("it never ends")


def test_nothing_is_handed_out_from_the_same_entry_on_and_others_are_once_it_is_gone(machine: Machine) -> None:
    ask(machine, *[Put("q", 5, b"", "x") for _ in range(3)], Put("q", 0, b"other"), Put("q", 0, b"", "y"))
    ask(machine, PutWith(Put("q", 0, b"", "x"), Due(50)), Get(("q",)), Get(("q",)), End(2, How.BURY, here=True))
    assert ask(machine, CancelItem("x"), *[Get(("q",), item=item) for item in (None, "x", "y")], Get(None)) == [
        Removed(4), *[Empty(True)] * 4,
    ]
    machine = restored(snapshot_of(machine))
    assert ask(machine, Get(("q",))) == [Handed(3, "q", 0, b"other")]
    left = figures(machine)
    assert (left.running, left.cancelled, left.ready + left.delayed + left.buried) == (1, 3, 0)
    assert settle(machine) == 0


ENDS: dict[str, Callable[[int], list[Operation]]] = {
    "DONE": lambda number: [Done(number)],
    "DONE of a periodic one": lambda number: [End(number, How.DONE)],
    "LATER": lambda number: [Later(number)],
    "LATER to a time": lambda number: [End(number, How.LATER, Due(1000))],
    "BURY": lambda number: [End(number, How.BURY)],
    "BURY HERE": lambda number: [End(number, How.BURY, here=True)],
    "MOVE": lambda number: [Move(number, "elsewhere")],
    "an undelivered hand-out": lambda number: [Return(number)],
    "DELETE": lambda number: [Delete(Selector(number))],
    "its session": lambda number: [CloseSession(1, True)],
}


@pytest.mark.parametrize("end", ENDS)
def test_a_running_job_ends_with_its_hand_out_and_the_item_with_it(machine: Machine, end: str) -> None:
    ask(machine, OpenSession(7, 60_000), PutWith(Put("q", 0, b"", "x"), every_ms=1000 if "periodic" in end else None))
    ask(machine, Get(("q",), session=1), PutWith(Put("after", 0, b""), after=("x",)))
    machine.record(["CANCEL", "FINI"])
    told = run(machine, CancelItem("x", "late")).events
    assert [(event.type, event.name, event.words) for event in told] == [("CANCEL", "q", (1, "late"))]
    replies = ask(machine, *ENDS[end](1))
    ended = any(isinstance(reply, Finished) and reply.item_done for reply in replies)
    assert ended == end.startswith(("DONE", "DELETE"))
    settle(machine)
    assert machine.item_names() == []
    assert machine.queue_names("") == []            # nor has anything come elsewhere, and the waiting job is gone


@pytest.mark.parametrize("then", [Then.LATER, Then.DEAD, Then.DONE])
def test_the_end_of_its_lease_ends_a_running_job(machine: Machine, then: Then) -> None:
    ask(machine, Put("q", 0, b"", "x"), Get(("q",), 1000, then), CancelItem("x"))
    machine.apply(machine.index + 1, machine.clock_ms + 2000, 0, [])
    assert (machine.item_names(), machine.queue_names("")) == ([], [])


def test_what_would_bring_or_take_a_job_is_refused(machine: Machine) -> None:
    ask(machine, ConfigureQueue("q", QueueChange(numbered=True)), HoldItem("x", 600_000))
    ask(machine, *[PutWith(Put("q", 0, b"", "x"), key=f"k{at}", number=True) for at in range(2)], Put("q", 0, b"", "y"))
    ask(machine, Get(("q",)), Get(("q",)), End(1, How.BURY, here=True))
    ask(machine, CancelItem("x"))
    for operation in (
        Put("q", 0, b"", "x"), Put("new", 0, b"", "x"), PutWith(Put("q", 0, b"", "x"), key="other"),
        HoldItem("x", 5000), RetryItem("x"), Change(Selector(2), item="z"), Change(Selector(2), no_item=True),
    ):
        assert ask(machine, operation) == [ItemCancelled()], operation
    assert machine.counts("new") is None
    assert ask(machine, CancelItem("x"), CancelItem("z")) == [Removed(1), ItemNotFound()]
    assert ask(machine, Done(2), HoldItem("x", None)) == [Finished(False, False), Finished(False, True)]


def test_jobs_that_still_lie_there_are_passed_over_and_not_taken(machine: Machine) -> None:
    ask(machine, ConfigureQueue("q", QueueChange(numbered=True)))
    put = PutWith(Put("q", 0, b"", "x"), key="k", number=True)
    ask(machine, put, Put("q", 0, b"", "x"), Get(("q",)), End(1, How.BURY, here=True), Put("q", 0, b"other"))
    buried = machine.peek_queue("q", JobState.BURIED, 1)[0]
    assert buried.number is not None
    assert ask(
        machine, CancelItem("x"), GetWith(Get(None), number=buried.number), Kick("", 1, selector=Number(buried.number)),
        MoveJobs("q", "r", 9), Kick("q", 9, here=True),
    ) == [Removed(2), ItemCancelled(), ItemCancelled(), Moved(1), Removed(0, buried=True)]
    assert (machine.ready("q"), machine.ready("r"), settle(machine)) == (0, 1, 0)
    assert machine.item_names() == []


def test_a_job_that_is_in_the_way_of_another_one_is_not_replaced(machine: Machine) -> None:
    ask(machine, PutWith(Put("q", 0, b"", "x"), key="k"))
    replace = PutWith(Put("q", 0, b"new", "y"), key="k", on_dup=OnDup.REPLACE)
    assert ask(machine, CancelItem("x"), replace) == [Removed(1), ItemCancelled()]


def test_who_waits_for_it_ends_comes_or_comes_at_once(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"", "x"), Put("q", 0, b"", "other"))
    for until in Until:
        ask(machine, PutWith(Put(until.name, 0, b""), after=("x", "other"), until=until))
        ask(machine, PutWith(Put(until.name, 0, b""), after=("x",), until=until))
    ask(machine, CancelItem("x"))
    settle(machine)
    assert [machine.ready(until.name) for until in Until] == [0, 1, 2]
    assert machine.counts("DONE") is None


def test_the_removal_goes_down_a_chain_in_portions(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PORTION_MAX", 50)
    items = [f"x{at:04}" for at in range(500)]
    ask(machine, Put("q", 0, b"", items[0]), *[
        PutWith(Put("q", 0, b"", item), after=(before,)) for before, item in pairwise(items)
    ])
    ask(machine, Put("q", 0, b"", items[300]), CancelItem(items[0]))
    machine.record(["FINI"])
    longest = 0
    while machine.next_due_ms() == machine.clock_ms:
        longest = max(longest, len(run(machine).events))
    assert longest == 51            # one is the head
    assert sorted(machine.item_names()) == items[300:]        # it has another job, so it has not ended,
    assert machine.item(items[300]) == ItemCounts(1, 0, 0, 0, 0, 0, 1, False, False, 1)
    assert ask(restored(snapshot_of(machine)), Get(("q",)), Done(1))[1] == Finished(False, True)
    ask(machine, Get(("q",)), Done(1))
    settle(machine)
    assert machine.item_names() == []                           # and counts as cancelled when it does


def test_no_entry_removes_more_than_a_portion(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PORTION_MAX", 50)
    ask(machine, *[Put(f"q{at % 7}", 0, b"", "x") for at in range(1000)], Put("q1", 0, b"other"))
    ask(machine, CancelItem("x"))
    assert figures(machine).ready == 1000
    assert settle(machine, 30) == 20
    assert ask(machine, Get(("q1",))) == [Handed(1, "q1", 0, b"other")]


def test_running_jobs_count_as_events_whether_or_not_anybody_hears_of_them(machine: Machine) -> None:
    ask(machine, *[Put(f"q{at % 3}", 0, b"", "x" if at % 2 else "y") for at in range(12)], *[Get(None)] * 9)
    heard = restored(snapshot_of(machine))
    heard.record(["CANCEL"])
    operations = CancelItem("x"), HoldItem(None, 60_000), Put("q1", 0, b"other")
    heard_of = run(heard, *operations)
    run(machine, *operations)
    of_item = [job.id for job in machine.running() if job.item == "x"]
    assert [event.words for event in heard_of.events] == [(number,) for number in of_item]
    assert len(of_item) > 1
    assert snapshot_of(heard) == snapshot_of(machine)
