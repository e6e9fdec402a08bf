"""The law of work: what an operation costs bounds the steps that it takes, a step being a line of Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pytest

from sockpqd.cluster.limits import PLAIN_WORK
from sockpqd.core import (
    Allowance,
    Await,
    Batch,
    BindQueue,
    ConfigureGroup,
    ConfigureQueue,
    Done,
    Due,
    End,
    Get,
    GetWith,
    HandedMany,
    How,
    Later,
    Machine,
    Move,
    Number,
    Operation,
    Overflow,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Sched,
    Tick,
    ToTopic,
    UnbindQueue,
    cost,
)
from sockpqd.core.handlers.cost import BOUND, DROP, FAIR, ROUTE_STEPS
from sockpqd.core.limits import OPERATION_WORK_MAX, STEP
from sockpqd.core.ops import replies
from tests.core.helpers.logs import ask

STEPS_PER_WORK = 15
MANY = 1000
FAIR_JOBS = 2000


def steps_of(machine: Machine, operation: Operation) -> int:
    """Return how many lines it executes."""
    steps = 0

    def trace(frame: object, event: str, argument: object) -> Callable[..., Any]:
        nonlocal steps
        steps += event == "line"
        return trace

    sys.settrace(trace)
    try:
        ask(machine, operation)
    finally:
        sys.settrace(None)
    return steps


def work_of(machine: Machine, operation: Operation) -> int:
    return cost(operation)[1] + machine.known_work(operation)


def fill(machine: Machine, operations: Iterable[Operation]) -> None:
    left = iter(operations)
    while portion := list(islice(left, 500)):
        ask(machine, *portion)


@pytest.fixture
def machine() -> Machine:
    """Return a machine with topics and groups."""
    machine = Machine()
    fill(machine, (BindQueue("t", f"bound{number}", "*.a.#") for number in range(MANY)))
    fill(machine, (PutWith(Put(f"fair{number % 9}", 0, b"", f"i{number}"), group=f"g{number % 300}")
                   for number in range(FAIR_JOBS)))
    return machine


PUTS: dict[str, Batch] = {
    "plain": Batch((Put("q", 0, b""),) * MANY, atomic=False),
    "queues": Batch(tuple(Put(f"q{number}", 0, b"") for number in range(MANY)), atomic=False),
    "items": Batch(tuple(Put("q", 0, b"", f"i{number}") for number in range(MANY)), atomic=False),
    "keys": Batch(tuple(PutWith(Put("q", 0, b""), key=f"k{number}") for number in range(MANY)), atomic=False),
    "groups": Batch(tuple(PutWith(Put("q", 0, b""), group=f"g{number}") for number in range(MANY)), atomic=False),
    "all": Batch(tuple(
        PutWith(Put(f"q{number}", 0, b"", f"i{number}"), group=f"g{number}", key="k") for number in range(MANY)
    ), atomic=False),
    "transaction": Batch(tuple(
        PutWith(Put(f"q{number}", 0, b"", f"i{number}"), group=f"g{number}", key="k") for number in range(MANY)
    ), atomic=True),
}


@pytest.mark.parametrize("operation", PUTS.values(), ids=PUTS)
def test_puts_are_as_much_work_as_they_cost(machine: Machine, operation: Batch) -> None:
    work = work_of(machine, operation)
    assert steps_of(machine, operation) <= STEPS_PER_WORK * work


def test_a_put_to_a_topic_is_as_much_work_as_queues_are_bound(machine: Machine) -> None:
    operation = PutWith(Put("", 0, b""), targets=ToTopic("t", "b.a.c"))
    assert steps_of(machine, operation) <= STEPS_PER_WORK * work_of(machine, operation)


def test_hand_outs_by_group_and_their_ends_are_as_much_work_as_they_cost(machine: Machine) -> None:
    get = GetWith(Get(tuple(f"fair{number}" for number in range(9))), 10_000, Policy.FAIR)
    assert steps_of(machine, get) <= STEPS_PER_WORK * work_of(machine, get)
    (reply,) = ask(machine, get)
    assert isinstance(reply, HandedMany)
    for how in (How.DONE, How.LATER):
        end = End(tuple(job.id for job in islice(reply.jobs, how * 50, how * 50 + 50)), how)
        assert steps_of(machine, end) <= STEPS_PER_WORK * work_of(machine, end)


ENDS: dict[str, Callable[[tuple[int, ...]], Operation]] = {
    "LATER": lambda ids: End(ids, How.LATER),
    "BURY": lambda ids: End(ids, How.BURY),
    "transaction of DONE": lambda ids: Batch(tuple(map(Done, ids)), atomic=True),
    "transaction of LATER": lambda ids: Batch(tuple(map(Later, ids)), atomic=True),
    "transaction of BURY": lambda ids: Batch(tuple(End(number, How.BURY) for number in ids), atomic=True),
    "transaction of MOVE": lambda ids: Batch(tuple(Move(number, "to", 0) for number in ids), atomic=True),
}


@pytest.mark.parametrize("operation", ENDS.values(), ids=ENDS)
def test_ends_of_the_only_jobs_of_groups_are_as_much_work_as_they_cost(
    machine: Machine, operation: Callable[[tuple[int, ...]], Operation]
) -> None:
    """No group has a job to hand out, so that each must be ranked again."""
    get = GetWith(Get(tuple(f"fair{number}" for number in range(9))), 10_000, Policy.FAIR)
    ids: list[int] = []
    while isinstance(reply := ask(machine, get)[0], HandedMany):
        ids += [job.id for job in reply.jobs]
    end = operation(tuple(ids[:200]))
    work = work_of(machine, end)
    assert steps_of(machine, end) <= STEPS_PER_WORK * work


def test_what_is_asked_of_one_batch_is_no_more_than_a_topic_may_put() -> None:
    machine = Machine()
    fill(machine, (BindQueue("t", f"bound{number}") for number in range(MANY)))
    put = PutWith(Put("", 0, b""), targets=ToTopic("t", ""))
    assert work_of(machine, Batch((put,) * 100, atomic=False)) < 250_000


def test_a_get_with_grants_looks_at_each_of_its_queues_once() -> None:
    machine = Machine()
    names = tuple(f"rated{number}" for number in range(300))
    for name in names:
        ask(machine, ConfigureQueue(name, QueueChange(rate=1, per_ms=1000)), Put(name, 0, b""))
    grants = tuple(Allowance(f"queue:{name}", 1) for name in names)
    operation = GetWith(Get(names), count=1, free=grants)
    assert steps_of(machine, operation) <= STEPS_PER_WORK * work_of(machine, operation)


def test_a_put_that_may_drop_another_job_is_more_work() -> None:
    machine = Machine()
    ask(machine, ConfigureQueue("full", QueueChange(capacity=10, overflow=Overflow.DROPOLDEST)),
        ConfigureQueue("other", QueueChange(capacity=10)))
    delayed = Due(1000)
    assert machine.known_work(PutWith(Put("full", 0, b""), delayed)) == DROP
    assert machine.known_work(PutWith(Put("other", 0, b""), delayed)) == 0
    assert machine.known_work(Batch((PutWith(Put("full", 0, b""), delayed),) * 3, atomic=False)) == 3 * DROP


def bind_deep(machine: Machine) -> None:
    """Bind a queue to the topic "deep" by MANY patterns, each of which looks at every word of a key."""
    fill(machine, (BindQueue("deep", "bound", f"#.a{number}.#") for number in range(MANY)))


def put_of(words: int) -> PutWith:
    return PutWith(Put("", 0, b""), targets=ToTopic("deep", ".".join(["b"] * words)))


@pytest.mark.parametrize("words", [1, 10, 60])
def test_a_batch_to_a_topic_is_as_much_work_as_patterns_are_compared(machine: Machine, words: int) -> None:
    bind_deep(machine)
    operation = Batch((put_of(words),) * (180 // words), atomic=False)
    assert steps_of(machine, operation) <= STEPS_PER_WORK * work_of(machine, operation)


def test_a_batch_compares_no_more_words_than_an_entry_has_time_for(machine: Machine) -> None:
    bind_deep(machine)
    put, refused = put_of(60), replies.DATA_TOO_LARGE
    assert ask(machine, Batch((put,) * 5, atomic=True)) == [replies.Results((replies.Spread(0),) * 5)]
    assert ask(machine, Batch((Put("q", 0, b""), *(put,) * 6), atomic=True)) == [replies.Aborted(7, refused)]
    assert machine.ready("q") == 0
    answers = *(replies.Spread(0),) * 5, refused, replies.STORED
    assert ask(machine, Batch((*(put,) * 6, Put("q", 0, b"")), atomic=False)) == [replies.Results(answers)]
    assert ask(machine, put) == [replies.Spread(0)]


def test_bindings_that_have_gone_are_no_work(machine: Machine) -> None:
    before = work_of(machine, put_of(60))
    bind_deep(machine)
    assert work_of(machine, put_of(60)) > before + MANY * 60 // ROUTE_STEPS
    fill(machine, (UnbindQueue("deep", "bound", f"#.a{number}.#") for number in range(0, MANY, 2)))
    ask(machine, BindQueue("deep", "all", None))
    assert work_of(machine, put_of(60)) == before + (MANY // 2 + 1) * (BOUND + FAIR) + MANY // 2 * 60 // ROUTE_STEPS
    ask(machine, UnbindQueue("deep", None))
    assert work_of(machine, put_of(60)) == before


CHANGES: dict[str, tuple[QueueChange, QueueChange]] = {
    "SCHED": (QueueChange(sched=Sched.GROUPS), QueueChange(sched=Sched.FAIR)),
    "GROUPLIMIT": (QueueChange(sched=Sched.FAIR), QueueChange(group_limit=1)),
    "GROUPRATE": (QueueChange(sched=Sched.FAIR, group_rate=10_000, group_per_ms=1000), QueueChange(group_rate=0)),
    "GROUPORDER": (QueueChange(sched=Sched.FAIR), QueueChange(group_order=True)),
}


@pytest.mark.parametrize(("before", "change"), CHANGES.values(), ids=CHANGES)
def test_settings_of_groups_are_as_much_work_as_the_queue_has_groups(before: QueueChange, change: QueueChange) -> None:
    machine = Machine()
    ask(machine, ConfigureQueue("many", before))
    fill(machine, (PutWith(Put("many", 0, b""), group=f"g{number % MANY}") for number in range(2 * MANY)))
    ask(machine, *[GetWith(Get(("many",)), 10)] * 20)
    operation = ConfigureQueue("many", change)
    assert cost(operation)[1] != PLAIN_WORK         # else the leader does not ask how much there is beyond
    work = work_of(machine, operation)
    assert work > MANY
    assert steps_of(machine, operation) <= STEPS_PER_WORK * work


def test_an_entry_is_over_when_it_has_listed_many_groups_again() -> None:
    machine = Machine()
    fill(machine, (PutWith(Put("many", 0, b""), group=f"g{number}") for number in range(2 * MANY)))
    kinds = [ConfigureQueue("many", QueueChange(sched=sched)) for sched in (Sched.FAIR, Sched.GROUPS)]
    assert 1 <= len(ask(machine, *kinds * 10)) <= 3


def test_other_settings_are_plain_work_however_many_groups_there_are() -> None:
    machine = Machine()
    fill(machine, (PutWith(Put("many", 0, b""), group=f"g{number}") for number in range(MANY)))
    assert work_of(machine, ConfigureQueue("many", QueueChange(weight=3))) == PLAIN_WORK


@pytest.mark.parametrize("item", [None, "i"])
def test_a_choice_by_fair_among_many_queues_is_as_much_work_as_their_names(item: str | None) -> None:
    """However many jobs are asked for: each is chosen among all of the queues."""
    machine, names = Machine(), tuple(f"q{number}" for number in range(4 * MANY))
    fill(machine, (Put(name, 0, b"", item) for name in (*names, *names)))
    ask(machine, GetWith(Get(names[:1], item=item), policy=Policy.FAIR))        # the first use offers all groups
    for _ in range(8):
        ask(machine, Tick())
    operation = GetWith(Get(names, item=item), 2000, Policy.FAIR)
    steps = steps_of(machine, operation)
    assert steps <= STEPS_PER_WORK * max(work_of(machine, operation), OPERATION_WORK_MAX)


def test_a_group_opens_and_closes_as_work_in_each_queue_where_it_is_ranked() -> None:
    machine, queues = Machine(), 200
    fill(machine, (PutWith(Put(f"q{number}", 0, b""), group=group)
                   for number in range(queues) for group in ("g", *(f"g{one}" for one in range(12)))))
    ask(machine, GetWith(Get(("q0",)), policy=Policy.FAIR))
    for _ in range(8):
        ask(machine, Tick())
    for operation in (
        ConfigureGroup("g", paused=True), ConfigureGroup("g", paused=False), ConfigureGroup("g", limit=1),
    ):
        assert cost(operation)[1] != PLAIN_WORK
        work = work_of(machine, operation)
        assert work > queues
        assert steps_of(machine, operation) <= STEPS_PER_WORK * work
    operations = [ConfigureGroup("g", paused=True), ConfigureGroup("g", paused=False)] * 50
    assert 1 <= len(ask(machine, *operations)) <= 20


def test_awaiting_a_large_record_is_as_much_work_as_giving_so_many_bytes() -> None:
    machine, size = Machine(), 4 << 20
    ask(machine, ConfigureQueue("q", QueueChange(retain_ms=60_000)))
    (reply,) = ask(machine, PutWith(Put("q", 0, bytes(size)), number=True))
    assert isinstance(reply, replies.StoredNumber)
    await_end = Await(Number(reply.number))
    assert machine.known_work(await_end) == 0
    ask(machine, Get(("q",)), Done(1))
    assert cost(await_end)[1] != PLAIN_WORK
    assert size // STEP < machine.known_work(await_end) < 2 * size // STEP
    assert machine.known_work(Await(Number(5))) == 0
