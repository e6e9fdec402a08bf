"""The law of paging: a machine whose jobs go to pages answers as one that keeps them all in memory."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

from sockpqd.core import GroupCounts, JobAwaited, JobState, Machine, Pager, Pages, Place, expanded, limits, references
from sockpqd.core.pages.pager import STAGES, Stage
from tests.core.helpers.logs import KNOWN_LEVEL, LogEntry, snapshot_of
from tests.core.helpers.paging import MemoryStore, page_out, paged_machine

DEEP = (Stage(1, 3, 1), Stage(1, 2, 1))


def assert_same(paged: Machine, plain: Machine, entry: LogEntry) -> None:
    """Assert that both answer one entry equally."""
    index = plain.index + 1
    applied = plain.apply(index, *entry)
    assert paged.apply(index, *entry) == applied
    for reply in applied.replies:
        if isinstance(reply, JobAwaited):
            plain.keep_watch(reply.job)
            paged.keep_watch(reply.job)


def assert_same_views(paged: Machine, plain: Machine, random: Random, *, one_by_one: bool = True) -> None:
    """Both show the same of a queue, and of a job at some place of it.

    `one_by_one`: a page is read again for each of its jobs, as where they are large; not for pages of many jobs.
    """
    assert counts_of_groups(paged) == counts_of_groups(plain)
    names = sorted(plain.queue_names(""))
    assert sorted(paged.queue_names("")) == names
    if not names:
        return
    queue = random.choice(names)
    assert paged.stat(queue, plain.clock_ms) == plain.stat(queue, plain.clock_ms)
    assert (paged.total(None), paged.total(queue)) == (plain.total(None), plain.total(queue))
    for state in JobState:
        theirs = plain.peek_queue(queue, state, 10_000)
        with patch.object(limits, "LOOKED_BYTES_MAX", -1 if one_by_one else limits.LOOKED_BYTES_MAX):
            assert paged.peek_queue(queue, state, 10_000) == theirs
        if theirs:
            place = Place(queue, random.choice(theirs).seq + random.randrange(2))
            assert paged.peek(place) == plain.peek(place)


def assert_law(log: list[LogEntry], seed: int, stages: tuple[Stage, ...] = DEEP, full: float = 0.05) -> int:
    """Assert that a machine with pages answers as one without; returns how many pages it wrote."""
    one_by_one = stages is not STAGES
    random = Random(seed)
    store = MemoryStore(random, full)
    plain, paged = Machine(KNOWN_LEVEL), paged_machine(store, stages)
    written = 0
    for entry in log:
        assert_same(paged, plain, entry)
        page_out(paged, random)
        if random.random() < 0.15:
            assert_same_views(paged, plain, random, one_by_one=one_by_one)
            snapshot = snapshot_of(paged)
            assert snapshot == snapshot_of(plain)
            chance = random.random()
            if chance < 0.25:
                written += written_by(paged)
                paged.restore([snapshot])
                plain.unwatch_all()
                assert sum(not space.dropped for space in store.spaces) == 1
            elif chance < 0.5:
                written += written_by(paged)
                paged = restarted(paged, store, stages, snapshot)
                plain.unwatch_all()
                assert_same_views(paged, plain, random, one_by_one=one_by_one)
        assert_counted(paged, store)
    assert snapshot_of(paged) == snapshot_of(plain)
    return written + written_by(paged)


def restarted(paged: Machine, store: MemoryStore, stages: tuple[Stage, ...], snapshot: bytes) -> Machine:
    """Return a process restored by a snapshot by reference, which shows what `snapshot` has."""
    named = b"".join(paged.snapshot(by_reference=True))
    number = random_cut(named)
    assert list(references([named[:number], named[number:]])) == list(references([named]))
    store.restart()
    whole = Machine(KNOWN_LEVEL)
    counts = counts_of_groups(paged)
    whole.restore(expanded([named[:number], named[number:]], lambda one: store.left[int.from_bytes(one, "big")]))
    assert snapshot_of(whole) == snapshot
    resident = Machine(KNOWN_LEVEL, lambda: Pager(Pages(store), 0, resident=True))
    resident.restore([named])
    assert snapshot_of(resident) == snapshot
    assert store.pages == 0
    store.spaces.clear()
    paged = paged_machine(store, stages)
    paged.restore([named])
    assert snapshot_of(paged) == snapshot
    assert counts_of_groups(paged) == counts
    return paged


def counts_of_groups(machine: Machine) -> dict[str, GroupCounts | None]:
    """Return the jobs of each group in each state."""
    return {group: machine.group_counts(group) for group in machine.group_names()}


def random_cut(data: bytes) -> int:
    """Return a place in the data, the same for equal data."""
    return Random(data).randrange(len(data))


def assert_counted(paged: Machine, store: MemoryStore) -> None:
    """Assert that the pages and bodies that are counted are those that are kept."""
    pages = paged.pages
    assert pages is not None
    assert paged.hot_bytes >= 0
    bodies = pages.bodies
    assert pages.count + bodies.count == store.pages
    outside = list(bodies.outside.values())
    assert (pages.jobs > 0) == (pages.count > 0)
    of_queues = [paged.on_disk(name) for name in paged.queue_names("")]
    assert sum(one.jobs for one in of_queues) == pages.jobs + sum(one.jobs for one in outside)
    assert sum(one.data_bytes for one in of_queues) == pages.data_bytes + sum(one.data_bytes for one in outside)


def written_by(machine: Machine) -> int:
    """Return how many pages it wrote since it was made or restored."""
    assert machine.pages is not None
    return machine.pages.written
