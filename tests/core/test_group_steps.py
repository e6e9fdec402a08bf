"""A job costs little more however many groups, held jobs or queues there are (spec/fair 7).

Counted in calls of Python functions, which are most of what a command costs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sockpqd.core import (
    ConfigureGroup,
    ConfigureQueue,
    Done,
    Get,
    GetWith,
    Handed,
    Machine,
    Operation,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Sched,
)
from sockpqd.core.fair.first_jobs import WIDE
from tests.core.helpers.logs import restored, snapshot_of
from tests.core.records.test_calls import calls_of

NOW_MS = 1_700_000_000_000
FEW, MANY = 300, 7000
MORE = 15           # calls for twenty times as many: sorted lists are trees of few levels
GET = Get(("q",))
BY_FAIR = GetWith(Get(None), policy=Policy.FAIR)
OF_ITEM = Get(("q",), item="i")


def execute(machine: Machine, operations: list[Operation]) -> None:
    """Execute the operations in entries of a thousand."""
    for start in range(0, len(operations), 1000):
        left = operations[start:start + 1000]
        while left:
            left = left[len(machine.apply(machine.index + 1, NOW_MS, 0, left).replies):]


def put(group: str, queue: str = "q", item: str | None = None) -> Operation:
    """A job of the group."""
    return PutWith(Put(queue, 0, b"x", item), group=group)


def groups_with_settings(count: int) -> Machine:
    """This many groups with a LIMIT, each with a job."""
    machine = Machine()
    execute(machine, [ConfigureGroup(f"g{number}", limit=1) for number in range(count)])
    execute(machine, [ConfigureQueue("q", QueueChange(sched=Sched.GROUPS), create=True)])
    execute(machine, [put(f"g{number}") for number in range(count)])
    return machine


def groups_in_order(count: int) -> Machine:
    """This many groups with two jobs, in a queue with GROUPORDER."""
    machine = Machine()
    execute(machine, [ConfigureQueue("q", QueueChange(sched=Sched.GROUPS, group_order=True), create=True)])
    execute(machine, [put(f"g{number}") for number in range(count)] * 2)
    return machine


def jobs_of_a_paused_group(count: int) -> Machine:
    """This many jobs of a paused group before another group's."""
    machine = Machine()
    execute(
        machine,
        [ConfigureQueue("q", QueueChange(sched=Sched.GROUPS), create=True), ConfigureGroup("held", paused=True)],
    )
    execute(machine, [*[put("held")] * count, *[put("other")] * 100])
    return machine


def jobs_of_an_item(count: int) -> Machine:
    """This many jobs of an item, of three groups of which only the last one is open."""
    machine = Machine()
    execute(machine, [ConfigureQueue("q", QueueChange(sched=Sched.GROUPS), create=True)])
    execute(machine, [ConfigureGroup(group, paused=True) for group in ("g0", "g1")])
    execute(machine, [put(f"g{number * 3 // count}", item="i") for number in range(count)])
    return machine


def one_group_in_many_queues(count: int) -> Machine:
    """A group with LIMIT 1 that has a job in each of this many queues."""
    machine = Machine()
    names = [f"q{number}" for number in range(count)]
    execute(machine, [ConfigureQueue(name, QueueChange(sched=Sched.FAIR), create=True) for name in names])
    execute(machine, [ConfigureGroup("g", limit=1), *[put("g", name) for name in names]])
    return machine


def one_of_many_groups_in_many_queues(count: int) -> Machine:
    """A group with LIMIT 1 that has a job in each of this many queues, behind those of nine others."""
    machine = Machine()
    names = [f"q{number}" for number in range(count)]
    execute(machine, [ConfigureQueue(name, QueueChange(sched=Sched.FAIR), create=True) for name in names])
    execute(machine, [put(f"g{number}", name) for name in names for number in range(9)])
    execute(machine, [ConfigureGroup("g", limit=1), *[put("g", name) for name in [*names, *["q7"] * 9]]])
    execute(machine, [ConfigureGroup(f"g{number}", paused=True) for number in range(9)])
    return machine


def of_a_job(machine: Machine, get: Operation) -> int:
    """The calls of a GET and a DONE, the most of several."""
    most = 0
    for _ in range(5):
        taking, (job,) = calls_of(machine, [get])
        assert isinstance(job, Handed)
        ending, _ = calls_of(machine, [Done(job.id)])
        most = max(most, taking + ending)
    return most


@pytest.mark.parametrize(("made", "get"), [
    (groups_with_settings, GET), (groups_in_order, GET), (jobs_of_a_paused_group, GET),
    (one_group_in_many_queues, BY_FAIR), (one_of_many_groups_in_many_queues, BY_FAIR),
    (one_of_many_groups_in_many_queues, GetWith(Get(("q7",)), policy=Policy.FAIR)),
    (jobs_of_an_item, OF_ITEM), (jobs_of_an_item, GetWith(OF_ITEM, policy=Policy.FAIR)),
    (jobs_of_an_item, GetWith(Get(None, item="i"), policy=Policy.OLDEST)),
])
def test_a_job_costs_little_more_however_many_there_are(made: Callable[[int], Machine], get: Operation) -> None:
    assert of_a_job(made(MANY), get) <= of_a_job(made(FEW), get) + MORE


def test_a_node_that_began_with_a_snapshot_counts_the_same_work() -> None:
    machine = Machine()
    names = [f"q{number}" for number in range(WIDE)]
    execute(machine, [ConfigureQueue(name, QueueChange(sched=Sched.FAIR), create=True) for name in names])
    execute(machine, [put(f"g{number}", name) for name in names for number in range(9)])
    execute(machine, [GetWith(Get((name,)), policy=Policy.FAIR) for name in names] * 3)      # six groups are left
    again = restored(snapshot_of(machine))
    many = GetWith(Get(None), 300, Policy.FAIR)
    assert machine.apply(machine.index + 1, NOW_MS, 0, [many]) == again.apply(again.index + 1, NOW_MS, 0, [many])


def test_the_work_for_a_job_of_an_item_is_counted_by_its_groups() -> None:
    spent = {}
    for count in (FEW, MANY):
        machine = jobs_of_an_item(count)
        again = restored(snapshot_of(machine))
        for one in (machine, again):
            one.apply(one.index + 1, NOW_MS, 0, [OF_ITEM, GetWith(OF_ITEM, policy=Policy.FAIR)])
        assert machine._own.spent == again._own.spent
        spent[count] = machine._own.spent
    assert spent[FEW] == spent[MANY]
