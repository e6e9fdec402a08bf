"""DELAYED jobs: which becomes active next, and which waits for which items (EXTENSIONS.md 5).

Each queue has its DELAYED jobs in the order in which they will become active; here the queues stand in the order of
their first ones. At most `portion` jobs of a queue become active with one entry, and PORTION_MAX in all, so that a
hundred thousand jobs due in the same second stop nobody: the leader proposes Ticks until none is left.

A job that waits for items (PUT .. AFTER) has no due time yet. When an item is finished, those that wait for it are
released, in portions too. So there may be a batch of jobs that nothing holds back but that their turn has not come; an
item that begins anew meanwhile does not hold them up.
"""

from __future__ import annotations

from msgspec import Struct, field
from sortedcontainers import SortedList

from core.job import NEVER_MS, DelayedJob
from core.job_list import JobList
from core.queues import Queue

TICK_BITS = 4       # due times are looked at every 16 ms


class Release(Struct, gc=False, eq=False):
    """Jobs that waited for `item`, which was finished meanwhile."""

    item: str
    jobs: JobList[DelayedJob] = field(default_factory=JobList)

    def copy(self) -> Release:
        """Another one of the same jobs."""
        other = Release(self.item)
        for job in self.jobs:
            other.jobs.add(job)
        return other


class Delays:
    """The queues that have DELAYED jobs, and the items that are waited for."""

    __slots__ = ("_firsts", "dependents", "released")

    def __init__(self) -> None:
        self._firsts: SortedList = SortedList()                     # (due_ms of its first job, queue)
        self.dependents: dict[str, JobList[DelayedJob]] = {}        # by item
        self.released: list[Release] = []

    def add(self, queue: Queue, job: DelayedJob) -> None:
        """`job` is DELAYED in `queue` from now on."""
        delayed = queue.delayed
        if delayed is None:
            delayed = queue.delayed = JobList()
        delayed.add(job)
        self._file(queue)
        if job.due_ms == NEVER_MS and job.more is not None:
            for item in job.more.after:
                self.dependents.setdefault(item, JobList()).add(job)

    def remove(self, queue: Queue, job: DelayedJob) -> None:
        """It is no longer."""
        assert queue.delayed is not None
        queue.delayed.remove(job)
        self._file(queue)
        if job.due_ms == NEVER_MS and job.more is not None:
            for item in job.more.after:
                self._forget(item, job)

    def release(self, item: str) -> None:
        """`item` is finished."""
        jobs = self.dependents.pop(item, None)
        if jobs is not None:
            self.released.append(Release(item, jobs))

    def reinstate(self, released: list[Release]) -> None:
        """These were released; some of their jobs may have come back as if they still waited (undo.py)."""
        self.released = released
        for release in released:
            jobs = self.dependents.get(release.item)
            if jobs is not None:
                for job in release.jobs:
                    jobs.discard(job)
                if not jobs.size:
                    del self.dependents[release.item]

    def next_due_ms(self, clock_ms: int) -> int | None:
        """When a job becomes active next, rounded up so that not every millisecond brings an entry; None: never."""
        if self.released:
            return clock_ms
        if not self._firsts:
            return None
        due_ms: int = self._firsts[0][0]
        return (due_ms + (1 << TICK_BITS) - 1) >> TICK_BITS << TICK_BITS

    def due(self, clock_ms: int, queues_max: int) -> list[str]:
        """Names of the queues that have a job due, those with the earliest first."""
        names: list[str] = []
        for due_ms, name in self._firsts:
            if due_ms > clock_ms or len(names) == queues_max:
                break
            names.append(name)
        return names

    def _file(self, queue: Queue) -> None:
        delayed = queue.delayed
        first_ms = delayed[0].due_ms if delayed is not None and delayed.size else NEVER_MS
        if delayed is not None and not delayed.size:
            queue.delayed = None
        filed_ms = None if first_ms == NEVER_MS else first_ms
        if filed_ms != queue.filed_ms:
            if queue.filed_ms is not None:
                self._firsts.remove((queue.filed_ms, queue.name))
            queue.filed_ms = filed_ms
            if filed_ms is not None:
                self._firsts.add((filed_ms, queue.name))

    def _forget(self, item: str, job: DelayedJob) -> None:
        """`job` waits for `item` no more, be it among those that were released or not."""
        jobs = self.dependents.get(item)
        if jobs is not None and jobs.discard(job):
            if not jobs.size:
                del self.dependents[item]
            return
        for at, release in enumerate(self.released):
            if release.item == item and release.jobs.discard(job):
                if not release.jobs.size:
                    del self.released[at]
                return
