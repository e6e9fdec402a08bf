"""ITEM RETRY: all jobs of an item that are dead or buried come back."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    End,
    Get,
    How,
    ItemNotFound,
    JobState,
    Machine,
    Moved,
    Put,
    PutWith,
    QueueChange,
    RetryItem,
    Tick,
    Until,
)
from sockpqd.core.limits import PORTION_MAX
from sockpqd.core.ops.queues import ConfigureQueue
from tests.core.helpers.logs import ask, run


def bodies(machine: Machine, queue: str) -> list[bytes]:
    """Return the data of the READY jobs of a queue, in their order."""
    return [bytes(job.data) for job in machine.peek_queue(queue, JobState.READY, 10)]


@pytest.fixture
def machine() -> Machine:
    """Return one with dead and buried jobs of an item in several queues, and dead ones of others."""
    machine = Machine()
    ask(machine, ConfigureQueue("p", QueueChange(dead="lost"), create=True))
    ask(machine, *[Put(queue, 0, b"%s%d" % (queue.encode(), at), item)
                   for at, item in enumerate(["x", "y", "x", None]) for queue in ("q", "p")])
    for at in range(8):
        ask(machine, Get(("q", "p")), End(at + 1, How.BURY, here=at == 4))
    return machine


def test_dead_and_buried_jobs_of_the_item_come_back_and_no_others(machine: Machine) -> None:
    assert bodies(machine, "q") == bodies(machine, "p") == []
    assert ask(machine, RetryItem("x")) == [Moved(4)]
    assert {*bodies(machine, "q"), *bodies(machine, "p")} == {b"q0", b"q2", b"p0", b"p2"}
    assert [machine.peek_queue(queue, JobState.READY, 1)[0].attempts for queue in ("q", "p")] == [0, 0]
    found = machine.item("x")
    assert found is not None
    assert (found.ready, found.dead, found.buried) == (4, 0, 0)
    other = machine.item("y")
    assert other is not None
    assert other.dead == 2
    assert ask(machine, RetryItem("x")) == [Moved(0)]


def test_item_without_jobs_is_not_found(machine: Machine) -> None:
    assert ask(machine, RetryItem("z")) == [ItemNotFound()]
    assert ask(machine, RetryItem("z", left=5)) == [Moved(0)]


def test_what_comes_back_is_told_and_can_fail_again(machine: Machine) -> None:
    machine.record(["PUT", "FAILI", "FINQ", "FINI"])
    told = [(event.type, event.name) for event in run(machine, RetryItem("x")).events]
    assert sorted(told) == [("PUT", "p"), ("PUT", "p"), ("PUT", "q"), ("PUT", "q")]
    ask(machine, Get(("q",)))
    assert [event.type for event in run(machine, End(9, How.BURY)).events] == ["FAILI"]


def test_who_waits_for_the_failure_stays_ready() -> None:
    machine = Machine()
    ask(machine, Put("q", 0, b"", "x"), Get(None), PutWith(Put("w", 0, b"w"), after=("x",), until=Until.FAILED))
    ask(machine, End(1, How.BURY), RetryItem("x"))
    ask(machine, Tick())
    assert bodies(machine, "w") == [b"w"]


def test_more_than_a_portion_comes_in_several_and_later_deaths_are_not_meant() -> None:
    machine = Machine()
    count = PORTION_MAX + 5
    ask(machine, *[Put("q", 0, b"", "x")] * count, *[Get(None)] * count)
    ask(machine, *[End(number, How.BURY) for number in range(1, count + 1)])
    assert ask(machine, RetryItem("x")) == [Moved(PORTION_MAX, 5)]
    ask(machine, Get(("q",)), End(count + 1, How.BURY))
    assert ask(machine, RetryItem("x", left=5)) == [Moved(5)]
    found = machine.item("x")
    assert found is not None
    assert found.dead == 1
