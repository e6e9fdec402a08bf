"""KEEP: keys of finished jobs are forgotten as fast as they come, go with their queue, and there is an end to them."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    Batch,
    ConfigureQueue,
    DeleteQueue,
    Done,
    End,
    Get,
    GetWith,
    How,
    JobExists,
    Machine,
    Put,
    PutWith,
    QueueChange,
    Stored,
    Tick,
)
from sockpqd.core.limits import FORGOTTEN_KEYS_MAX
from tests.core.helpers.logs import ask, restored, run, snapshot_of

KEEP_MS = 10_000


def keeping(queue: str = "q", keep_ms: int = KEEP_MS) -> ConfigureQueue:
    return ConfigureQueue(queue, QueueChange(keep_ms=keep_ms))


def finish(machine: Machine, *keys: str, now_ms: int, queue: str = "q") -> None:
    """Jobs with these keys are put, taken and done."""
    run(machine, *[PutWith(Put(queue, 0, b""), key=key) for key in keys], now_ms=now_ms)
    first = machine.next_id
    while machine.total(queue).jobs:
        run(machine, GetWith(Get((queue,)), len(keys)), now_ms=now_ms)
    run(machine, End(tuple(range(first, first + len(keys))), How.DONE), now_ms=now_ms)
    assert machine.total(queue).jobs == machine.total(queue).running == 0


def kept(machine: Machine) -> int:
    return len(machine._state.retained_keys)


def test_keys_are_forgotten_as_fast_as_they_are_remembered() -> None:
    """60 a second for a quarter of an hour, in a few large entries: never more than the last ten seconds' keys."""
    machine = Machine()
    run(machine, keeping())
    number = 0
    for second in range(0, 900, 50):
        finish(machine, *[f"k{key}" for key in range(number, number + 3000)], now_ms=1000 * second)
        number += 3000
        assert kept(machine) <= 3000
    assert kept(machine) == 3000


def test_the_time_of_a_key_is_waited_for() -> None:
    machine = Machine()
    run(machine, keeping())
    finish(machine, *[f"k{key}" for key in range(3 * FORGOTTEN_KEYS_MAX)], now_ms=100)
    due_ms = machine.next_due_ms()
    assert due_ms is not None
    assert KEEP_MS + 100 <= due_ms < KEEP_MS + 100 + 1024
    assert restored(snapshot_of(machine)).next_due_ms() == due_ms
    run(machine, Tick(), now_ms=due_ms - 1024)
    assert kept(machine) == 3 * FORGOTTEN_KEYS_MAX
    for left in (2, 1, 0):
        assert machine.next_due_ms() == due_ms
        run(machine, Tick(), now_ms=due_ms)
        assert kept(machine) == left * FORGOTTEN_KEYS_MAX
    assert machine.next_due_ms() is None


@pytest.mark.parametrize("end", [DeleteQueue("q", False), keeping(keep_ms=0)])
def test_keys_go_with_the_queue_and_with_the_setting(end: DeleteQueue | ConfigureQueue) -> None:
    machine = Machine()
    run(machine, keeping(), keeping("other"))
    finish(machine, "k", now_ms=0)
    finish(machine, "k", now_ms=0, queue="other")
    again = PutWith(Put("q", 0, b""), key="k")
    assert ask(machine, again, end, again) == [JobExists(), Accepted(), Stored()]
    assert ask(machine, PutWith(Put("other", 0, b""), key="k")) == [JobExists()]
    assert kept(machine) == 1


def test_a_queue_of_many_keys_is_freed_little_by_little() -> None:
    machine = Machine()
    run(machine, keeping())
    finish(machine, *[f"k{key}" for key in range(3 * FORGOTTEN_KEYS_MAX)], now_ms=0)
    run(machine, DeleteQueue("q", False))
    assert kept(machine) == 0
    left = [len(keys.until_ms) for keys in machine._state.retained_keys._dropped]
    entries = 0
    while machine._state.retained_keys._dropped:
        assert machine.next_due_ms() == machine.clock_ms        # so that it goes on while nobody asks for anything
        run(machine, Tick())
        entries += 1
    assert left == [2 * FORGOTTEN_KEYS_MAX]
    assert entries == 2
    assert machine.next_due_ms() is None
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)


def test_of_too_many_keys_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.limits.RETAINED_KEYS_MAX", 3)
    machine = Machine()
    run(machine, keeping(), keeping("other"))
    finish(machine, "other", now_ms=0, queue="other")
    for number in range(5):
        finish(machine, f"k{number}", now_ms=number)
    replies = ask(machine, *[PutWith(Put("q", 0, b""), key=f"k{number}") for number in range(5)], now_ms=10)
    assert replies == [Stored(), Stored(), JobExists(), JobExists(), JobExists()]
    assert kept(machine) == 4


def test_a_batch_that_is_taken_back_has_forgotten_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.limits.RETAINED_KEYS_MAX", 2)
    machine = Machine()
    run(machine, keeping())
    finish(machine, "a", "b", now_ms=0)
    run(machine, *[PutWith(Put("q", 0, b""), key=key) for key in "cd"], GetWith(Get(("q",)), 2), now_ms=5)
    before = list(machine._state.retained_keys)
    run(machine, Batch((Done(3), Done(4), Done(99)), atomic=True), now_ms=6)
    assert list(machine._state.retained_keys) == before == [("q", "a", KEEP_MS), ("q", "b", KEEP_MS)]
    run(machine, Batch((Done(3), Done(4)), atomic=True), now_ms=6)
    assert list(machine._state.retained_keys) == [("q", "c", KEEP_MS + 6), ("q", "d", KEEP_MS + 6)]
