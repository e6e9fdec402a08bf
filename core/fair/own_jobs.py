"""The READY jobs of a queue that have no GROUP of another name, while there are others that do.

They have no list of their own: they are the jobs of the queue's list that are not among the foreign ones. So the jobs
of a long queue can stay outside memory, and nothing has to be built when the first foreign job arrives.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from sockpqd.core.pages.paged_run import PagedRun
from sockpqd.core.pages.pages import Page
from sockpqd.core.store.job import Job
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.ready import ReadyJobs

NEAR = 32           # this many jobs behind one that is gone are looked at before all are searched


class OwnJobs(Struct, gc=False, eq=False):
    """Jobs, the next one first. `size` is never 0 for long: the groups give up a list that is empty."""

    ready: ReadyJobs                # of the queue: it has the jobs already, or does not have them any more
    foreign: JobList[Job]           # all foreign jobs in it
    size: int
    _first: Job | None = None       # if it is known

    @property
    def first(self) -> Job:
        """The first job; there must be one. Raises PageLost."""
        if self._first is None:
            self._first = self._find()
        return self._first

    def add(self, job: Job) -> None:
        """Add `job`, which became READY."""
        self.size += 1
        if self.size == 1 or (self._first is not None and job < self._first):
            self._first = job

    def remove(self, job: Job) -> None:
        """Remove a job that is no longer READY."""
        self.size -= 1
        if self._first is not None and self._first.seq == job.seq:
            near = self.ready.near(job, NEAR) if self.size else ()
            self._first = next((one for one in near if _is_own(one)), None)

    def drop(self, jobs: int) -> None:
        """Note that this many jobs were removed, any of them."""
        self.size -= jobs
        self._first = None

    def _find(self) -> Job:
        """Return the first job. A block has none if all jobs up to its last one are foreign."""
        foreign = _Walk(self.foreign)
        end = 0
        for run in self.ready.runs():
            for block in ([run],) if isinstance(run, Job) else run.blocks():
                if isinstance(block, Page):         # it has no foreign job
                    assert isinstance(run, PagedRun)
                    return run.look(block)[0]
                end += len(block)
                if foreign.seq_at(end - 1) != block[-1].seq:
                    return next(job for job in block if _is_own(job))
        raise AssertionError("all jobs of the queue are foreign")


class _Walk:
    """Jobs of a list at growing positions."""

    def __init__(self, jobs: JobList[Job]) -> None:
        self._blocks: Iterator[list[Job]] = iter(jobs.blocks())
        self._block: list[Job] = []
        self._start = 0

    def seq_at(self, position: int) -> int | None:
        """Return the seq of the job at this position; None: there are fewer."""
        while position >= self._start + len(self._block):
            self._start += len(self._block)
            self._block = next(self._blocks, [])
            if not self._block:
                return None
        return self._block[position - self._start].seq


def _is_own(job: Job) -> bool:
    return job.extras is None or job.extras.group is None or job.extras.group == job.queue
