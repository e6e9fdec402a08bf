"""Work on up to a million jobs is split into portions, so that no entry takes long: Ticks do the rest."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    ConfigureQueue,
    Done,
    Due,
    Empty,
    End,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    JobState,
    Kick,
    Machine,
    Order,
    PauseQueue,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    QueueNotEmpty,
    Removed,
    Tick,
    TooManyQueues,
)
from tests.core.helpers.logs import ask, restored, run, snapshot_of

MANY = 2500
READ_BYTES_MAX = 1 << 20         # 4 MiB let others wait for 300 ms, where three nodes share two cores


@pytest.fixture
def machine() -> Machine:
    """Return an empty machine."""
    return Machine()


def test_a_portion_of_large_jobs_is_read_in_a_few_milliseconds(machine: Machine) -> None:
    ask(machine, *(PutWith(Put("q", 0, bytes(200_000)), Due(3_600_000)) for _ in range(20)))
    (removed,) = ask(machine, PurgeQueue("q", Purged.ALL))
    assert isinstance(removed, Removed)
    assert removed.count * 200_000 <= READ_BYTES_MAX


def active(machine: Machine, now_ms: int) -> int:
    """Return how many jobs are ready after one more entry."""
    run(machine, Tick(), now_ms=now_ms)
    return sum(machine.ready(name) for name in machine.queue_names(""))


def test_a_thousand_due_jobs_become_active_per_entry(machine: Machine) -> None:
    ask(machine, *[PutWith(Put(f"q{number % 3}", 0, b""), Due(16)) for number in range(MANY)])
    assert machine.next_due_ms() == 16
    assert [active(machine, 16) for _ in range(4)] == [1000, 2000, MANY, MANY]
    assert machine.next_due_ms() is None


def test_queue_activates_no_more_than_its_portion_per_entry(machine: Machine) -> None:
    ask(machine, ConfigureQueue("a", QueueChange(portion=2)))
    ask(machine, *[PutWith(Put(queue, 0, b"%d" % number), Due(10 - number)) for queue in "ab" for number in range(5)])
    run(machine, Tick(), now_ms=10)
    assert (machine.ready("a"), machine.ready("b")) == (2, 5)
    assert machine.next_due_ms() is not None
    assert [job.data for job in machine.peek_queue("a", JobState.READY, 9)] == [b"4", b"3"]
    run(machine, Tick(), now_ms=10)
    assert (machine.ready("a"), machine.ready("b")) == (4, 5)


def test_queue_whose_job_was_due_first_goes_first(machine: Machine) -> None:
    late = [PutWith(Put("a", 0, b""), Due(20))] * 600
    early = [PutWith(Put("b", 0, b""), Due(10))] + [PutWith(Put("b", 0, b""), Due(30))] * 599
    ask(machine, *late, *early)
    run(machine, Tick(), now_ms=30)
    assert (machine.ready("a"), machine.ready("b")) == (400, 600)


def test_a_thousand_jobs_fade_per_entry(machine: Machine) -> None:
    ask(machine, *[PutWith(Put("q", 0, b""), ttl_ms=16)] * MANY)
    assert machine.next_due_ms() == 16
    assert [active(machine, 16) for _ in range(4)] == [1500, 500, 0, 0]
    assert machine.next_due_ms() is None


def test_a_thousand_jobs_learn_per_entry_that_an_item_is_finished(machine: Machine) -> None:
    ask(machine, Put("first", 0, b"", "x"), *[PutWith(Put("q", 0, b""), after=("x",))] * MANY, Get(("first",)))
    (finished,) = run(machine, Done(1)).replies
    assert finished.item_done
    ready = []
    for _ in range(4):
        machine = restored(snapshot_of(machine))
        assert (machine.next_due_ms() is None) == (len(ready) == 3)
        ready.append(active(machine, 0))
    assert ready == [1000, 2000, MANY, MANY]


@pytest.mark.parametrize("purged", [Purged.READY, Purged.DELAYED, Purged.DEAD, Purged.ALL])
def test_purge_removes_a_thousand_and_tells_that_there_are_more(machine: Machine, purged: Purged) -> None:
    when = Due(1000) if purged is Purged.DELAYED else None
    ask(machine, *[PutWith(Put("q", 0, b""), when)] * MANY)
    if purged is Purged.DEAD:
        ask(machine, GetWith(Get(("q",)), MANY))
        ask(machine, *[End(number + 1, How.BURY) for number in range(MANY)])
    purge = PurgeQueue("q", purged)
    assert ask(machine, *[purge] * 3) == [Removed(1000, True), Removed(1000, True), Removed(500)]
    assert not machine.unfinished(None)


def test_purge_of_all_states_takes_them_in_turn(machine: Machine) -> None:
    ask(machine, *[PutWith(Put("q", 0, b""), when) for when in (None, Due(1000)) for _ in range(600)])
    assert ask(machine, PurgeQueue("q", Purged.ALL)) == [Removed(1000, True)]
    assert machine.total("q").jobs == 200
    assert machine.ready("q") == 0
    assert ask(machine, PurgeQueue("q", Purged.ALL)) == [Removed(200)]


def test_kick_moves_a_thousand(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, b"")] * MANY, GetWith(Get(("q",)), MANY))
    ask(machine, *[End(number + 1, How.BURY) for number in range(MANY)])
    assert ask(machine, Kick("q", 2000), Kick("q", 300), Kick("q", 10_000)) == [
        Removed(1000, True), Removed(300), Removed(1000, True),
    ]
    assert machine.ready("q") == 2300
    assert machine.ready("q_dead") == 200


def test_pick_takes_16_mib_at_most_but_a_first_job_of_any_size(machine: Machine) -> None:
    half = b"x" * (8 << 20)
    ask(machine, Put("q", 0, half), Put("q", 0, half), Put("q", 0, b"y"), Put("q", 0, half + half + half))
    picks: list[list[int]] = []
    for _ in range(4):
        (reply,) = ask(machine, GetWith(Get(("q",)), 10))
        picks.append([len(job.data) for job in reply.jobs] if isinstance(reply, HandedMany) else [])
    assert picks == [[8 << 20, 8 << 20], [1], [24 << 20], []]


def test_order_of_too_many_waiting_jobs_is_not_changed(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, b"")] * 2_001)
    refused = [QueueChange(order=Order.TIME), QueueChange(item_limit=1), QueueChange(order=Order.TIME, weight=2)]
    assert ask(machine, *[ConfigureQueue("q", change) for change in refused]) == [QueueNotEmpty()] * 3
    assert machine.queue_settings("q") is None
    assert ask(machine, ConfigureQueue("q", QueueChange(order=Order.FIFO, item_limit=0, weight=2))) == [Accepted()]
    assert isinstance(ask(machine, Get(("q",)))[0], Handed)
    assert ask(machine, ConfigureQueue("q", QueueChange(order=Order.TIME))) == [Accepted()]


def test_a_hundred_thousand_queues_have_settings(machine: Machine) -> None:
    ask(machine, *[PauseQueue(f"q{number}", False, True) for number in range(100_000)])
    change = QueueChange(weight=2)
    refused = [
        ConfigureQueue("new", change, create=True), ConfigureQueue("new", change), PauseQueue("new", True, False),
    ]
    assert ask(machine, *refused) == [TooManyQueues()] * 3
    assert ask(machine, ConfigureQueue("q7", change), PauseQueue("q8", True, False)) == [Accepted()] * 2
    assert ask(machine, Get(("new",))) == [Empty(False)]
