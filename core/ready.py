"""The waiting jobs of one queue, or of one item in one queue, in the order in which they are handed out.

Jobs are put at the tail of their priority and nearly always taken from the front, but RETURN brings one back to its old
place and a hand-out by item takes one from the middle. So this is a sorted list: whatever happens costs O(log jobs),
and nothing dead stays behind.

Most lists are short (an item often has one job), and a plain list is then both the smallest and the fastest; past
`SHORT_MAX` jobs, where moving its tail begins to cost, it becomes a SortedList.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field
from sortedcontainers import SortedList

from core.job import Job

SHORT_MAX = 500


class ReadyList(Struct, gc=False, eq=False):
    """Waiting jobs, the next one first. Not collected as garbage for the reason given in job.py."""

    size: int = 0
    _jobs: Any = field(default_factory=list)        # list[Job] or SortedList

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs)

    def add(self, job: Job) -> None:
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

    def take_first(self) -> Job:
        """Remove and return the next job; there must be one."""
        self.size -= 1
        job: Job = self._jobs.pop(0)
        return job

    def remove(self, job: Job) -> None:
        """Take `job` out, wherever it is; it must be here."""
        self.size -= 1
        jobs = self._jobs
        if type(jobs) is not list:
            jobs.remove(job)
        else:
            del jobs[bisect_left(jobs, job)]
