"""The choice of the queue that gives the next job, by each policy (spec/state-machine 4.1 to 4.3)."""

from __future__ import annotations

from collections import Counter

import pytest

from sockpqd.core import (
    ConfigureQueue,
    Due,
    End,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    InTurn,
    Later,
    Machine,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Tick,
)
from sockpqd.core.limits import PORTION_MAX
from sockpqd.core.store.policies.choice import splitmix64
from tests.core.helpers.logs import LogEntry, ask, restored, run, snapshot_of


def filled(**jobs: int) -> Machine:
    """Return a machine with this many jobs in each of these queues."""
    machine = Machine()
    ask(machine, *[Put(queue, 0, b"") for queue, count in jobs.items() for _ in range(count)])
    return machine


def queues(machine: Machine, operation: GetWith) -> str:
    """Return the queues of the jobs that this hands out."""
    (reply,) = ask(machine, operation)
    assert isinstance(reply, HandedMany | Handed)
    return "".join(job.queue for job in (reply.jobs if isinstance(reply, HandedMany) else (reply,)))


@pytest.mark.parametrize(("asked", "after", "expected"), [
    (("b", "c", "a"), None, "bcabcb"), (None, None, "abcabb"), (None, "a", "bcabca"), (None, "bb", "cabcab"),
])
def test_rr_takes_turns_and_skips_the_empty(asked: tuple[str, ...] | None, after: str | None, expected: str) -> None:
    machine = filled(a=2, b=3, c=2) if asked is None else filled(a=1, b=3, c=2)
    assert queues(machine, GetWith(Get(asked), 6, Policy.RR, turn=InTurn(after)))[:4] == expected[:4]


def test_order_drains_the_first_name_and_sorted_the_least() -> None:
    machine = filled(a=2, b=2)
    assert queues(machine, GetWith(Get(("b", "a")), 1, Policy.ORDER)) == "b"
    assert queues(machine, GetWith(Get(("b", "a")), 1, Policy.SORTED)) == "a"
    assert queues(machine, GetWith(Get(None), 2, Policy.ORDER)) == "ab"


def test_ties_of_priority_take_turns_and_only_these_turn() -> None:
    machine = filled(a=2, b=2)
    ask(machine, Put("b", 5, b""))
    for asked in (("a", "b"), None):
        (reply,) = ask(machine, GetWith(Get(asked), 3, Policy.PRIORITY, turn=InTurn()))
        assert isinstance(reply, HandedMany)
        assert [(job.queue, job.turned is True) for job in reply.jobs] == [("b", False), ("a", True), ("b", True)]
        ask(machine, *[Later(job.id) for job in reply.jobs[1:]], Later(reply.jobs[0].id))
    assert queues(machine, GetWith(Get(None), 3, Policy.PRIORITY, turn=InTurn("a"))) == "bba"


@pytest.mark.parametrize("item", [None, "i"])
def test_ties_among_all_queues_go_on_by_name_behind_the_last_turn(item: str | None) -> None:
    machine = Machine()
    ask(machine, *[Put(queue, priority, b"", "i") for queue, priority in (
        ("a", 2), ("a", 0), ("b", 2), ("b", 0), ("c", 1), ("c", 0),
    )])
    twin = restored(snapshot_of(machine))
    get = GetWith(Get(None, item=item), 6, Policy.PRIORITY, turn=InTurn("b"))
    (reply,) = ask(machine, get)
    assert isinstance(reply, HandedMany)
    turns = [(job.queue, job.turned is True) for job in reply.jobs]
    assert turns == [("a", True), ("b", False), ("c", False), ("b", True), ("c", True), ("a", False)]
    one_by_one: list[tuple[str, bool]] = []
    for _ in turns:
        last = next((queue for queue, turned in reversed(one_by_one) if turned), "b")
        (reply,) = ask(twin, GetWith(get.get, policy=Policy.PRIORITY, turn=InTurn(last)))
        assert isinstance(reply, Handed)
        one_by_one.append((reply.queue, reply.turned is True))
    assert one_by_one == turns


def test_the_oldest_is_the_queue_whose_first_job_has_been_ready_longest() -> None:
    machine = Machine()
    run(machine, Put("b", 0, b"old"), Put("a", 0, b"young"))
    machine.apply(2, 1000, 0, [Put("b", 7, b"urgent"), Put("c", 0, b"")])
    for asked in (None, ("a", "b", "c")):
        assert queues(restored(snapshot_of(machine)), GetWith(Get(asked), 4, Policy.OLDEST)) == "abbc"


def test_a_job_that_comes_back_to_its_old_place_has_not_been_ready_since_then() -> None:
    machine = Machine()
    machine.apply(1, 1000, 0, [Put("a", 0, b""), Get(("a",))])
    machine.apply(2, 2000, 0, [Put("b", 0, b""), GetWith(Get(None), policy=Policy.OLDEST), Later(2)])
    machine.apply(3, 3000, 0, [End(1, How.LATER, first=True), Put("c", 0, b"")])
    machine = restored(snapshot_of(machine))
    assert queues(machine, GetWith(Get(None), 3, Policy.OLDEST)) == "bac"


def test_a_delayed_job_is_ready_since_its_time() -> None:
    machine = Machine()
    machine.apply(1, 1000, 0, [PutWith(Put("a", 0, b""), Due(500))])
    machine.apply(2, 1200, 0, [Put("b", 0, b"")])
    machine.apply(3, 2000, 0, [Tick()])
    assert queues(machine, GetWith(Get(None), 2, Policy.OLDEST)) == "ba"


def test_the_index_of_the_oldest_grows_in_portions_and_is_the_same_after_a_restart() -> None:
    machine = Machine()
    names = [f"q{number:04}" for number in range(PORTION_MAX * 2 + 5)]
    ask(machine, *[Put(name, 0, b"") for name in reversed(names)])
    assert machine.next_due_ms() is None
    log = [LogEntry(machine.clock_ms + 1, number, [GetWith(Get(None), 1, Policy.OLDEST)]) for number in range(4)]
    twin = machine
    taken = []
    for entry in log:
        taken.append([reply.jobs[0].queue for reply in machine.apply(machine.index + 1, *entry).replies])
        twin = restored(snapshot_of(machine))
        assert snapshot_of(twin) == snapshot_of(machine)
        assert twin.next_due_ms() == machine.next_due_ms()
        machine = twin
    assert [name for (name,) in taken] == [names[PORTION_MAX - 1], names[2 * PORTION_MAX - 1], names[-1], names[-2]]
    assert machine.next_due_ms() is None


def shares(machine: Machine, asked: tuple[str, ...] | None, draws: int) -> dict[str, float]:
    """Return the percentage of each queue among this many jobs, handed out ten thousand at a time and put back."""
    counts: Counter[str] = Counter()
    for number in range(draws // 1000):
        get = GetWith(Get(asked), 1000, Policy.WEIGHT)
        (reply,) = machine.apply(machine.index + 1, 0, splitmix64(number), [get]).replies
        assert isinstance(reply, HandedMany)
        assert len(reply.jobs) == 1000
        counts.update(job.queue for job in reply.jobs)
        ask(machine, End(
            tuple(job.id for job in reply.jobs), How.DONE
        ), *[Put(job.queue, 0, b"") for job in reply.jobs])
    return {queue: count * 100 / draws for queue, count in counts.items()}


@pytest.mark.parametrize("asked", [("c", "a", "b"), None])
def test_weights_of_1_2_and_7_give_shares_of_10_20_and_70_percent(asked: tuple[str, ...] | None) -> None:
    machine = filled(a=1000, b=1000, c=1000)
    ask(machine, ConfigureQueue("b", QueueChange(weight=2)), ConfigureQueue("c", QueueChange(weight=7)))
    found = shares(machine, asked, 20_000)
    assert abs(found["a"] - 10) < 2
    assert abs(found["b"] - 20) < 2
    assert abs(found["c"] - 70) < 2


def test_weights_of_1_and_3_with_limits_hold_both() -> None:
    machine = filled(a=8, b=8)
    for name, weight in (("a", 1), ("b", 3)):
        ask(machine, ConfigureQueue(name, QueueChange(weight=weight, limit=3)))
    running: list[Handed] = []
    free: Counter[str] = Counter()
    for number in range(20_000):
        held = Counter(job.queue for job in running)
        get = GetWith(Get(None), policy=Policy.WEIGHT)
        (reply,) = machine.apply(machine.index + 1, 0, splitmix64(number), [get]).replies
        assert isinstance(reply, Handed)
        assert held[reply.queue] < 3                # the LIMIT
        if max(held.values(), default=0) < 3:
            free[reply.queue] += 1                  # both could have given it
        running.append(reply)
        if len(running) == 4:
            ended = running.pop(0)
            ask(machine, End((ended.id,), How.DONE), Put(ended.queue, 0, b""))
    assert free.total() > 5000
    assert abs(100 * free["b"] / free.total() - 75) < 2


def test_weights_follow_changes_and_queues_that_come_and_go() -> None:
    machine = filled(a=1, b=1)
    ask(machine, ConfigureQueue("b", QueueChange(weight=1_000_000)))
    assert queues(machine, GetWith(Get(None), 2, Policy.WEIGHT)) == "ba"
    ask(machine, Later(1), Later(2), ConfigureQueue("b", QueueChange(weight=1)))
    ask(machine, ConfigureQueue("a", QueueChange(weight=1_000_000)))
    assert queues(restored(snapshot_of(machine)), GetWith(Get(None), 2, Policy.WEIGHT)) == "ab"
