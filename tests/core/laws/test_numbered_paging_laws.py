"""The law of paging with numbered jobs, and what their pages cost."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from sockpqd.core import (
    Atomic,
    Await,
    Batch,
    Change,
    ConfigureQueue,
    Delete,
    DeleteQueue,
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
    Move,
    Number,
    Pages,
    Place,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Return,
    StoredNumber,
    Tick,
)
from sockpqd.core.pages.pager import Pager, Stage
from tests.core.helpers.logs import KNOWN_LEVEL, LogEntry, ask, snapshot_of
from tests.core.helpers.paging import MemoryStore, paged_machine, small_collections
from tests.core.helpers.paging_law import DEEP, assert_counted, assert_law, restarted

QUEUES = ("a", "b")
PLAIN = 16              # bytes: what a numbered job in a page may take in memory beyond what a plain one does


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)


def numbered_log(seed: int, length: int) -> list[LogEntry]:
    """Return a log with long queues of jobs most of which are numbered, some by the setting of a queue, and some
    delayed.
    """
    random = Random(seed)
    machine = Machine(KNOWN_LEVEL)
    log: list[LogEntry] = []
    ids: list[int] = []
    numbers: list[int] = []
    now_ms = 1_700_000_000_000
    settings = ConfigureQueue("b", QueueChange(numbered=seed % 2 == 1))
    log.append(LogEntry(now_ms, 0, [settings]))
    machine.apply(1, *log[-1])
    while len(log) < length:
        now_ms += random.choice([0, 1, 30, 300])
        fills = len(log) % 200 < 120
        log.append(LogEntry(now_ms, random.getrandbits(64), [
            operation(random, machine, ids, numbers, 0.8 if fills else 0.2) for _ in range(random.randrange(1, 12))]))
        for reply in machine.apply(len(log), *log[-1]).replies:
            ids += [job.id for job in getattr(reply, "jobs", [reply]) if hasattr(job, "id") and hasattr(job, "data")]
            numbers += [reply.number] if isinstance(reply, StoredNumber) else []
        ids = ids[-40:]
    return log


def operation(random: Random, machine: Machine, ids: list[int], numbers: list[int], puts: float) -> Any:
    """Return an operation, a Put with probability `puts`."""
    queue, kind = random.choice(QUEUES), random.random()
    when = random.choice([None, None, Due(random.choice([1, 100, 1000, random.randrange(20_000)]))])
    wish = PutWith(Put(queue, random.choice([0, 0, 0, 7, -7]), random.randbytes(random.randrange(30))), when=when)
    put = replace(wish, number=True, lease_ms=random.choice([None, 40, 40_000]))
    if random.random() < puts:
        return put if kind > 0.15 else random.choice([wish, Put(queue, 0, b"plain"), PutWith(
            wish.put, key=random.choice("kl"), ttl_ms=random.choice([None, 50]), number=True,
        )])
    if kind < 0.3:
        return GetWith(Get(random.choice([None, (queue,)]), random.choice([None, 40])), random.choice([1, 3, 9]))
    id_ = random.choice(ids) if ids else 0
    seen = machine.peek_queue(queue, JobState.READY, 200)
    number = Number(random.choice([*numbers, *[view.number or view.seq for view in seen], 5]))
    place = Place(queue, random.choice(seen).seq if seen else 0)
    ones: list[Atomic] = [
        Done(id_), Later(id_), End(id_, How.LATER, when, first=True), End(id_, How.LATER, when, reason="why"),
        Move(id_, queue), End(id_, How.BURY, here=True), Delete(number), Delete(
            number, unless_running=True,
        ), Kick("", 1, selector=number),
        Change(number, random.choice([None, 7]), data=random.choice([None, b"changed"])),
        Change(number, when=random.choice([when, Due(0)])), Delete(place), put,
    ]
    if kind < 0.8:
        return random.choice([*ones, Return(id_), GetWith(
            Get(None, random.choice([None, 40])), number=number.number,
        ), Await(number), Await(number)])
    if kind < 0.95:
        return Batch((*random.choices(ones, k=4), Done(random.choice([id_, 0]))), True)
    return random.choice([
        PurgeQueue(queue, random.choice([*Purged]), random.choice([None, place.seq])) if kind > 0.985 else Tick(),
        DeleteQueue(queue, True) if kind > 0.995 else Tick(), Kick(queue, random.choice([1, 5, 50]), here=True),
    ])


@pytest.mark.parametrize("seed", range(6))
def test_paging_shows_nowhere_with_numbered_jobs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 3 == 2:
        monkeypatch.setattr("sockpqd.core.store.ready.SCANNED_RUNS_MAX", 2)     # so that the runs have their index
    assert assert_law(numbered_log(seed, 700), seed, DEEP) > 400


def filled(store: MemoryStore, jobs: int, *, numbered: bool = True, delay_ms: int | None = None) -> Machine:
    """Return a machine with jobs, all but one in pages."""
    machine = paged_machine(store, (Stage(1, 250, 1),))
    when = None if delay_ms is None else Due(delay_ms)
    for start in range(0, jobs, 1000):
        wishes = [PutWith(Put("q", 0, b"%d" % number), when=when) for number in range(start, min(start + 1000, jobs))]
        puts = [replace(one, number=True) if numbered else one for one in wishes]
        machine.apply(machine.index + 1, 1000 + start, 0, puts)
        while machine.page_out():
            pass
    return machine


def pages_of(machine: Machine) -> Pages:
    assert machine.pages is not None
    return machine.pages


@pytest.mark.parametrize("delay_ms", [None, 60_000])
def test_numbered_jobs_go_to_pages_like_others(delay_ms: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    machine = filled(MemoryStore(), 3000, delay_ms=delay_ms)
    assert machine.on_disk("q").jobs > 2900
    plain = filled(MemoryStore(), 3000, numbered=False, delay_ms=delay_ms)
    assert machine.hot_bytes - plain.hot_bytes <= PLAIN * 3000


@pytest.mark.parametrize("delay_ms", [None, 60_000])
def test_a_job_is_found_by_its_number_with_one_page(delay_ms: int | None) -> None:
    store = MemoryStore()
    machine = filled(store, 100, delay_ms=delay_ms)
    numbers = [view.seq for state in JobState for view in machine.peek_queue("q", state, 1000)]
    read = pages_of(machine).read
    for count, number in enumerate(numbers):
        view = machine.peek(Number(number))
        assert view is not None
        assert view.data == b"%d" % count
    assert pages_of(machine).read - read == machine.on_disk("q").jobs
    assert machine.peek(Number(numbers[0] - 1)) is None


@pytest.mark.parametrize("delay_ms", [None, 60_000])
def test_a_job_that_has_left_the_place_of_its_number_is_found_by_that_alone(delay_ms: int | None) -> None:
    machine = paged_machine(MemoryStore(), (Stage(1, 250, 1),))
    ask(machine, ConfigureQueue("q", QueueChange(numbered=True)), *[Put("q", 0, b"%d" % at) for at in range(300)])
    when = None if delay_ms is None else Due(delay_ms)
    known = {view.body(): view.number for view in machine.peek_queue("q", JobState.READY, 1000)}
    for _ in range(150):
        (job,) = ask(machine, Get(("q",)))
        ask(machine, End(getattr(job, "id", 0), How.LATER, when))
        while machine.page_out():
            pass
    assert machine.on_disk("q").jobs > 100
    seen = [view for state in JobState for view in machine.peek_queue("q", state, 1000)]
    assert {view.body(): view.number for view in seen} == known
    assert sum(view.seq != view.number for view in seen) == 150
    for view in seen:
        found = machine.peek(Number(view.number or 0))
        assert found is not None
        assert (found.state, found.seq, found.body()) == (view.state, view.seq, view.body())
        assert view.seq == view.number or machine.peek(Number(view.seq)) is None


def test_the_number_of_a_job_that_has_none_finds_no_job() -> None:
    machine = filled(MemoryStore(), 100, numbered=False, delay_ms=60_000)
    for view in machine.peek_queue("q", JobState.DELAYED, 1000):
        assert machine.peek(Number(view.seq)) is None


def test_jobs_read_from_a_page_share_their_extras() -> None:
    machine = filled(MemoryStore(), 100)
    jobs = [job for page in pages_of(machine)._numbered.values() for job in pages_of(machine).look(page)]
    assert len(jobs) > 90
    assert len({id(job.extras) for job in jobs}) == 1


def test_numbers_are_forgotten_with_their_pages() -> None:
    store = MemoryStore()
    machine = filled(store, 200)
    ask(machine, PurgeQueue("q", Purged.ALL))
    assert (len(pages_of(machine).index), pages_of(machine).indexed, store.pages) == (0, 0, 0)
    assert machine.hot_bytes == 0


def test_a_page_that_is_dropped_unread_leaves_no_number() -> None:
    store = MemoryStore()
    machine = filled(store, 100)
    pages = pages_of(machine)
    read = pages.read
    for page in list(pages._numbered.values()):
        pages.drop_page(page)
    assert (len(pages.index), pages.indexed, pages.jobs, pages.read) == (0, 0, 0, read)


def test_a_snapshot_by_reference_names_pages_of_numbered_jobs() -> None:
    store = MemoryStore()
    machine = filled(store, 300)
    read = pages_of(machine).read
    b"".join(machine.snapshot(by_reference=True))
    assert pages_of(machine).read == read
    other = restarted(machine, store, (Stage(1, 250, 1),), snapshot_of(machine))
    assert other.on_disk("q").jobs > 250
    assert_counted(other, store)
    for number in [view.seq for view in other.peek_queue("q", JobState.READY, 1000)][::-1]:
        reply, = ask(other, Delete(Number(number)))
        assert type(reply).__name__ == "Finished"
    assert (len(pages_of(other).index), store.pages) == (0, 0)


def test_jobs_that_come_without_their_pages_are_in_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.store.ready.SCANNED_RUNS_MAX", 2)
    store = MemoryStore()
    machine = paged_machine(store)
    for index in range(1, 9):
        machine.apply(index, 1000 + index, 0, [
            PutWith(Put(queue, number % 6 if queue == "a" else 0, b"1"), number=True)
            for number in range(30) for queue in QUEUES])
        while machine.page_out():
            pass
    named = b"".join(machine.snapshot(by_reference=True))
    store.restart()
    other = paged_machine(store)
    other.restore([named])
    assert len(pages_of(other).index) == pages_of(other).indexed > 400
    while other.page_out():
        pass
    seen = [view.seq for queue in QUEUES for view in machine.peek_queue(queue, JobState.READY, 1000)]
    assert [other.peek(Number(seq)) for seq in seen] == [machine.peek(Number(seq)) for seq in seen]
    ask(other, *[GetWith(Get(None), 100)] * 5)
    assert len(pages_of(other).index) == 0
    resident = Machine(KNOWN_LEVEL, lambda: Pager(Pages(store), 0, resident=True))
    resident.restore([named])
    assert len(pages_of(resident).index) == 0
