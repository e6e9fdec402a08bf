"""The READY jobs of a queue keep their order, be they few or many, of one priority or of many."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core.limits import SCANNED_RUNS_MAX, UNSPLIT_JOBS_MAX
from sockpqd.core.store.job import Job
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.ready import ReadyJobs
from tests.core.helpers.counted import Counted, counted


def job(rank: int, seq: int, when: int = 0) -> Job:
    return Job(rank, when, seq, "q", b"", None, 0, None, None)


def looks_like(ready: ReadyJobs, jobs: list[Job]) -> bool:
    return list(ready) == jobs and ready.size == len(jobs) and (not jobs or ready.first is jobs[0])


@pytest.mark.parametrize("ranks", [1, 3, 10 * UNSPLIT_JOBS_MAX])
@pytest.mark.parametrize("count", [1, 7, UNSPLIT_JOBS_MAX, UNSPLIT_JOBS_MAX + 1, 3 * UNSPLIT_JOBS_MAX])
def test_jobs_come_in_order_however_they_were_added_and_removed(count: int, ranks: int) -> None:
    random = Random(count)
    jobs = [job(random.randrange(-ranks, 0), seq, random.randrange(2)) for seq in range(count)]
    ready = ReadyJobs()
    for one in random.sample(jobs, count):
        ready.add(one)
    assert looks_like(ready, sorted(jobs))
    gone = random.sample(jobs, count // 3)
    for one in gone:
        ready.remove(one)
    left = sorted(one for one in jobs if one not in gone)
    assert looks_like(ready, left)
    for position, one in enumerate(left):
        assert looks_like(ready, left[position:]) or position % 100
        assert ready.take_first() is one
    assert looks_like(ready, [])


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_sorted_list_through_any_history(seed: int) -> None:
    random = Random(seed)
    ready, jobs, away = ReadyJobs(), [], []
    for seq in range(8 * UNSPLIT_JOBS_MAX):
        # grows, then shrinks, and again
        kind = random.random() + (0.2 if seq // (2 * UNSPLIT_JOBS_MAX) % 2 else -0.2)
        if kind < 0.5 or not jobs:
            new = away.pop() if away and random.random() < 0.3 else job(-random.randrange(1 + seed * 5), seq)
            ready.add(new)
            jobs.append(new)
            jobs.sort()
        elif kind < 0.9:
            assert ready.take_first() is jobs[0]
            away.append(jobs.pop(0))
        else:
            one = random.choice(jobs)
            ready.remove(one)
            jobs.remove(one)
        assert ready.size == len(jobs)
        assert not jobs or ready.first is jobs[0]
        assert seq % 50 or looks_like(ready, jobs)


def test_a_queue_that_was_emptied_is_short_again() -> None:
    ready = ReadyJobs()
    for seq in range(2 * UNSPLIT_JOBS_MAX):
        ready.add(job(-seq % 7, seq))
    assert ready._runs is not None
    while ready.size:
        ready.take_first()
    assert ready._runs is None
    again = job(0, 1)
    ready.add(again)
    assert looks_like(ready, [again])


def test_the_many_are_looked_at_only_where_a_job_comes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes a PUT as fast with a million jobs as with none."""
    ready = ReadyJobs()
    for seq in range(5 * UNSPLIT_JOBS_MAX):
        ready.add(counted(-(seq % 100), seq))
    monkeypatch.setattr(Counted, "compared", 0)
    for seq in range(5 * UNSPLIT_JOBS_MAX, 5 * UNSPLIT_JOBS_MAX + 100):
        ready.add(counted(-(seq % 100), seq))
    assert 0 < Counted.compared <= 100


# ---- finding a job by the number of its place

@pytest.mark.parametrize("ranks", [1, 3, SCANNED_RUNS_MAX + 1, 10 * SCANNED_RUNS_MAX, 10**9])
def test_a_job_is_found_by_its_seq_through_any_history(ranks: int) -> None:
    random = Random(ranks)
    ready = ReadyJobs()
    jobs: dict[int, Job] = {}
    away: list[Job] = []
    for seq in range(12 * UNSPLIT_JOBS_MAX):
        # grows, then shrinks, and again, with few priorities now and then
        kind = random.random() + (0.35 if seq // (3 * UNSPLIT_JOBS_MAX) % 2 else -0.3)
        if kind < 0.5 or not jobs:
            of = min(ranks, 5) if seq // 700 % 3 == 0 else ranks
            new = away.pop() if away and random.random() < 0.2 else job(-random.randrange(of), seq)
            ready.add(new)
            jobs[new.seq] = new
        elif kind < 0.9:
            away.append(jobs.pop(ready.take_first().seq))
        else:
            ready.remove(jobs.pop(random.choice(list(jobs))))
        assert seq % 100 or finds(ready, jobs, away, random)
    while jobs:
        away.append(jobs.pop(ready.take_first().seq))
        assert len(jobs) % 100 or finds(ready, jobs, away, random)
    assert not ready._rank_of
    assert not ready._searched


def finds(ready: ReadyJobs, jobs: dict[int, Job], away: list[Job], random: Random) -> bool:
    """Return whether some of the jobs are found that are there, and none of the others."""
    there = random.sample(list(jobs.values()), min(30, len(jobs)))
    others = [*(one.seq for one in random.sample(away, min(30, len(away)))), -1, 10**9]
    return all(ready.find(one.seq) is one for one in there) and not any(map(ready.find, others))


@pytest.mark.parametrize("ranks", [1, SCANNED_RUNS_MAX, 5_000, 20_000])
def test_finding_a_job_among_many_looks_into_few_runs(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = ReadyJobs()
    for seq in range(20_000):
        ready.add(job(-(seq % ranks), seq))
    looks = 0
    find = JobList.find

    def looked(run: JobList[Job], seq: int) -> Job | None:
        nonlocal looks
        looks += 1
        return find(run, seq)

    monkeypatch.setattr(JobList, "find", looked)
    for seq in (0, 10_001, 19_999):
        looks = 0
        found = ready.find(seq)
        assert found is not None
        assert found.seq == seq
        assert looks <= SCANNED_RUNS_MAX + 1
    assert len(ready._searched) <= SCANNED_RUNS_MAX + 1
