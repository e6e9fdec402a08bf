"""The effects of each operation, case by case."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    Done,
    Empty,
    Finished,
    Get,
    Handed,
    JobTotals,
    Later,
    Lead,
    Machine,
    NotFound,
    Put,
    Return,
    Stored,
    Then,
    Tick,
)
from tests.core.helpers.logs import ask, data_of, lead, run

HUGE = 10**40


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_put_and_get_give_the_job_back(machine: Machine) -> None:
    assert ask(machine, Put("q", -7, b"work", "x"), Get(("q",))) == [Stored(), Handed(1, "q", -7, b"work", "x")]


def test_greatest_priority_comes_first_and_fifo_inside(machine: Machine) -> None:
    ask(machine, Put("q", 1, b"b"), Put("q", 2, b"a"), Put("q", 1, b"c"), Put("q", -(2**63), b"d"))
    assert data_of(ask(machine, *[Get(("q",))] * 4)) == [b"a", b"b", b"c", b"d"]


def test_get_from_an_unknown_queue_is_empty_and_makes_no_queue(machine: Machine) -> None:
    assert ask(machine, Get(("q",))) == [Empty(False)]
    assert machine.total(None) == JobTotals(0, 0, 0, 0)


def test_empty_tells_of_running_jobs_in_the_queues_asked_for_only(machine: Machine) -> None:
    ask(machine, Put("q", 0, b""), Get(("q",)))
    assert ask(machine, Get(("q",)), Get(("p",)), Get(("p", "q")), Get(None)) == [
        Empty(True),
        Empty(False),
        Empty(True),
        Empty(True),
    ]
    assert ask(machine, Done(1), Get(("q",)), Get(None)) == [Finished(queue_done=True), Empty(False), Empty(False)]


def test_get_of_no_queue_at_all_is_empty(machine: Machine) -> None:
    assert ask(machine, Put("q", 0, b""), Get(())) == [Stored(), Empty(False)]


def test_get_of_several_queues_takes_from_a_nonempty_one_of_them(machine: Machine) -> None:
    ask(machine, Put("a", 0, b"a"), Put("c", 0, b"c"))
    assert data_of(ask(machine, Get(("b", "a", "b", "unknown")))) == [b"a"]
    assert data_of(ask(machine, Get(("b", "a")))) == []


@pytest.mark.parametrize("asked", [None, ("a", "b", "c", "c", "c", "d")])
def test_every_nonempty_queue_is_equally_likely(asked: tuple[str, ...] | None) -> None:
    machine = Machine()
    for queue in ("a", "b", "c"):
        ask(machine, *[Put(queue, priority, b"") for priority in range(3)] * (1 if queue == "a" else 5))
    taken = {"a": 0, "b": 0, "c": 0}
    for turn in range(3000):
        reply, _ = ask(machine, Get(asked), Return(turn + 1), seed=turn * 0x1234567)
        assert isinstance(reply, Handed)
        taken[reply.queue] += 1
    assert all(900 < count < 1100 for count in taken.values()), taken


def test_operations_of_one_entry_choose_independently(machine: Machine) -> None:
    ask(machine, *[Put(queue, 0, b"") for queue in ("a", "b") for _ in range(50)])
    replies = ask(machine, *[Get(None)] * 40, seed=2**64 - 1)
    queues = [reply.queue for reply in replies if isinstance(reply, Handed)]
    assert 8 < queues.count("a") < 32


def test_done_tells_when_the_queue_is_finished(machine: Machine) -> None:
    ask(machine, Put("q", 0, b""), Put("q", 0, b""), Get(("q",)), Get(("q",)))
    assert ask(machine, Done(1), Done(2)) == [Finished(), Finished(queue_done=True)]


def test_queue_can_be_finished_again_after_being_refilled(machine: Machine) -> None:
    for number in (1, 2):
        assert ask(machine, Put("q", 0, b""), Get(("q",)), Done(number))[-1] == Finished(queue_done=True)


def test_waiting_job_keeps_its_queue_unfinished(machine: Machine) -> None:
    assert ask(machine, Put("q", 0, b""), Put("q", 0, b""), Get(("q",)), Done(1))[-1] == Finished()


def test_later_moves_the_job_to_the_tail_of_its_priority(machine: Machine) -> None:
    ask(machine, Put("q", 5, b"a"), Put("q", 5, b"b"), Put("q", 1, b"c"))
    assert ask(machine, Get(("q",)), Later(1))[1] == Accepted()
    assert data_of(ask(machine, *[Get(("q",))] * 3)) == [b"b", b"a", b"c"]


def test_return_puts_the_job_back_to_the_front(machine: Machine) -> None:
    ask(machine, Put("q", 5, b"a"), Put("q", 5, b"b"), Get(("q",)), Return(1))
    assert data_of(ask(machine, *[Get(("q",))] * 2)) == [b"a", b"b"]


def test_jobs_returned_in_any_order_stand_in_their_old_order(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, b"%d" % number) for number in range(6)], *[Get(("q",))] * 4)
    ask(machine, Return(3), Return(1), Return(4), Return(2))
    assert data_of(ask(machine, *[Get(("q",))] * 6)) == [b"0", b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("ending", [Done, Later, Return])
def test_id_is_void_after_the_hand_out_ended(machine: Machine, ending: type[Done] | type[Later] | type[Return]) -> None:
    ask(machine, Put("q", 0, b""), Get(("q",)), ending(1))
    assert ask(machine, Done(1), Later(1), Return(1)) == [NotFound()] * 3


@pytest.mark.parametrize("number", [0, -1, 1, 2**63, 2**64, HUGE, -HUGE])
def test_id_that_was_never_given_is_not_found(machine: Machine, number: int) -> None:
    ask(machine, Put("q", 0, b""))
    assert ask(machine, Done(number), Later(number), Return(number)) == [NotFound()] * 3
    assert machine.total(None) == JobTotals(1, 1, 1, 0)


def test_each_hand_out_has_a_new_id(machine: Machine) -> None:
    replies = ask(machine, Put("q", 0, b""), Get(("q",)), Later(1), Get(("q",)), Return(2), Get(("q",)))
    assert [reply.id for reply in replies if isinstance(reply, Handed)] == [1, 2, 3]


def test_totals_count_queues_priorities_waiting_and_running(machine: Machine) -> None:
    ask(machine, Put("a", 1, b""), Put("a", 1, b""), Put("a", 2, b""), Put("b", 1, b""), Get(("b",)))
    assert machine.total(None) == JobTotals(queues=2, priorities=2, jobs=3, running=1)
    assert machine.total("a") == JobTotals(1, 2, 3, 0)
    assert machine.total("b") == JobTotals(1, 0, 0, 1)
    assert machine.total("c") == JobTotals(0, 0, 0, 0)


def test_running_jobs_are_listed_in_rising_id(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, b"%d" % number, "x") for number in range(3)])
    ask(machine, Get(("q",)), Get(("q",), 500), Get(("q",)), Later(1), now_ms=1000)
    assert [(job.id, job.queue, job.data, job.item, job.deadline_ms) for job in machine.running()] == [
        (2, "q", b"1", "x", 1500),
        (3, "q", b"2", "x", None),
    ]


def test_nonempty_names_are_sorted_and_without_queues_that_only_run(machine: Machine) -> None:
    ask(machine, Put("c", 0, b""), Put("a", 0, b""), Put("b", 0, b""), Get(("b",)))
    assert list(machine.nonempty()) == ["a", "c"]
    assert len(machine.nonempty()) == 2


def test_effects_name_the_queues_in_order_of_occurrence(machine: Machine) -> None:
    first = run(machine, Put("b", 0, b""), Put("a", 0, b""), Put("b", 0, b""), Get(("b",)), Get(("a",)), Get(("b",)))
    assert (list(first.effects.ready), list(first.effects.ended)) == (["b", "a"], [])
    second = run(machine, Done(2), Later(1), Return(3), Done(99))
    assert (list(second.effects.ready), list(second.effects.ended)) == (["b"], ["a"])


def test_effects_name_the_items_of_ready_jobs_in_order_of_occurrence(machine: Machine) -> None:
    puts = [Put("b", 0, b"", "x"), Put("a", 0, b"", "y"), Put("b", 0, b""), Put("b", 0, b"", "x")]
    assert list(run(machine, *puts).effects.ready_items) == [("b", "x"), ("a", "y")]
    assert list(run(machine, Put("a", 0, b""), Put("c", 0, b"", None, True)).effects.ready_items) == [("c", "i1")]
    gets = [Get(("b",)), Get(("a",)), Get(("a",)), Get(("c",), 10, Then.LATER), Get(("b",), 10, Then.DONE, "x")]
    assert not run(machine, *gets).effects.ready_items
    second = run(machine, Return(2), Later(1), Later(3), Done(99)).effects
    assert (list(second.ready), list(second.ready_items)) == (["a", "b"], [("a", "y"), ("b", "x")])
    third = run(machine, Tick(), now_ms=100).effects
    assert (list(third.ready), list(third.ready_items)) == (["c"], [("c", "i1")])
    assert (list(third.ended), list(third.ended_items)) == ([], [])         # other jobs of "b" and "x" are left


def test_effects_name_queues_and_their_items_that_are_finished(machine: Machine) -> None:
    ask(machine, Put("a", 0, b"", "x"), Put("a", 0, b"", "y"), Put("b", 0, b"", "x"), Put("c", 0, b""))
    ask(machine, Get(("a",)), Get(("a",)), Get(("b",)), Get(("c",), 10, Then.DONE))
    first = run(machine, Done(2)).effects
    assert (list(first.ended), list(first.ended_items)) == ([], [("a", "y")])
    second = run(machine, Done(1), Later(3)).effects
    assert (list(second.ended), list(second.ended_items)) == (["a"], [("a", "x")])
    third = run(machine, Tick(), now_ms=100).effects
    assert (list(third.ended), list(third.ended_items)) == (["c"], [])


def test_clock_follows_the_leader_and_never_goes_back(machine: Machine) -> None:
    for now_ms, clock_ms in ((500, 500), (400, 500), (501, 501)):
        run(machine, Tick(), now_ms=now_ms)
        assert machine.clock_ms == clock_ms


def test_entry_applied_twice_is_a_bug_that_stops(machine: Machine) -> None:
    machine.apply(5, 0, 0, [Put("q", 0, b"")])
    with pytest.raises(AssertionError, match="entry 5 after entry 5"):
        machine.apply(5, 0, 0, [Put("q", 0, b"")])
    assert machine.total(None).jobs == 1


def test_lead_is_remembered(machine: Machine) -> None:
    assert (machine.leader, machine.term, machine.cluster_id) == (None, 0, None)
    run(machine, lead("n2", term=4))
    assert (machine.leader, machine.term, machine.cluster_id) == ("n2", 4, b"sixteen bytes id")


def test_cluster_id_comes_from_the_first_lead(machine: Machine) -> None:
    run(machine, lead("n2"))
    run(machine, Lead("n1", 2, ("n1",), b"other", 0))
    assert machine.cluster_id == b"sixteen bytes id"
