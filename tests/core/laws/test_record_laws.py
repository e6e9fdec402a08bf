"""The laws of records of ended jobs: the model has the same ones, and neither snapshots nor pages change any."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from sockpqd.core import (
    Await,
    Batch,
    CloneChunk,
    Configure,
    ConfigureQueue,
    Delete,
    DeleteQueue,
    Done,
    End,
    Get,
    Handed,
    How,
    Kick,
    Machine,
    Number,
    Operation,
    Overflow,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Selector,
    StoredNumber,
    Then,
    Tick,
    expanded,
)
from tests.core.helpers.agreement import assert_equal_to_model, assert_same
from tests.core.helpers.logs import KNOWN_LEVEL, LogEntry, ask, lead, restored, snapshot_of
from tests.core.helpers.paging import MemoryStore, paged_machine
from tests.core.model.model import Model

QUEUES = ("a", "b")
MANY_QUEUES = tuple("abcdefgh")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.records.block.RECORD_BLOCK_MAX", 5)
    monkeypatch.setattr("sockpqd.core.records.block.RECORD_BLOCK_BYTES", 60)
    monkeypatch.setattr("sockpqd.core.records.block.RECORD_SPAN_MS", 2000)
    monkeypatch.setattr("sockpqd.core.limits.RECORDS_HOT_BYTES", 1500)


def record_log(
    seed: int, length: int, queues: tuple[str, ...] = QUEUES, *, ahead: bool = False,
) -> list[LogEntry]:
    """Return a log of jobs that end in all ways, in queues that keep their records.

    `ahead`: it begins with a CLONE of a cluster whose time is seconds ahead, and many records are deleted.
    """
    random = Random(seed)
    machine, deletes = Machine(KNOWN_LEVEL), ahead
    log: list[LogEntry] = []
    ids: list[int] = []
    numbers: list[int] = []
    now_ms = 1_700_000_000_000
    for queue in queues:
        change = QueueChange(retain_ms=3000, expire_ms=400, numbered=queue == "b")
        _apply(machine, log, now_ms, 0, [ConfigureQueue(queue, change)])
    while len(log) < length:
        now_ms += random.choice([0, 1, 30, 200])
        if ahead and len(log) == 100:
            snapshot, machine, ahead = snapshot_of(machine), Machine(KNOWN_LEVEL), False
            log.clear()
            now_ms -= 9000
            _apply(machine, log, now_ms, 0, [lead(), CloneChunk(1, total_bytes=len(snapshot)), CloneChunk(1, snapshot)])
            _apply(machine, log, now_ms, 0, [CloneChunk(1, last=True)])
        operations = [operation(random, ids, numbers, queues) for _ in range(random.randrange(1, 8))]
        if deletes:
            operations.append(Delete(Number(random.choice([*numbers, 5])), ended=True))
        for reply in _apply(machine, log, now_ms, random.getrandbits(64), operations):
            ids += [reply.id] if isinstance(reply, Handed) else []
            numbers += [reply.number] if isinstance(reply, StoredNumber) else []
        ids, numbers = ids[-20:], numbers[-60:]
    return log


def _apply(machine: Machine, log: list[LogEntry], now_ms: int, seed: int, operations: list[Operation]) -> list[Any]:
    log.append(LogEntry(now_ms, seed, operations))
    return list(machine.apply(len(log), *log[-1]).replies)


def operation(random: Random, ids: list[int], numbers: list[int], queues: tuple[str, ...] = QUEUES) -> Any:
    """Return a random operation; `ids` and `numbers`: of jobs that it may name."""
    queue, kind = random.choice(queues), random.random()
    data = random.randbytes(random.randrange(20))
    number = Number(random.choice([*numbers, 5]))
    if kind < 0.35:
        return PutWith(
            Put(queue, random.choice([0, 7]), data, random.choice([None, None, "x"])), number=random.random() < 0.7,
            key=random.choice([None, None, "k"]), ttl_ms=random.choice([None, None, 50]),
            tries=random.choice([None, 1]),
        )
    if kind < 0.6:
        return Get(random.choice([None, (queue,)]), random.choice([None, 40]), random.choice([Then.DONE, Then.LATER]))
    if kind < 0.8:
        return _end(random, ids, number)
    if kind < 0.85:
        return random.choice([Await(number), Await(Selector(queue=queue, key="k"))])
    if kind < 0.9:
        return Batch((*(_end(random, ids, number) for _ in range(4)), Done(random.choice([*ids, 0]))), True)
    if kind < 0.93:         # undone, with the records that it began
        return Batch((*map(Done, ids[-8:]), Delete(number, ended=True), Done(0)), True)
    return random.choice([
        ConfigureQueue(queue, QueueChange(retain_ms=random.choice([0, 500, 3000, 3000]))),
        ConfigureQueue(queue, QueueChange(numbered=random.random() < 0.7)),
        ConfigureQueue(queue, QueueChange(retain_max=random.choice([0, 3, 1000, 1000]))),
        ConfigureQueue(queue, QueueChange(retain_bytes=random.choice([0, 50, 10_000, 10_000]))),
        ConfigureQueue(queue, QueueChange(capacity=random.choice([0, 0, 2]), overflow=Overflow.DROPOLDEST)),
        Configure(retained_bytes=random.choice([0, 90, 10_000, 10_000])), PurgeQueue(queue, Purged.ENDED),
        PurgeQueue(queue, Purged.ALL), DeleteQueue(queue, force=True) if kind > 0.995 else Tick(),
    ])


def _end(random: Random, ids: list[int], number: Number) -> Any:
    """Return an operation that ends a job, or removes one, or the record of one."""
    id_, data = random.choice([*ids, 0]), random.randbytes(random.randrange(20))
    return random.choice([
        Done(id_), Done(id_), End(id_, How.DONE, text=data), End(id_, How.DONE, text=data), End(id_, How.BURY),
        End(id_, How.LATER, text=data),
        Delete(number), Delete(number, ended=True), Kick("", 1, selector=number, ended=True),
    ])


def _expire_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an entry end records whose time has passed in one queue only."""
    monkeypatch.setattr("sockpqd.core.limits.RECORD_QUEUES_MAX", 1)


def evict_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an entry remove two records, besides two for each it adds, when all queues have too many bytes."""
    monkeypatch.setattr("sockpqd.core.limits.RECORDS_EVICTED", 2)
    monkeypatch.setattr("tests.core.model.records.EVICTED", 2)


@pytest.mark.parametrize("seed", range(6))
def test_the_model_has_the_same_records(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        evict_few(monkeypatch)
    assert_equal_to_model(record_log(seed, 400), Machine(KNOWN_LEVEL), Model(), every=3)


@pytest.mark.parametrize("seed", range(4))
def test_pages_and_snapshots_change_no_record(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        evict_few(monkeypatch)
    random, model, store = Random(seed), Model(), MemoryStore(Random(seed), full=seed / 10)
    machine = paged_machine(store)
    paged = 0
    for entry in record_log(seed, 400):
        replies = machine.apply(machine.index + 1, *entry).replies
        assert replies == model.apply(model.index + 1, *entry).replies
        while machine.page_out():
            paged += 1
        if random.random() < 0.05:
            assert_same(machine, model)
            whole = snapshot_of(machine)
            assert snapshot_of(restored(whole)) == whole
            named = b"".join(machine.snapshot(by_reference=True))
            store.restart()
            read = {number.to_bytes(8, "big"): page for number, page in store.left.items()}
            other = Machine(KNOWN_LEVEL)
            other.restore(expanded([named], read.__getitem__))
            assert snapshot_of(other) == whole
            machine = paged_machine(store)
            machine.restore([named])
            assert snapshot_of(machine) == whole
    assert paged > 40


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_all_replicas_have_the_same_records(seed: int, ahead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ran all the time, one restored now and then, one that restarts with pages, and one that leads."""
    evict_few(monkeypatch)
    _expire_few(monkeypatch)
    random, store = Random(seed), MemoryStore(Random(seed))
    whole, leader, follower = [Machine(KNOWN_LEVEL) for _ in range(3)]
    paged = paged_machine(store)
    for entry in record_log(seed, 400, MANY_QUEUES, ahead=ahead):
        replies = whole.apply(whole.index + 1, *entry).replies
        for other in (leader, follower, paged):
            assert other.apply(other.index + 1, *entry).replies == replies
        leader.next_due_ms()
        while paged.page_out():
            pass
        snapshot = snapshot_of(whole)
        assert [snapshot_of(other) == snapshot for other in (leader, follower, paged)] == [True] * 3
        if random.random() < 0.1:
            follower = restored(snapshot)
        if random.random() < 0.1:
            named = b"".join(paged.snapshot(by_reference=True))
            store.restart()
            paged = paged_machine(store)
            paged.restore([named])


def test_the_end_of_the_next_record_does_not_depend_on_removed_ones() -> None:
    """The state comes from a cluster whose time is ahead, so that a job ends with the newest record of its queue."""
    now_ms = 1_700_000_000_000
    source, machine = Machine(KNOWN_LEVEL), Machine(KNOWN_LEVEL)
    ask(source, lead(), ConfigureQueue("q", QueueChange(retain_ms=9_000_000)), now_ms=now_ms)
    ended = [_end_one(source, now_ms + later_ms) for later_ms in (5000, 6000, 7000)]
    snapshot = snapshot_of(source)
    ask(machine, lead(), CloneChunk(1, total_bytes=len(snapshot)), CloneChunk(1, snapshot), now_ms=now_ms)
    ask(machine, CloneChunk(1, last=True))
    ask(machine, *[Delete(Number(number), ended=True) for number in ended[1:]])
    other = restored(snapshot_of(machine))
    for replica in (machine, other):
        _end_one(replica, now_ms + 1)
        seen, _ = replica.ended_jobs("q", 9)
        assert [one.ended_ms for one in seen] == [now_ms + 5000] * 2
    assert snapshot_of(other) == snapshot_of(machine)


def _end_one(machine: Machine, now_ms: int) -> int:
    """Let a job of the queue q end; returns its number."""
    stored, handed = ask(machine, PutWith(Put("q", 0, b""), number=True), Get(("q",)), now_ms=now_ms)
    assert isinstance(stored, StoredNumber)
    assert isinstance(handed, Handed)
    ask(machine, Done(handed.id), now_ms=now_ms)
    return stored.number
