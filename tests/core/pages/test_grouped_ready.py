"""A queue that several groups share shows the jobs of all in one order, wherever they are kept."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from sockpqd.core.pages.grouped_ready import GroupedReady, PagedGroup
from sockpqd.core.pages.pages import Pages
from sockpqd.core.store.job import Extras, Job, group_of
from sockpqd.core.store.queues import Queue
from tests.core.helpers.paging import MemoryStore, small_collections

GROUPS = ("q", "g", "h")


def job(seq: int, random: Random) -> Job:
    """Return a job with this seq and some group, which cannot be paged now and then."""
    group = random.choice(GROUPS)
    extras = Extras(key=f"k{seq}" if random.random() < 0.1 else None, group=group)
    rank, data = random.choice([0, 0, 0, 4, -4]), random.randbytes(random.randrange(10))
    return Job(rank, 0, seq, "q", data, None, 0, None, None if group == "q" else extras)


def copy(one: Job) -> Job:
    """Return an equal job that is another object."""
    return Job(*(getattr(one, name) for name in one.__struct_fields__))


def page_out(ready: GroupedReady, pages: Pages, random: Random) -> None:
    """Page out a part of the jobs of other groups."""
    steps = random.choice([0, 1, 3, 100])
    for _ in islice(ready.page_out(pages, random.choice([1, 9]), random.choice([1, 3]), 1), steps):
        pass


@pytest.mark.parametrize("seed", range(20))
def test_jobs_of_groups_are_in_one_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)
    random, store = Random(seed), MemoryStore()
    pages = Pages(store)
    queue = Queue("q")
    known: list[Job] = []
    for number in range(3):
        known.append(job(10 * number, random))
        queue.ready.add(known[-1])
    ready = GroupedReady.split(queue, [one for one in known if group_of(one) != "q"])
    out: list[Job] = []
    for number in range(500):
        kind = random.random()
        if kind < (0.6 if number % 200 < 120 else 0.2) or not known:
            new = out.pop(random.randrange(len(out))) if out and random.random() < 0.3 else job(10 * number + 5, random)
            known.append(new)
            ready.add(new)
        elif kind < 0.75:
            first = min(known, key=place)
            assert ready.take_first() == first
            known.remove(first)
            out.append(first)
        else:
            one = known.pop(random.randrange(len(known)))
            ready.remove(one if ready.outside is None or group_of(one) == "q" else copy(one))
            out.append(one)
        page_out(ready, pages, random)
        assert_same(ready, known, random)
        assert (pages.count, pages.jobs) == (store.pages, 0 if ready.outside is None else ready.outside.jobs)
    assert pages.written > 50
    assert pages.read > 50


def place(one: Job) -> tuple[int, int, int]:
    """Return the place of a job in its queue."""
    return one.rank, one.when, one.seq


def assert_same(ready: GroupedReady, known: list[Job], random: Random) -> None:
    """Assert that it shows these jobs, and has the first one of each group in memory."""
    ordered = sorted(known, key=place)
    assert ready.size == len(known)
    assert list(ready) == ordered
    assert {group: jobs.size for group, jobs in ready.groups.items()} == {
        group: count for group in GROUPS if (count := sum(group_of(one) == group for one in known))
    }
    for group, jobs in ready.groups.items():
        assert jobs.first == next(one for one in ordered if group_of(one) == group)
    if not known:
        return
    assert (ready.first, ready.front) == (ordered[0], ordered[0].rank)
    assert ready.oldest_seq() == min(one.seq for one in known)
    assert ready.first_of_least_priority == next(one for one in ordered if one.rank == ordered[-1].rank)
    at = random.randrange(len(known))
    assert list(ready.behind(copy(ordered[at]))) == ordered[at + 1:]
    assert ready.find(ordered[at].seq) == ordered[at]
    assert ready.find(ordered[at].seq + 1) is None


def test_only_the_page_that_is_next_is_read() -> None:
    queue, pages = Queue("q"), Pages(MemoryStore())
    jobs = [Job(0, 0, seq, "q", b"", None, 0, None, Extras(group="gh"[seq % 2])) for seq in range(1000)]
    for one in jobs:
        queue.ready.add(one)
    ready = GroupedReady.split(queue, jobs)
    for _ in ready.page_out(pages, 2, 50, 1):
        pass
    paged = ready.groups["g"]
    assert isinstance(paged, PagedGroup)
    assert pages.jobs > 990
    for one in jobs[::2]:
        assert ready.groups["g"].first == one
        ready.remove(one)
    assert pages.read == 10
    assert "g" not in ready.groups
    assert ready.size == 500
