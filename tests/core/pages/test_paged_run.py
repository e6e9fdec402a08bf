"""A run with pages behaves as the plain list of the same jobs, whatever is asked of it."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core.pages import paged_run
from sockpqd.core.pages.paged_run import PagedRun
from sockpqd.core.pages.pages import Pages
from sockpqd.core.store.job import Extras, Job
from sockpqd.core.store.job_list import JobList
from tests.core.helpers.paging import MemoryStore, small_collections


def job(seq: int, random: Random) -> Job:
    """Return a job with this seq, which cannot be paged now and then."""
    extras = Extras(key=f"k{seq}") if random.random() < 0.1 else None
    return Job(0, 0, seq, "q", random.randbytes(random.randrange(10)), None, 0, None, extras)


def copy(one: Job) -> Job:
    """Return an equal job that is another object."""
    return Job(*(getattr(one, name) for name in one.__struct_fields__))


def page_out(run: PagedRun, random: Random) -> None:
    """Page out a part of the run."""
    steps = random.choice([0, 1, 3, 100])
    for _, _ in zip(range(steps), run.page_out(random.choice([0, 1, 4]), random.choice([1, 3]), 1), strict=False):
        pass


@pytest.mark.parametrize("seed", range(20))
def test_a_run_with_pages_is_a_list_of_jobs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)
    random, store = Random(seed), MemoryStore()
    pages = Pages(store)
    plain: JobList[Job] = JobList()
    run = PagedRun.of_run(JobList(), pages)
    out: list[Job] = []
    for number in range(600):
        kind = random.random()
        if kind < (0.5 if number % 200 < 120 else 0.2) or not plain.size:
            new = out.pop(random.randrange(len(out))) if out and random.random() < 0.3 else job(10 * number, random)
            plain.add(new)
            run.add(new)
        elif kind < 0.6:
            out.append(plain.take_first())
            assert run.take_first() == out[-1]
        elif kind < 0.75:
            gone = plain[random.randrange(plain.size)]
            plain.remove(gone)
            if random.random() < 0.5:
                run.remove(copy(gone))
            else:
                assert run.discard(copy(gone))
            out.append(gone)
        page_out(run, random)
        assert_same(run, plain, random)
        assert (pages.jobs, pages.data_bytes, pages.count) == (run.paged, run.paged_bytes, store.pages)
    assert pages.written > 100


def assert_same(run: PagedRun, plain: JobList[Job], random: Random) -> None:
    """Assert that both show the same, and that nothing leaves its page for it."""
    paged = run.paged
    assert run.size == plain.size
    assert list(run) == list(plain)
    if plain.size:
        assert run.first == plain.first
        assert run.last == plain.last
        at = random.randrange(plain.size)
        some = plain[at]
        assert run[at] == some
        assert run.position(copy(some)) == at
        assert copy(some) in run
        assert run.find(some.seq) == some
        absent = job(some.seq + 5, random)
        assert absent not in run
        assert run.position(absent) == at + 1
        assert run.find(absent.seq) is None
        assert not run.discard(absent)
    with pytest.raises(IndexError):
        _ = run[plain.size]
    assert run.paged == paged


def test_the_way_past_many_pages_is_interrupted() -> None:
    """Else jobs with keys in front of a deep queue would hold the node for as long as it takes to pass all pages."""
    pages = Pages(MemoryStore())
    run = PagedRun.of_run(JobList(), pages)
    for seq in range(4000):
        run.add(Job(0, 0, seq, "q", b"", None, 0, None, Extras(key=f"k{seq}") if seq < 100 else None))
    list(run.page_out(1, 2, 1))
    assert run.paged == 3900
    steps = len(list(run.page_out(1, 2, 1)))
    assert steps > len(run._blocks) // paged_run.PASSED_MAX > 4
