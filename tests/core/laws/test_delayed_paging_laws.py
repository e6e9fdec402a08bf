"""The law of paging with DELAYED jobs: replies, effects, views and snapshots do not depend on where they are kept."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from sockpqd.core import (
    Atomic,
    Batch,
    Change,
    ConfigureQueue,
    Delete,
    Done,
    Due,
    End,
    Get,
    GetWith,
    How,
    JobState,
    Kick,
    Later,
    Machine,
    Overflow,
    PageLost,
    Place,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    SnapshotError,
    Tick,
    references,
)
from sockpqd.core.pages.pager import STAGES
from tests.core.helpers.logs import KNOWN_LEVEL, LogEntry, snapshot_of
from tests.core.helpers.paging import MemoryStore, paged_machine, small_collections
from tests.core.helpers.paging_law import DEEP, assert_law

QUEUES = ("a", "b")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)


def delayed_log(seed: int, length: int) -> list[LogEntry]:
    """Return a log with many DELAYED jobs, most of them plain, much of which is taken, put back and removed."""
    random = Random(seed)
    machine = Machine(KNOWN_LEVEL)
    log: list[LogEntry] = []
    ids: list[int] = []
    now_ms = 1_700_000_000_000
    while len(log) < length:
        now_ms += random.choice([0, 1, 30, 300])
        fills = len(log) % 200 < 120
        log.append(LogEntry(now_ms, random.getrandbits(64), [
            operation(random, machine, ids, 0.8 if fills else 0.2) for _ in range(random.randrange(1, 12))]))
        for reply in machine.apply(len(log), *log[-1]).replies:
            ids += [job.id for job in getattr(reply, "jobs", [reply]) if hasattr(job, "id") and hasattr(job, "data")]
        ids = ids[-40:]
    return log


def operation(random: Random, machine: Machine, ids: list[int], puts: float) -> Any:
    """Return an operation, a Put with probability `puts`."""
    queue, kind = random.choice(QUEUES), random.random()
    put = Put(queue, random.choice([0, 0, 0, 7, -7]), random.randbytes(random.randrange(30)))
    when = Due(random.choice([1, 100, 1000, 1000, random.randrange(20_000)]))
    if random.random() < puts:
        if kind > 0.95:
            return PutWith(put, when=when, key=random.choice("kl"), after=random.choice([(), ("i",)]))
        if kind > 0.94:
            return PutWith(put, when=when, group=random.choice(["g", "h"]))
        return PutWith(put, when=when) if kind > 0.1 else Put(queue, 0, b"", item=random.choice([None, None, "i"]))
    if kind < 0.3:
        return GetWith(Get(random.choice([None, (queue,)]), random.choice([None, 40])), random.choice([1, 3, 9]))
    number = random.choice(ids) if ids else 0
    seen = machine.peek_queue(queue, JobState.DELAYED, 200)
    place = Place(queue, random.choice(seen).seq + random.choice([0, 0, 0, 1]) if seen else 0)
    ones: list[Atomic] = [
        Done(number), Later(number), End(number, How.LATER, when), End(number, How.LATER, when, reason="why"),
        Delete(place), Change(place, random.choice([None, 7]), data=b"changed"), PutWith(put, when=when),
        Change(place, when=random.choice([when, Due(0)])),
    ]
    if kind < 0.7:
        return random.choice(ones)
    if kind < 0.9:
        return Batch((*random.choices(ones, k=4), Done(random.choice([number, 0]))), True)
    return random.choice([
        PurgeQueue(queue, Purged.DELAYED, random.choice([None, place.seq])) if kind > 0.985 else Tick(),
        Kick(queue, random.choice([1, 5, 50]), here=True),
        ConfigureQueue(queue, QueueChange(capacity=random.choice([0, 0, 60]), overflow=random.choice([*Overflow]))),
    ])


@pytest.mark.parametrize("seed", range(4))
def test_paging_shows_nowhere_with_delayed_jobs(seed: int) -> None:
    assert assert_law(delayed_log(seed, 700), seed, DEEP) > 500


def test_paging_shows_nowhere_with_delayed_jobs_and_pages_of_every_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    random = Random(5)
    log = [LogEntry(1000 + number, number, [
        PutWith(Put(random.choice("ab"), random.choice([0, 0, 1]), random.randbytes(random.randrange(50))),
                when=Due(random.choice([500, random.randrange(1000)])))
        for _ in range(200)]) for number in range(60)]
    log += [LogEntry(1060 + 10 * number, number, [Tick(), GetWith(Get(None), 120)]) for number in range(100)]
    assert assert_law(log, 5, STAGES, full=0) > 20


def full(store: MemoryStore, jobs: int = 100) -> Machine:
    """Return a machine with jobs that become READY one after the other, as many as possible in pages."""
    machine = paged_machine(store)
    machine.apply(1, 1000, 0, [
        PutWith(Put("q", 0, b"body %d" % number), when=Due(10 * (number * 37 % jobs) + 10)) for number in range(jobs)])
    while machine.page_out():
        pass
    return machine


def test_jobs_are_ready_in_time_and_in_order_out_of_pages() -> None:
    machine = full(MemoryStore())
    assert machine.pages is not None
    assert machine.pages.jobs > 90
    order = []
    for number in range(100):
        due_ms = machine.next_due_ms()
        assert due_ms is not None
        assert 0 <= due_ms - 1010 - 10 * number < 16
        machine.apply(2 + number, 1010 + 10 * number, 0, [Tick()])
        order += [view.data for view in machine.peek_queue("q", JobState.READY, 1000)][number:]
        assert len(order) == number + 1
    assert order == [b"body %d" % (number * 73 % 100) for number in range(100)]
    assert machine.next_due_ms() is None


def test_of_many_layers_little_is_read_at_a_time() -> None:
    store = MemoryStore()
    machine = paged_machine(store)
    for layer in range(20):
        machine.apply(1 + layer, 1000, 0, [
            PutWith(Put("q", 0, b"1"), when=Due(1000 + 20 * number + layer)) for number in range(60)])
        while machine.page_out():
            pass
    assert machine.pages is not None
    read = machine.pages.read
    machine.apply(21, 2200, 0, [Tick()])
    assert machine.total("q").jobs == 1200
    assert machine.ready("q") == 201
    assert machine.pages.read - read < 200
    assert machine.pages.jobs > 800


def test_a_job_in_a_page_is_found_by_its_place_with_one_reading() -> None:
    machine = full(MemoryStore(), 300)
    assert machine.pages is not None
    seqs = [view.seq for view in machine.peek_queue("q", JobState.DELAYED, 1000)]
    read, written = machine.pages.read, machine.pages.jobs
    seen = machine.peek(Place("q", seqs[200]))
    assert seen is not None
    assert seen.state is JobState.DELAYED
    assert machine.pages.read == read + 1
    assert machine.peek(Place("other", seqs[200])) is None
    machine.apply(2, 1000, 0, [Delete(Place("q", seqs[200]))])
    assert machine.pages.jobs == written - 3
    assert machine.peek(Place("q", seqs[200])) is None
    assert machine.peek(Place("q", seqs[201])) is not None


def test_a_snapshot_by_reference_names_pages_of_delayed_jobs() -> None:
    machine = full(MemoryStore())
    assert machine.pages is not None
    named = b"".join(machine.snapshot(by_reference=True))
    assert machine.pages.read == 0
    assert len(list(references([named]))) == machine.pages.count + machine.pages.bodies.count > 20
    assert named.count(b"body") < 10
    assert snapshot_of(machine).count(b"body") == 100


def test_priorities_of_jobs_in_pages_are_counted_by_the_next_process() -> None:
    store = MemoryStore()
    machine = paged_machine(store)
    machine.apply(1, 1000, 0, [
        PutWith(Put("q", number % 7, b"1"), when=Due(1000 + number)) for number in range(50)])
    while machine.page_out():
        pass
    named = b"".join(machine.snapshot(by_reference=True))
    store.restart()
    other = paged_machine(store)
    other.restore([named])
    assert other.total("q") == machine.total("q")
    assert other.total(None) == machine.total(None)
    assert other.total(None).priorities == 7
    other.apply(2, 3000, 0, [Tick(), GetWith(Get(("q",)), 50)])
    assert other.total(None).priorities == 0


def test_a_restored_state_with_delayed_jobs_is_within_its_budget_all_the_time() -> None:
    plain = Machine(KNOWN_LEVEL)
    plain.apply(1, 1000, 0, [PutWith(Put("q", 0, bytes(100)), when=Due(5)) for _ in range(5000)])
    machine = paged_machine(MemoryStore(), hot_bytes_max=40_000)
    machine.restore(plain.snapshot())
    assert machine.pages is not None
    assert machine.hot_bytes - machine.pages.handles_bytes <= 40_000
    assert snapshot_of(machine) == snapshot_of(plain)


def test_a_page_of_delayed_jobs_that_is_not_there_is_missed() -> None:
    named = b"".join(full(MemoryStore()).snapshot(by_reference=True))
    other = paged_machine(MemoryStore())
    with pytest.raises(PageLost):
        other.restore([named])
    with pytest.raises(SnapshotError, match="names pages"):
        Machine(KNOWN_LEVEL).restore([named])


def test_a_page_with_other_jobs_is_damage() -> None:
    store = MemoryStore()
    machine = full(store)
    space = store.spaces[-1].by_number
    numbers = sorted(space)
    space[numbers[0]], space[numbers[1]] = space[numbers[1]], space[numbers[0]]
    with pytest.raises(PageLost, match="holds other jobs"):
        machine.peek_queue("q", JobState.DELAYED, 1000)
    space.update(dict.fromkeys(numbers, b"?"))
    with pytest.raises(PageLost, match="holds no delayed jobs"):
        snapshot_of(machine)
