"""Items: FINI, NEW, and hand-outs by item."""

from __future__ import annotations

import pytest

from sockpqd.core import Done, Empty, Finished, Get, Handed, Later, Machine, Put, Return, Stored, Then, Tick
from tests.core.helpers.logs import ask, data_of, restored, run, snapshot_of


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_item_is_finished_with_its_last_job_in_any_queue(machine: Machine) -> None:
    ask(machine, Put("a", 0, b"", "x"), Put("b", 0, b"", "x"), Get(("a",)))
    assert ask(machine, Done(1)) == [Finished(queue_done=True, item_done=False)]
    assert ask(machine, Get(("b",)), Done(2))[1] == Finished(queue_done=True, item_done=True)


def test_item_can_be_finished_while_its_queue_is_not(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"", "x"), Put("q", 0, b""), Get(("q",)))
    assert ask(machine, Done(1)) == [Finished(queue_done=False, item_done=True)]


def test_deferred_job_keeps_item_and_queue_unfinished(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"", "x"), Put("q", 0, b"", "x"), Get(("q",), 1000, Then.LATER), Get(("q",)))
    assert ask(machine, Done(2)) == [Finished(False, False)]


def test_job_without_item_never_finishes_one(machine: Machine) -> None:
    assert ask(machine, Put("q", 0, b""), Get(None), Done(1))[2] == Finished(queue_done=True, item_done=False)


def test_item_expired_with_then_done_is_finished_silently(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"", "x"), Put("q", 0, b"", "x"), Get(("q",), 1, Then.DONE), Get(("q",)))
    assert ask(machine, Done(2), now_ms=16) == [Finished(True, True)]


def test_new_makes_names_from_a_counter(machine: Machine) -> None:
    assert ask(machine, *[Put("q", 0, b"", None, True)] * 3) == [Stored("i1"), Stored("i2"), Stored("i3")]


def test_new_never_makes_a_name_twice(machine: Machine) -> None:
    assert ask(machine, Put("q", 0, b"", None, True), Get(None), Done(1))[2] == Finished(True, True)
    assert ask(machine, Put("q", 0, b"", None, True)) == [Stored("i2")]


def test_new_skips_names_in_use(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"", "i2"), Put("p", 0, b"", "i1"), Get(("p",)))      # one waits, one runs
    assert ask(machine, Put("q", 0, b"", None, True)) == [Stored("i3")]


def test_get_by_item_takes_the_first_job_of_the_item(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, b"%d" % number, "x" if number % 2 else "y") for number in range(6)])
    ask(machine, Put("q", 1, b"urgent", "x"))
    assert data_of(ask(machine, *[Get(("q",), item="x")] * 5)) == [b"urgent", b"1", b"3", b"5"]
    assert data_of(ask(machine, *[Get(("q",))] * 5)) == [b"0", b"2", b"4"]


def test_job_taken_without_the_filter_is_gone_from_the_item(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"a", "x"), Put("q", 0, b"b", "x"), Get(("q",)))
    assert machine.ready_of_item("q", "x") == 1
    assert data_of(ask(machine, *[Get(("q",), item="x")] * 2)) == [b"b"]


@pytest.mark.parametrize(("ending", "order"), [(Later, [b"b", b"a"]), (Return, [b"a", b"b"])])
def test_requeued_job_is_back_in_its_item(
    machine: Machine, ending: type[Later] | type[Return], order: list[bytes]
) -> None:
    ask(machine, Put("q", 0, b"a", "x"), Put("q", 0, b"b", "x"), Get(("q",)), ending(1))
    assert machine.ready_of_item("q", "x") == 2
    copy = restored(snapshot_of(machine))
    assert data_of(ask(machine, *[Get(("q",), item="x")] * 2)) == order
    assert data_of(ask(copy, *[Get(("q",))] * 2)) == order


def test_get_by_item_looks_into_the_queues_asked_for_only(machine: Machine) -> None:
    ask(machine, Put("a", 0, b"a", "x"), Put("b", 0, b"b", "x"), Put("c", 0, b"c", "y"))
    assert ask(machine, Get(("c",), item="x"), Get(("c", "unknown"), item="x")) == [Empty(False)] * 2
    assert data_of(ask(machine, Get(("b", "c"), item="x"))) == [b"b"]
    assert data_of(ask(machine, Get(None, item="x"))) == [b"a"]
    assert data_of(ask(machine, Get(None, item="x"))) == []


def test_empty_by_item_tells_of_running_jobs_of_the_item(machine: Machine) -> None:
    ask(machine, Put("a", 0, b"", "x"), Put("b", 0, b"", "y"), Get(("a",)))
    gets = [Get(("a",), item="x"), Get(("b",), item="x"), Get(None, item="x"), Get(None, item="z")]
    assert ask(machine, *gets) == [Empty(True), Empty(False), Empty(True), Empty(False)]


def test_get_by_item_of_put_means_the_put_before_it(machine: Machine) -> None:
    replies = ask(
        machine,
        Put("out", 9, b"another", "y"),
        Put("out", 0, b"mine", None, True),
        Get(("out",), 60_000, Then.LATER, item_of_put=True),
    )
    assert replies[2] == Handed(1, "out", 0, b"mine", "i1")


def test_get_by_item_of_put_with_a_named_item(machine: Machine) -> None:
    ask(machine, Put("out", 0, b"answer", "x"))
    assert ask(machine, Put("in", 0, b"question", "x"), Get(("out",), item_of_put=True))[1] == Handed(
        1, "out", 0, b"answer", "x"
    )


def test_get_by_item_of_put_does_not_reach_into_an_earlier_entry(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"", "x"))
    assert ask(machine, Get(("q",), item_of_put=True)) == [Empty(False)]
    assert ask(machine, Put("q", 0, b""), Get(("q",), item_of_put=True))[1] == Empty(False)


def test_ready_of_item_counts_waiting_jobs(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, b"", "x")] * 3, Put("q", 0, b""), Put("p", 0, b"", "x"), Get(("q",), item="x"))
    assert machine.ready_of_item("q", "x") == 2
    assert machine.ready_of_item("q", "y") == 0
    assert machine.ready_of_item("r", "x") == 0
    assert machine.ready("q") == 3


def test_items_of_many_jobs_stay_in_order_when_taken_from_both_sides(machine: Machine) -> None:
    ask(machine, *[Put("q", number % 3, b"%d" % number, f"item{number % 2}") for number in range(3000)])
    by_item = data_of(ask(machine, *[Get(("q",), item="item1")] * 700))
    by_queue = data_of(ask(machine, *[Get(("q",))] * 2300))
    order = sorted(range(3000), key=lambda number: (-(number % 3), number))
    assert by_item == [b"%d" % number for number in order if number % 2][:700]
    taken = dict.fromkeys(by_item)
    assert by_queue == [b"%d" % number for number in order if b"%d" % number not in taken]
    run(machine, Tick())
    assert machine.total(None).jobs == 0


def test_names_that_clients_used_do_not_hold_up_a_new_one() -> None:
    machine = Machine()
    ask(machine, *[Put("q", 0, b"", f"i{number}") for number in range(1, 5001)])
    (first, second) = ask(machine, Put("q", 0, b"", None, True), Put("q", 0, b"", None, True), seed=7)
    assert isinstance(first, Stored)
    assert isinstance(second, Stored)
    assert first.item is not None
    assert second.item == f"i{int(first.item[1:]) + 1}"
    assert int(first.item[1:]) > 5000, "not one after the other"


def test_a_few_names_that_clients_used_are_passed_over() -> None:
    machine = Machine()
    ask(machine, *[Put("q", 0, b"", f"i{number}") for number in range(1, 100)])
    assert ask(machine, Put("q", 0, b"", None, True)) == [Stored("i100")]
