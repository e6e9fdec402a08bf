"""The list of jobs keeps its order through any number of blocks."""

from __future__ import annotations

from bisect import bisect_left
from random import Random

import pytest

from sockpqd.core.limits import BLOCK_JOBS_MAX
from sockpqd.core.store.job import Job
from sockpqd.core.store.job_list import JobList
from tests.core.helpers.counted import Counted, counted


def job(rank: int, seq: int) -> Job:
    return Job(rank, 0, seq, "q", b"", None, 0, None, None)


def check(ready: JobList[Job], jobs: list[Job]) -> None:
    assert list(ready) == jobs
    assert ready.size == len(jobs)
    blocks = ready._blocks
    assert blocks == [[]] if not jobs else all(0 < len(block) <= BLOCK_JOBS_MAX for block in blocks)


@pytest.mark.parametrize("order", [range(3 * BLOCK_JOBS_MAX), range(3 * BLOCK_JOBS_MAX, 0, -1)])
def test_no_block_is_long_whatever_the_order_of_arrival(order: range) -> None:
    ready: JobList[Job] = JobList()
    for seq in order:
        ready.add(job(0, seq))
    check(ready, sorted(ready))
    assert len(ready._blocks) < 8


@pytest.mark.parametrize("count", [1, 7, BLOCK_JOBS_MAX, BLOCK_JOBS_MAX + 1, 3 * BLOCK_JOBS_MAX])
def test_jobs_come_in_order_however_they_were_added_and_removed(count: int) -> None:
    random = Random(count)
    jobs = [job(random.randrange(3), seq) for seq in range(count)]
    ready: JobList[Job] = JobList()
    for one in random.sample(jobs, count):
        ready.add(one)
    gone = random.sample(jobs, count // 3)
    for one in gone:
        ready.remove(one)
    left = sorted(one for one in jobs if one not in gone)
    check(ready, left)
    assert [ready[position] for position in range(0, len(left), 97)] == left[::97]
    assert [ready.take_first() for _ in left] == left
    check(ready, [])
    ready.add(jobs[0])
    assert ready.take_first() is jobs[0]


@pytest.mark.parametrize("seed", range(4))
def test_it_is_a_sorted_list_through_any_history(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.store.job_list.BLOCK_JOBS_MAX", 5)
    random = Random(seed)
    ready: JobList[Job] = JobList()
    jobs: list[Job] = []
    for seq in range(4000):
        kind = random.random() + (0.25 if seq // 500 % 2 else -0.2)
        if kind < 0.5 or not jobs:
            place = seq * 10 if random.random() < 0.5 else random.randrange(4000) * 10 + 1
            new = job(random.randrange(1 + seed), place)
            if new in jobs:
                continue
            ready.add(new)
            jobs.append(new)
            jobs.sort()
        elif kind < 0.8:
            assert ready.take_first() is jobs.pop(0)
        elif kind < 1.0:
            one = jobs.pop(random.randrange(len(jobs)))
            assert one in ready
            assert ready.discard(one)
            assert not ready.discard(one)
        else:
            ready.remove(jobs.pop())
        other = job(random.randrange(3), random.randrange(4000) * 10 + 2)
        assert other not in ready
        assert not ready.discard(other)
        assert ready.position(other) == bisect_left(jobs, other)
        assert seq % 20 or list(ready) == jobs
        if jobs:
            assert ready[0] is jobs[0]
            assert ready[len(jobs) - 1] is jobs[-1]
    with pytest.raises(IndexError):
        ready[len(jobs)]


def test_a_job_behind_all_others_is_compared_with_the_last_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "compared", 0)
    ready: JobList[Job] = JobList()
    for seq in range(5 * BLOCK_JOBS_MAX):
        ready.add(counted(0, seq))
    assert 0 < Counted.compared < 5 * BLOCK_JOBS_MAX
