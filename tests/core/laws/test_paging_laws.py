"""The law of paging: replies, effects, views and snapshots do not depend on where jobs are kept."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sockpqd.core import (
    Atomic,
    Batch,
    Change,
    CloneChunk,
    Configure,
    ConfigureQueue,
    Delete,
    Done,
    Due,
    End,
    Get,
    GetWith,
    How,
    JobState,
    Later,
    Lead,
    Machine,
    Move,
    Operation,
    Order,
    Overflow,
    PageLost,
    Pages,
    Place,
    Policy,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Return,
    SnapshotError,
    references,
)
from sockpqd.core.pages.pager import STAGES, Stage
from tests.core.helpers.forge import forged, frames_of
from tests.core.helpers.logs import KNOWN_LEVEL, LAW, LogEntry, logs, random_log, snapshot_of
from tests.core.helpers.paging import MemoryStore, paged_machine, small_collections
from tests.core.helpers.paging_law import assert_counted, assert_law, restarted
from tests.core.helpers.session_logs import random_session_log, session_logs
from tests.core.helpers.time_logs import asked_time_logs, random_time_log, time_logs

PAGED_LAW = settings(LAW, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])

QUEUES = ("a", "b")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)


@PAGED_LAW
@given(logs, st.integers(0, 2**32))
def test_paging_shows_nowhere(log: list[LogEntry], seed: int) -> None:
    assert_law(log, seed)


@PAGED_LAW
@given(time_logs | asked_time_logs, st.integers(0, 2**32))
def test_paging_shows_nowhere_with_settings_and_places(log: list[LogEntry], seed: int) -> None:
    assert_law(log, seed)


@PAGED_LAW
@given(session_logs(), st.integers(0, 2**32))
def test_paging_shows_nowhere_with_sessions(log: list[LogEntry], seed: int) -> None:
    assert_law(log, seed)


@pytest.mark.parametrize("made", [random_log, random_time_log, random_session_log])
@pytest.mark.parametrize("seed", range(3))
def test_paging_shows_nowhere_in_a_long_log(made: Callable[[int, int], list[LogEntry]], seed: int) -> None:
    assert assert_law(made(seed, 600), seed) > 0


def deep_log(seed: int, length: int, grouped: float = 0.005) -> list[LogEntry]:
    """A log with long queues of plain jobs, from which much is taken, put back and removed, also in batches.

    `grouped`: the share of jobs that have another GROUP.
    """
    random = Random(seed)
    machine = Machine(KNOWN_LEVEL)
    log: list[LogEntry] = []
    ids: list[int] = []
    now_ms = 1_700_000_000_000
    while len(log) < length:
        now_ms += random.choice([0, 1, 30])
        fills = len(log) % 200 < 120
        log.append(LogEntry(now_ms, random.getrandbits(64), [
            deep_operation(random, machine, ids, 0.7 if fills else 0.2, grouped)
            for _ in range(random.randrange(1, 12))]))
        for reply in machine.apply(len(log), *log[-1]).replies:
            ids += [job.id for job in getattr(reply, "jobs", [reply]) if hasattr(job, "id") and hasattr(job, "data")]
        ids = ids[-40:]
    return log


def deep_operation(random: Random, machine: Machine, ids: list[int], puts: float, grouped: float) -> Any:
    """Return an operation, a Put with probability `puts`."""
    queue, kind = random.choice(QUEUES), random.random()
    put = Put(queue, random.choice([0, 0, 0, 7, -7]), random.randbytes(random.randrange(30)))
    if random.random() < puts:
        if random.random() < grouped:
            return PutWith(put, group=random.choice(["g", "h", "a"]))
        return put if kind < 0.95 else PutWith(put, key=random.choice("kl"), ttl_ms=random.choice([None, 50]))
    if kind < 0.4:
        return GetWith(Get(random.choice([None, (queue,)]), random.choice([None, 40])), random.choice([1, 3, 9]),
                       random.choice([None, *Policy]))
    number = random.choice(ids) if ids else 0
    seen = machine.peek_queue(queue, JobState.READY, 100)
    place = Place(queue, random.choice(seen).seq if seen else 0)
    ones: list[Atomic] = [
        Done(number), Later(number), End(number, How.LATER, first=True), Move(number, queue), Delete(place),
        Change(place, random.choice([None, 7]), data=b"changed"), Change(place, when=Due(20)), put, put,
    ]
    if kind < 0.8:
        return random.choice([*ones, Return(number)])
    if kind < 0.95:
        return Batch((*random.choices(ones, k=4), Done(random.choice([number, 0]))), True)
    return random.choice([
        PurgeQueue(queue, Purged.READY, random.choice([None, place.seq])), Configure(policy=random.choice([*Policy])),
        ConfigureQueue(queue, QueueChange(order=random.choice([*Order]), item_limit=random.choice([0, 0, 2]))),
        ConfigureQueue(queue, QueueChange(capacity=random.choice([0, 0, 60]), overflow=random.choice([*Overflow]))),
    ])


@pytest.mark.parametrize("seed", range(4))
def test_paging_shows_nowhere_in_deep_queues(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr("sockpqd.core.store.ready.SCANNED_RUNS_MAX", 2)     # so that the runs have their index
    assert assert_law(deep_log(seed, 1000), seed) > 500


@pytest.mark.parametrize("seed", range(4))
def test_paging_shows_nowhere_in_queues_that_several_groups_share(seed: int) -> None:
    assert assert_law(deep_log(seed + 10, 400, [0.05, 0.3, 0.6, 0.9][seed]), seed) > [250, 100, 50, 10][seed]


def test_a_job_of_another_group_brings_no_page_back() -> None:
    store, plain = MemoryStore(), Machine(KNOWN_LEVEL)
    machine = paged_machine(store)
    entries: list[list[Any]] = [
        [Configure(policy=Policy.FAIR), *[Put("q", 0, b"%d" % number) for number in range(600)]],
        [PutWith(Put("q", number % 2, b"g%d" % number), group=f"g{number % 3}") for number in range(60)],
        [Put("q", number % 2, b"%d" % number) for number in range(300)],
    ]
    for number, operations in enumerate(entries, 1):
        if number == 2:
            read = pages_of(machine).read
        for one in (machine, plain):
            one.apply(number, 1000 + number, 0, operations)
        while machine.page_out():
            pass
    assert pages_of(machine).read <= read + 2
    assert pages_of(machine).jobs > 800
    for number in range(4, 1004):
        entry = LogEntry(2000, 0, [GetWith(Get(("q",)), 1, None if number % 3 else Policy.OLDEST)])
        assert machine.apply(number, *entry) == plain.apply(number, *entry)
    assert plain.total(None).jobs == 0


def pages_of(machine: Machine) -> Pages:
    """Return the pages of a machine that has some."""
    assert machine.pages is not None
    return machine.pages


def test_paging_shows_nowhere_with_the_stages_and_blocks_of_every_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    random = Random(5)
    log = [LogEntry(1000 + number, number, [
        Put(random.choice(["a", "b"]), random.choice([0, 0, 0, 1]), random.randbytes(random.randrange(50)))
        for _ in range(150)]) for number in range(60)]
    log += [LogEntry(2000 + number, number, [GetWith(Get(None), 120)]) for number in range(90)]
    assert assert_law(log, 5, STAGES, full=0) > 20


def test_a_clone_leaves_no_page_behind() -> None:
    store = MemoryStore()
    machine = paged_machine(store)
    machine.apply(1, 1000, 0, [Put("q", 0, b"old")] * 50)
    while machine.page_out():
        pass
    assert store.pages
    other = Machine(KNOWN_LEVEL)
    other.apply(1, 1000, 0, [Put("q", 0, b"new")] * 3)
    data = b"".join(other.export())
    machine.apply(2, 1001, 0, [CloneChunk(1, total_bytes=len(data)), CloneChunk(1, data), CloneChunk(1, last=True)])
    assert sum(not space.dropped for space in store.spaces) == 1
    assert machine.total(None).jobs == 3
    assert_counted(machine, store)


def upload(jobs: int) -> bytes:
    """Return a snapshot of another cluster."""
    other = Machine(KNOWN_LEVEL)
    other.apply(1, 1000, 0, [Put("q", number % 2, b"%d" % number) for number in range(jobs)])
    return b"".join(other.export())


def chunks_of(data: bytes, size: int) -> list[CloneChunk]:
    """Return the snapshot as operations."""
    return [CloneChunk(1, data[start:start + size]) for start in range(0, len(data), size)]


def test_a_clone_goes_to_pages_while_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.limits.FRAME_JOBS_MAX", 20)
    store, plain = MemoryStore(), Machine(KNOWN_LEVEL)
    machine = paged_machine(store)
    data = upload(400)
    for one in (machine, plain):
        one.apply(1, 1001, 0, [CloneChunk(1, total_bytes=len(data)), *chunks_of(data, 100)])
    held = [space for space in store.spaces if space.by_number]
    assert sorted(len(space.by_number) for space in held)[0] == len(chunks_of(data, 100))
    assert b"".join(chunk for space in held for chunk in space.by_number.values() if chunk in data) == data
    assert sum(len(space.by_number) for space in held) > 180
    assert snapshot_of(machine) == snapshot_of(plain)
    for one in (machine, plain):
        assert one.apply(2, 1002, 0, [CloneChunk(1, last=True)]).replies
    assert snapshot_of(machine) == snapshot_of(plain)
    assert sum(not space.dropped for space in store.spaces) == 1
    assert_counted(machine, store)


@pytest.mark.parametrize("ending", [
    CloneChunk(2, total_bytes=10), CloneChunk(1, bytes(100_000)), CloneChunk(1, last=True),
    Lead("n1", 2, ("n1",), b"1" * 16, 0),
])
def test_a_clone_that_is_given_up_leaves_no_page(ending: Operation) -> None:
    store = MemoryStore()
    machine = paged_machine(store)
    data = upload(400)
    machine.apply(1, 1001, 0, [CloneChunk(1, total_bytes=len(data)), *chunks_of(data, 100)[:-1]])
    assert store.pages
    machine.apply(2, 1002, 0, [ending])
    assert store.pages == 0
    assert machine.total(None).jobs == 0


def test_a_restart_in_the_middle_of_a_clone_goes_on_with_pages() -> None:
    store, plain = MemoryStore(), Machine(KNOWN_LEVEL)
    machine = paged_machine(store)
    data = upload(400)
    chunks = chunks_of(data, 100)
    for one in (machine, plain):
        one.apply(1, 1001, 0, [CloneChunk(1, total_bytes=len(data)), *chunks[:10]])
    restored = restarted(machine, store, (Stage(1, 3, 1),), snapshot_of(machine))
    assert snapshot_of(restored) == snapshot_of(plain)
    for one in (restored, plain):
        one.apply(2, 1002, 0, [*chunks[10:], CloneChunk(1, last=True)])
    assert snapshot_of(restored) == snapshot_of(plain)
    assert restored.total(None).jobs == 400
    assert sum(not space.dropped for space in store.spaces) == 1
    other = paged_machine(store)
    other.restore([snapshot_of(restored)])
    assert sum(not space.dropped for space in store.spaces) == 2


def test_a_snapshot_that_is_refused_leaves_no_page_behind() -> None:
    store = MemoryStore()
    machine = paged_machine(store)
    machine.apply(1, 1000, 0, [Put("q", 0, b"1")] * 50)
    while machine.page_out():
        pass
    before = store.pages
    snapshot = snapshot_of(machine)
    with pytest.raises(SnapshotError):
        machine.restore([snapshot[:-1], b"?"])
    assert store.pages == before
    assert snapshot_of(machine) == snapshot


def test_a_restored_state_is_within_its_budget_all_the_time() -> None:
    plain = Machine(KNOWN_LEVEL)
    plain.apply(1, 1000, 0, [Put("q", 0, bytes(100))] * 5000)
    budget = 40_000
    store = MemoryStore()
    machine = paged_machine(store, hot_bytes_max=budget)
    machine.restore(plain.snapshot())
    assert machine.pages is not None
    assert machine.hot_bytes - machine.pages.handles_bytes <= budget
    assert machine.pages.jobs > 4500
    assert snapshot_of(machine) == snapshot_of(plain)


def test_a_snapshot_by_reference_names_pages_instead_of_jobs() -> None:
    store = MemoryStore()
    machine = paged_machine(store)
    machine.apply(1, 1000, 0, [Put("q", 0, b"body %d" % number) for number in range(100)])
    while machine.page_out():
        pass
    named = b"".join(machine.snapshot(by_reference=True))
    assert machine.pages is not None
    assert machine.pages.read == 0
    assert len(list(references([named]))) == machine.pages.count + machine.pages.bodies.count > 20
    assert named.count(b"body") < 10
    assert snapshot_of(machine).count(b"body") == 100
    assert list(references([snapshot_of(machine)])) == []


def test_a_page_that_is_not_there_is_missed() -> None:
    store = MemoryStore()
    machine = paged_machine(store)
    machine.apply(1, 1000, 0, [Put("q", 0, b"1")] * 50)
    while machine.page_out():
        pass
    named = b"".join(machine.snapshot(by_reference=True))
    other = paged_machine(MemoryStore())
    with pytest.raises(PageLost):
        other.restore([named])
    assert other.total(None).jobs == 0


def test_only_a_node_with_pages_reads_a_snapshot_by_reference() -> None:
    machine = paged_machine(MemoryStore())
    machine.apply(1, 1000, 0, [Put("q", 0, b"1")] * 50)
    while machine.page_out():
        pass
    named = b"".join(machine.snapshot(by_reference=True))
    with pytest.raises(SnapshotError, match="names pages"):
        Machine(KNOWN_LEVEL).restore([named])
    reply = machine.apply(
        2, 1001, 0, [CloneChunk(1, total_bytes=len(named)), CloneChunk(1, named), CloneChunk(1, last=True)],
    ).replies
    assert machine.total(None).jobs == 50, reply


@pytest.mark.parametrize("portion", [7, 10_000])
def test_with_very_many_priorities_pages_are_named_and_a_job_is_found_by_its_place_afterwards(
    portion: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpqd.core.store.ready.SCANNED_RUNS_MAX", 2)
    store = MemoryStore()
    machine = paged_machine(store)
    for index in range(1, 9):
        machine.apply(index, 1000 + index, 0, [Put("q", number % 6, b"%d" % number) for number in range(30)])
        while machine.page_out():
            pass
    places = [Place("q", view.seq) for view in machine.peek_queue("q", JobState.READY, 1000)]
    seen = [machine.peek(place) for place in places]
    read = pages_of(machine).read
    monkeypatch.setattr("sockpqd.core.limits.FRAME_JOBS_MAX", portion)
    named = b"".join(machine.snapshot(by_reference=True))
    assert pages_of(machine).read == read
    store.restart()
    other = paged_machine(store)
    other.restore([named])
    assert pages_of(other).read == 0
    assert len(places) == 240
    assert [other.peek(place) for place in places] == seen
    assert b"".join(other.snapshot()) == b"".join(machine.snapshot())
    for number, place in enumerate(places, 9):          # those in pages too
        assert machine.apply(number, 2000, 0, [Delete(place)]) == other.apply(number, 2000, 0, [Delete(place)])
    assert other.total(None).jobs == 0


@pytest.mark.parametrize(("searched", "rows"), [([99], []), (None, [(99, [1])])])
def test_jobs_by_seq_of_a_priority_without_jobs_are_refused(
    searched: list[int] | None, rows: list[tuple[int, list[int]]], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpqd.core.store.ready.SCANNED_RUNS_MAX", 2)
    store = MemoryStore()
    machine = paged_machine(store)
    machine.apply(1, 1000, 0, [Put("q", number % 6, b"%d" % number) for number in range(60)])
    while machine.page_out():
        pass
    right = frames_of(b"".join(machine.snapshot(by_reference=True)))
    wrong = [["seq ranks", "q", searched, rows] if frame[0] == "seq ranks" else frame for frame in right]
    assert wrong != right
    store.restart()
    with pytest.raises(SnapshotError, match="a priority without jobs"):
        paged_machine(store).restore([forged(*wrong)])
