"""DELAYED jobs of which some are in pages, against a plain list."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core.pages.delayed_pages import DelayedPages
from sockpqd.core.pages.paged_delays import PagedDelays
from sockpqd.core.pages.pages import Pages
from sockpqd.core.store.delayed import Delays
from sockpqd.core.store.job import DelayedJob, Extras
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue
from tests.core.helpers.paging import MemoryStore, small_collections


def delayed(due_ms: int, seq: int, *, plain: bool = True) -> DelayedJob:
    """Return a delayed job; unless it is `plain` it has a key, so it cannot be paged."""
    return DelayedJob(due_ms, seq, seq % 3, "q", b"data %d" % seq, None, 0, due_ms,
                      None if plain else Extras(key=str(seq)))


def begun(pages: Pages, jobs: list[DelayedJob]) -> tuple[Queue, Delays, PagedDelays]:
    """Return a queue with these jobs, which may be paged out."""
    queue, delays = Queue("q"), Delays()
    for job in jobs:
        delays.add(queue, job)
    return queue, delays, PagedDelays.of_queue(queue, DelayedPages.of(delays, pages))


@pytest.mark.parametrize("seed", range(10))
def test_it_is_a_sorted_list(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)
    random = Random(seed)
    store = MemoryStore(random, full=0.05)
    pages = Pages(store)
    queue, delays, _ = begun(pages, [delayed(1, 0)])
    known = [delayed(1, 0)]
    for seq in range(1, 1500):
        draw = random.random()
        if draw < 0.6 or not known:
            job = delayed(random.randrange(300), seq, plain=random.random() < 0.9)
            delays.add(queue, job)
            known.append(job)
            known.sort(key=lambda one: (one.due_ms, one.seq))
        else:
            job = known.pop(0 if draw < 0.85 else -1 if draw < 0.9 else random.randrange(len(known)))
            delays.remove(queue, job)
        if not known:
            assert queue.delayed is None
            continue
        paged = queue.delayed
        if isinstance(paged, JobList):
            paged = PagedDelays.of_queue(queue, DelayedPages.of(delays, pages))
        assert isinstance(paged, PagedDelays)
        assert (paged.size, paged.first, paged.last) == (len(known), known[0], known[-1])
        if draw < 0.3:
            for _ in paged.page_out(random.choice([0, 1, 4]), random.choice([2, 3]), random.choice([1, 2])):
                assert paged.first == known[0]
        assert len(delays.by_seq) == paged.near.size
        assert sum(paged.ranks.values()) == pages.jobs == paged.paged == paged.size - paged.near.size
        assert paged.paged_bytes == pages.data_bytes
        assert [page.first for page in paged.pages()] == sorted(page.first for page in paged.pages())
        if seq % 50 == 0:
            assert list(paged) == known
            for one in random.sample(known, min(20, len(known))):
                assert delays.find(one.seq) == one
    assert pages.written > 300
    assert isinstance(queue.delayed, PagedDelays)
    queue.delayed.load()
    assert list(queue.delayed.near) == known
    assert store.pages == 0
    assert queue.delayed.ranks == {}


def test_pages_of_jobs_that_came_in_order_are_read_one_by_one() -> None:
    pages = Pages(MemoryStore())
    queue, delays, jobs = begun(pages, [delayed(seq, seq) for seq in range(10_000)])
    for _ in jobs.page_out(2000, 250, 100):
        pass
    assert jobs.near.size == 2000
    assert pages.count == 32
    for seq in range(9000):
        assert jobs.first.seq == seq
        delays.remove(queue, jobs.first)
        assert jobs.near.size <= max(2000 - seq, 250)
    assert pages.read == 29


def test_the_next_pages_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.pages.paged_delays.PAGES_AHEAD", 2)
    store = MemoryStore()
    queue, delays, jobs = begun(Pages(store), [delayed(seq, seq) for seq in range(100)])
    for _ in jobs.page_out(0, 10, 1):
        pass
    assert store.expected == 0
    for _ in range(11):
        delays.remove(queue, jobs.first)
    assert store.expected == 4


def test_large_jobs_have_pages_of_their_own() -> None:
    pages = Pages(MemoryStore())
    queue, delays = Queue("q"), Delays()
    for seq in range(30):
        delays.add(queue, DelayedJob(seq, seq, 0, "q", bytes(20_000 if seq % 2 else 5), None, 0, None, None))
    for _ in PagedDelays.of_queue(queue, DelayedPages.of(delays, pages)).page_out(3, 100, 10):
        pass
    assert pages.jobs > 20
    assert pages.data_bytes > 200_000
