"""The law of paging with jobs of groups, whatever the settings of queues and groups (spec/fair 7)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from sockpqd.core import (
    Atomic,
    Batch,
    Change,
    Configure,
    ConfigureGroup,
    ConfigureQueue,
    Delete,
    DeleteGroup,
    Done,
    Due,
    End,
    Feedback,
    Get,
    GetWith,
    GroupBy,
    How,
    JobState,
    Machine,
    Move,
    Order,
    Overflow,
    Place,
    Policy,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Return,
    Sched,
    SnapshotError,
    references,
)
from sockpqd.core.fair import first_jobs
from sockpqd.core.ops.replies import NOT_FOUND
from tests.core.helpers.forge import forged, frames_of
from tests.core.helpers.logs import KNOWN_LEVEL, LogEntry, snapshot_of
from tests.core.helpers.paging import MemoryStore, paged_machine, small_collections
from tests.core.helpers.paging_law import assert_counted, assert_law

QUEUES = ("a", "b")
GROUPS = ("a", "g", "h", "i", "j")

# What each queue is set to at first, and its groups are.
SETTINGS: dict[str, QueueChange] = {
    "fair": QueueChange(sched=Sched.FAIR),
    "in the order of the queue": QueueChange(sched=Sched.GROUPS),
    "limits": QueueChange(sched=Sched.GROUPS, group_limit=2),
    "rates": QueueChange(sched=Sched.FAIR, group_rate=3, group_per_ms=400),
    "ordered groups": QueueChange(sched=Sched.GROUPS, group_order=True),
    "by user": QueueChange(sched=Sched.FAIR, group_by=GroupBy.USER),
    "by header": QueueChange(sched=Sched.GROUPS, group_by=GroupBy.HEAD, group_header="Tenant"),
    "by item": QueueChange(sched=Sched.FAIR, group_by=GroupBy.ITEM),
    "none": QueueChange(weight=2),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)


def group_log(seed: int, length: int, change: QueueChange) -> list[LogEntry]:
    """Return a log with long queues of jobs of several groups."""
    random = Random(seed)
    machine = Machine(KNOWN_LEVEL)
    configured: list[Any] = [ConfigureQueue(queue, change) for queue in QUEUES]
    log = [LogEntry(1_700_000_000_000, 1, configured)]
    machine.apply(1, *log[0])
    ids: list[int] = []
    now_ms = log[0].now_ms
    while len(log) < length:
        now_ms += random.choice([0, 1, 30, 100])
        fills = len(log) % 200 < 100
        entry = LogEntry(now_ms, random.getrandbits(64), [
            operation(random, machine, ids, 0.75 if fills else 0.15, said=change.group_by is None)
            for _ in range(random.randrange(1, 12))])
        log.append(entry)
        for reply in machine.apply(len(log), *entry).replies:
            ids += [job.id for job in getattr(reply, "jobs", [reply]) if hasattr(job, "id") and hasattr(job, "data")]
        ids = ids[-40:]
    return log


def put_of_group(random: Random, queue: str, *, said: bool) -> PutWith:
    """Return a Put of some group, by whatever the queue decides that. `said`: the Put may name it."""
    group, draw = random.choice(GROUPS), random.random()
    head = b"Tenant: %s\n\n" % group.encode()
    put = Put(queue, random.choice([0, 0, 0, 7, -7]), head + random.randbytes(random.randrange(20)))
    return PutWith(
        put, group=group if said else None, head=len(head), user=group, number=draw < 0.2,
        tries=3 if draw > 0.8 else None, lease_ms=50 if 0.7 < draw < 0.8 else None,
        key="k" if 0.6 < draw < 0.62 else None, ttl_ms=90 if 0.62 < draw < 0.64 else None,
        when=Due(random.choice([40, 900])) if 0.4 < draw < 0.6 else None,
    )


def operation(random: Random, machine: Machine, ids: list[int], puts: float, *, said: bool) -> Any:
    """Return an operation, a Put with probability `puts`. `said`: see put_of_group."""
    queue, kind, group = random.choice(QUEUES), random.random(), random.choice(GROUPS)
    put = put_of_group(random, queue, said=said)
    if random.random() < puts:
        item = random.choice([None, None, "g", "h"]) if kind > 0.9 else None
        return put if kind < 0.8 else Put(queue, 0, b"own", item)
    if kind < 0.4:
        return GetWith(Get(random.choice([None, (queue,)]), random.choice([None, 40])), random.choice([1, 3, 9]),
                       random.choice([None, None, *Policy]))
    number = random.choice(ids) if ids else 0
    seen = machine.peek_queue(queue, JobState.READY, 100)
    place = Place(queue, random.choice(seen).seq if seen else 0)
    ones: list[Atomic] = [
        Done(number), End(number, How.LATER, first=random.random() < 0.5), Move(number, random.choice(QUEUES)),
        End(number, How.LATER, feedback=Feedback.SLEEP, sleep_ms=70), Delete(place), put, put,
        Change(place, random.choice([None, 7]), data=b"changed"), Change(place, when=Due(20)),
    ]
    if kind < 0.75:
        return random.choice([*ones, Return(number)])
    if kind < 0.85:
        return Batch((*random.choices(ones, k=4), Done(random.choice([number, 0]))), True)
    if kind < 0.95:
        return random.choice([
            ConfigureGroup(group, paused=True, pause_ms=random.choice([None, 60])),
            ConfigureGroup(group, paused=False), DeleteGroup(group),
            ConfigureGroup(group, limit=random.choice([0, 1, 3]), weight=random.choice([1, 5])),
            ConfigureGroup(group, rate=random.choice([0, 2]), per_ms=300),
        ])
    return random.choice([
        PurgeQueue(queue, Purged.READY, random.choice([None, place.seq])), Configure(policy=random.choice([*Policy])),
        ConfigureQueue(queue, QueueChange(order=random.choice([*Order]), item_limit=random.choice([0, 0, 2]))),
        ConfigureQueue(queue, QueueChange(capacity=random.choice([0, 0, 60]), overflow=random.choice([*Overflow]))),
    ])


@pytest.mark.parametrize("seed", range(2), ids=["few groups", "many groups"])
@pytest.mark.parametrize("kind", SETTINGS)
def test_pages_of_groups_show_nowhere(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_jobs, "FEW", 1 if seed else 8)
    number = list(SETTINGS).index(kind)
    assert assert_law(group_log(number, 250, SETTINGS[kind]), number) > 40


def test_nodes_with_different_budgets_are_equal() -> None:
    stores, budgets = [MemoryStore() for _ in range(3)], (0, 6_000, 40_000)
    machines = [paged_machine(store, hot_bytes_max=most) for store, most in zip(stores, budgets, strict=True)]
    for number, entry in enumerate(group_log(3, 300, SETTINGS["limits"]), 1):
        first, *others = [machine.apply(number, *entry) for machine in machines]
        assert all(one == first for one in others)
        for machine in machines:
            while machine.page_out():
                pass
    most, some, least = [machine.pages.written for machine in machines if machine.pages is not None]
    assert most > least > 0
    assert some not in (most, least)
    snapshot = snapshot_of(machines[0])
    for machine, store in zip(machines, stores, strict=True):
        assert snapshot_of(machine) == snapshot
        assert_counted(machine, store)


def paged_out(store: MemoryStore) -> Machine:
    """Return a machine with long lists of jobs of two groups, and of the group of their queue, nearly all in pages."""
    machine = paged_machine(store)
    for number in range(60):
        group, data = random_group(number), b"body %d" % number
        machine.apply(number + 1, 1000 + number, 0, [PutWith(Put("q", number // 30, data), group=group)])
    while machine.page_out():
        pass
    return machine


def random_group(number: int) -> str:
    """Return the groups in turn."""
    return ("q", "g", "h")[number % 3]


def test_a_snapshot_by_reference_names_the_pages_of_groups() -> None:
    machine = paged_out(MemoryStore())
    assert machine.pages is not None
    named = b"".join(machine.snapshot(by_reference=True))
    assert machine.pages.read == 0
    assert machine.pages.jobs > 30
    assert len(list(references([named]))) == machine.pages.count + machine.pages.bodies.count
    assert named.count(b"body") < 25
    assert snapshot_of(machine).count(b"body") == 60


def test_jobs_of_a_group_in_pages_are_found_by_their_places_and_numbers() -> None:
    store = MemoryStore()
    machine = paged_machine(store)
    puts = [PutWith(Put("q", 0, b"%d" % number), group="g", number=number % 2 == 0) for number in range(60)]
    machine.apply(1, 1000, 0, [PutWith(Put("q", 0, b"0"), group="g"), *puts])
    while machine.page_out():
        pass
    views = machine.peek_queue("q", JobState.READY, 100)
    for view in views[5:50:5]:
        seen = machine.peek(Place("q", view.seq))
        assert seen is not None
        assert seen.seq == view.seq


def test_a_job_in_a_page_that_has_no_number_is_not_found_by_one() -> None:
    machine = paged_out(MemoryStore())
    seqs = [view.seq for view in machine.peek_queue("q", JobState.READY, 100)]
    asked = [GetWith(Get(None), 1, number=seq) for seq in seqs]
    assert set(machine.apply(machine.index + 1, 2000, 0, asked).replies) == {NOT_FOUND}


def test_the_pages_of_groups_belong_to_one_node() -> None:
    named = b"".join(paged_out(MemoryStore()).snapshot(by_reference=True))
    with pytest.raises(SnapshotError, match="names pages"):
        Machine(KNOWN_LEVEL).restore([named])


def unknown_group(frames: list[Any]) -> None:
    """Page out a group that has no job in memory."""
    next(frame for frame in frames if frame[0] == "group pages")[2][-1][0] = "unknown"


def no_jobs(frames: list[Any]) -> None:
    """Make a page without jobs."""
    next(frame for frame in frames if frame[0] == "group pages")[2][0][2] = 0


def own_ones_first(frames: list[Any]) -> None:
    """Put jobs of groups after their queue's."""
    at, others = next((at, frame) for at, frame in enumerate(frames) if frame[0] == "group waiting")
    own = next(at for at, frame in enumerate(frames) if frame[0] == "waiting")
    frames[at], frames[own] = frames[own], others


def own_ones_among_others(frames: list[Any]) -> None:
    """Treat the jobs of the queue as if they were of other groups."""
    next(frame for frame in frames if frame[0] == "waiting")[0] = "group waiting"


@pytest.mark.parametrize("change", [unknown_group, no_jobs, own_ones_first, own_ones_among_others])
def test_what_no_node_writes_of_groups_is_refused(change: Callable[[list[Any]], None]) -> None:
    store = MemoryStore()
    frames = frames_of(b"".join(paged_out(store).snapshot(by_reference=True)))
    store.restart()
    paged_machine(store).restore([forged(*frames)])
    change(frames)
    with pytest.raises(SnapshotError):
        paged_machine(store).restore([forged(*frames)])
