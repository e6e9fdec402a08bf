"""The ready list keeps its order through both of its forms."""

from __future__ import annotations

from random import Random

import pytest

from core.job import Job
from core.job_list import SHORT_MAX, JobList


@pytest.mark.parametrize("order", [range(SHORT_MAX + 1), range(SHORT_MAX, -1, -1)])
def test_long_list_is_not_a_plain_one_whatever_the_order_of_arrival(order: range) -> None:
    ready = JobList()
    for seq in order:
        assert type(ready._jobs) is list
        ready.add(job(0, seq))
    assert type(ready._jobs) is not list    # moving the tail of a million jobs at each step would cost milliseconds


def job(rank: int, seq: int) -> Job:
    return Job(rank, 0, seq, "q", b"", None, 0, None, None)


@pytest.mark.parametrize("count", [1, 7, SHORT_MAX, SHORT_MAX + 1, 3 * SHORT_MAX])
def test_jobs_come_in_order_however_they_were_added_and_removed(count: int) -> None:
    random = Random(count)
    jobs = [job(random.randrange(3), seq) for seq in range(count)]
    ready = JobList()
    for one in random.sample(jobs, count):
        ready.add(one)
    gone = random.sample(jobs, count // 3)
    for one in gone:
        ready.remove(one)
    left = sorted(one for one in jobs if one not in gone)
    assert ready.size == len(left)
    assert list(ready) == left
    assert [ready.take_first() for _ in left] == left
    assert ready.size == 0
    ready.add(jobs[0])
    assert ready.take_first() is jobs[0]
