"""PUT .. DEDUP: a key is remembered for exactly as long as its Put demands, and only its queue forgets it before."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Batch,
    ConfigureQueue,
    Dedup,
    DeleteQueue,
    Done,
    Get,
    IgnoredNumber,
    JobIgnored,
    Machine,
    OnDup,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    QueueFull,
    QueueNotFound,
    Removed,
    Stored,
    StoredNumber,
    Tick,
    ToQueues,
)
from sockpqd.core.limits import FORGOTTEN_KEYS_MAX
from tests.core.helpers.logs import ask, lead, restored, run, snapshot_of

S = 1000


def put(key: str = "k", queue: str = "q", ms: int = S, *, number: bool = False) -> PutWith:
    return PutWith(Put(queue, 0, b"x"), dedup=Dedup(key, ms), number=number)


def limited(most: int) -> ConfigureQueue:
    return ConfigureQueue("q", QueueChange(dedup_max=most))


@pytest.fixture
def machine() -> Machine:
    machine = Machine()
    run(machine, lead())
    return machine


def test_it_is_remembered_for_that_long_whatever_becomes_of_the_job(machine: Machine) -> None:
    assert ask(machine, put(), Get(("q",)), Done(1), put())[-1] == JobIgnored()
    assert ask(machine, put(), now_ms=S - 1) == [JobIgnored()]
    assert ask(machine, put(), now_ms=S) == [Stored()]
    assert ask(machine, put(), now_ms=S) == [JobIgnored()]


def test_what_exists_is_not_remembered_again(machine: Machine) -> None:
    ask(machine, put())
    assert ask(machine, put(ms=100 * S), now_ms=S // 2) == [JobIgnored()]
    assert ask(machine, put(), now_ms=S) == [Stored()]


def test_the_number_is_told_to_who_asks_for_one(machine: Machine) -> None:
    first, second = ask(machine, put(number=True), put(number=True))
    assert isinstance(first, StoredNumber)
    assert second == IgnoredNumber(first.number)
    assert ask(machine, put(), put("other"), put("other", number=True)) == [JobIgnored(), Stored(), JobIgnored()]


def test_with_ondup_ignore_too(machine: Machine) -> None:
    keyed = PutWith(Put("q", 0, b"x"), key="k", on_dup=OnDup.IGNORE, number=True)
    first, second = ask(machine, keyed, keyed)
    assert isinstance(first, StoredNumber)
    assert second == IgnoredNumber(first.number)


def test_a_queue_remembers_as_many_as_it_may_and_expired_keys_do_not_count(machine: Machine) -> None:
    ask(machine, limited(2), put("a", ms=S), put("b", ms=2 * S))
    assert ask(machine, put("c"), put("a")) == [QueueFull(), JobIgnored()]
    assert ask(machine, put("c"), put("d"), now_ms=S) == [Stored(), QueueFull()]
    assert ask(machine, limited(0), put("e"), put("c"), now_ms=S)[1:] == [QueueFull(), JobIgnored()]


def test_a_queue_without_settings_remembers_fewer(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.limits.REMEMBERED_OF_PLAIN", 1)
    assert ask(machine, put("a"), put("b"), put("b", "r")) == [Stored(), QueueFull(), Stored()]


def test_all_queues_together_remember_as_many_as_they_may(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.limits.REMEMBERED_KEYS_MAX", 2)
    assert ask(machine, put("a"), put("b", "r"), put("c", "s")) == [Stored(), Stored(), QueueFull()]
    assert ask(machine, put("c", "s"), put("d", "s"), put("e", "s"), now_ms=S) == [Stored(), Stored(), QueueFull()]


@pytest.mark.parametrize("purged", [Purged.READY, Purged.ALL])
def test_only_the_first_portion_of_a_purge_forgets(machine: Machine, purged: Purged) -> None:
    ask(machine, put(), Put("q", 0, b""))
    assert ask(machine, PurgeQueue("q", purged), put()) == [Removed(2), Stored()]
    before = machine.next_seq
    assert ask(machine, put("b"), PurgeQueue("q", purged, before), put(), put("b"))[2:] == [JobIgnored(), JobIgnored()]


@pytest.mark.parametrize("purged", [Purged.DELAYED, Purged.DEAD, Purged.BURIED, Purged.RUNNING])
def test_a_purge_of_other_jobs_forgets_nothing(machine: Machine, purged: Purged) -> None:
    assert ask(machine, put(), PurgeQueue("q", purged), put())[2] == JobIgnored()


def test_a_deleted_queue_forgets_and_one_that_is_not_there_does_not(machine: Machine) -> None:
    ask(machine, put(), Get(("q",)), Done(1))
    assert machine.counts("q") is None, "remembered keys make no queue exist"
    gone = (DeleteQueue("q", True), PurgeQueue("q", Purged.ALL), put())
    assert ask(machine, *gone) == [QueueNotFound(), QueueNotFound(), JobIgnored()]
    assert ask(machine, Put("q", 0, b""), DeleteQueue("q", True), put())[2] == Stored()


def test_each_of_several_queues_is_asked(machine: Machine) -> None:
    ask(machine, put("k", "a"))
    several = PutWith(Put("", 0, b"x"), targets=ToQueues(("a", "b", "c")), dedup=Dedup("k", S))
    assert [reply.queues for reply in ask(machine, several, several)] == [2, 0]
    assert ask(machine, put("k", "b"), put("k", "c")) == [JobIgnored()] * 2


def test_a_batch_that_is_taken_back_is_not_remembered(machine: Machine) -> None:
    ask(machine, put("a", number=True))
    was = snapshot_of(machine)
    ask(machine, Batch((put("b"), put("a", number=True), Done(99)), atomic=True), now_ms=0)
    assert len(snapshot_of(machine)) == len(was)
    ask(machine, Batch((put("a"), Done(99)), atomic=True), now_ms=S)
    assert ask(machine, put("b"), put("a"), now_ms=S) == [Stored(), Stored()]


def test_it_is_in_snapshots_with_its_number(machine: Machine) -> None:
    (first,) = ask(machine, put(number=True))
    assert isinstance(first, StoredNumber)
    again = restored(snapshot_of(machine))
    assert snapshot_of(again) == snapshot_of(machine)
    assert ask(again, put(number=True), put("b")) == [IgnoredNumber(first.number), Stored()]


def test_many_are_forgotten_little_by_little(machine: Machine) -> None:
    ask(machine, *[put(f"k{number}") for number in range(3 * FORGOTTEN_KEYS_MAX)])
    counts = []
    while machine._state.remembered_keys.count:
        run(machine, Tick(), now_ms=S)
        counts.append(machine._state.remembered_keys.count)
    assert counts == [2 * FORGOTTEN_KEYS_MAX, FORGOTTEN_KEYS_MAX, 0]
