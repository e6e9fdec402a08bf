"""Jobs in their order: the READY ones of an item or of a priority, the DELAYED ones of a queue, dead ones.

Jobs are put at the tail of their priority and nearly always taken from the front, but RETURN brings one back to its old
place and a hand-out by item takes one from the middle. So this is a sorted list: whatever happens costs O(log jobs),
and nothing dead stays behind.

Most lists are short (an item often has one job), and a plain list is then both the smallest and the fastest; past
`SHORT_MAX` jobs, where moving its tail begins to cost, it becomes a SortedList.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from sortedcontainers import SortedList

from core.job import DelayedJob, Job

SHORT_MAX = 500

_Job = TypeVar("_Job", Job, DelayedJob)


class JobList(Struct, Generic[_Job], gc=False, eq=False):
    """Jobs, the next one first. Not collected as garbage for the reason given in job.py."""

    size: int = 0
    _jobs: Any = field(default_factory=list)        # list[_Job] or SortedList

    def __iter__(self) -> Iterator[_Job]:
        return iter(self._jobs)

    def __getitem__(self, position: int) -> _Job:
        job: _Job = self._jobs[position]
        return job

    def add(self, job: _Job) -> None:
        """Put `job` at its place."""
        self.size += 1
        jobs = self._jobs
        if type(jobs) is not list:
            jobs.add(job)
            return
        if not jobs or jobs[-1] < job:
            jobs.append(job)
        else:
            insort(jobs, job)
        if self.size > SHORT_MAX:
            self._jobs = SortedList(jobs)

    def take_first(self) -> _Job:
        """Remove and return the next job; there must be one."""
        self.size -= 1
        job: _Job = self._jobs.pop(0)
        return job

    def position(self, job: _Job) -> int:
        """How many jobs stand before the place of `job`."""
        jobs = self._jobs
        found: int = bisect_left(jobs, job) if type(jobs) is list else jobs.bisect_left(job)
        return found

    def remove(self, job: _Job) -> None:
        """Take `job` out, wherever it is; it must be here."""
        self.size -= 1
        jobs = self._jobs
        if type(jobs) is not list:
            jobs.remove(job)
        else:
            del jobs[bisect_left(jobs, job)]

    def __contains__(self, job: _Job) -> bool:
        """Is a job with this place here?"""
        at = self.position(job)
        return at < self.size and bool(self._jobs[at].seq == job.seq)

    def discard(self, job: _Job) -> bool:
        """Take `job` out if it is here; was it?"""
        if job not in self:
            return False
        del self._jobs[self.position(job)]
        self.size -= 1
        return True
