"""The DELAYED jobs of a queue, in the order in which they are due, with the late ones in pages.

Jobs arrive in any order of due times, which may be days apart. So a new one always stays in memory at first, and jobs
that are paged out later become pages of their own: the times of pages overlap, as in the layers of a log-structured
merge tree. The job that is due next is always in memory: when it would be the first job of a page, the page is read,
and its jobs are merged with the others. So part of one page of each layer is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec import Struct, field
from sortedcontainers import SortedList

from sockpqd.core.limits import PAGES_AHEAD
from sockpqd.core.pages.delayed_front import DelayedFront
from sockpqd.core.pages.delayed_pages import DelayedPages, place
from sockpqd.core.pages.extras import fit_delayed_pages
from sockpqd.core.pages.merge import Place, merged
from sockpqd.core.pages.paged_run import paged_out
from sockpqd.core.pages.pages import DelayedPage
from sockpqd.core.store.job import DelayedJob, group_of
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue

_Key = TypeVar("_Key", int, str)


class PagedDelays(Struct, gc=False, eq=False):
    """DELAYED jobs, the next one first. Not tracked by the garbage collector; job.py says why."""

    near: DelayedFront                  # those in memory; there is always one, and the first one is due next
    outside: DelayedPages
    size: int
    paged: int = 0                  # jobs that are in pages,
    paged_bytes: int = 0            # and their data
    ranks: dict[int, int] = field(default_factory=dict)             # of the jobs in pages, how many have each rank,
    groups: dict[str, int] = field(default_factory=dict)            # and how many are of each group but the queue's
    _firsts: SortedList = field(default_factory=SortedList)         # the pages: (place of the first job, page),
    _lasts: SortedList = field(default_factory=SortedList)          # and (place of the last one, page)

    @staticmethod
    def of_queue(queue: Queue, outside: DelayedPages) -> PagedDelays:
        """Take over the DELAYED jobs of a queue, which must not be empty."""
        jobs = queue.delayed
        if isinstance(jobs, JobList):
            jobs = queue.delayed = PagedDelays(DelayedFront.of_list(jobs), outside, jobs.size)
        assert isinstance(jobs, PagedDelays)
        return jobs

    def __iter__(self) -> Iterator[DelayedJob]:
        return merged(self.near, self._firsts, self.outside.look, place)

    def behind(self, job: DelayedJob, place: Callable[[DelayedJob], Place]) -> Iterator[DelayedJob]:
        """See JobList. Raises PageLost."""
        after = place(job)
        pages = [(first, page) for first, page in self._firsts if (page.when, page.seq) > after]
        following = merged(self.near.behind(job, place), pages, self.outside.look, place)
        return (one for one in following if place(one) > after)

    def pages(self) -> Iterator[DelayedPage]:
        """Return the pages, in the order of their first jobs."""
        return (page for _, page in self._firsts)

    @property
    def first(self) -> DelayedJob:
        """The job that is due next; there must be one."""
        return self.near.first

    @property
    def last(self) -> DelayedJob:
        """The job that is due last; there must be one. Raises PageLost."""
        job = self.near.last
        if self._lasts and self._lasts[-1][0] > place(job):
            return self.outside.look(self._lasts[-1][1])[-1]
        return job

    def add(self, job: DelayedJob) -> None:
        """Insert `job` at its place."""
        self.near.add(job)
        self.size += 1

    def remove(self, job: DelayedJob) -> None:
        """Remove `job`, which must be here, in memory or not. Raises PageLost."""
        in_memory = self.outside.in_memory
        if job.seq not in in_memory:
            self._open(self.outside.page_of(job.seq))
        self.near.remove(in_memory[job.seq])        # the object that is there: two of one place cannot be compared
        self.size -= 1
        while self._firsts and not (self.near.size and place(self.near.first) < self._firsts[0][0]):
            self._open(self._firsts[0][1])

    def append_pages(self, pages: list[DelayedPage], ranks: dict[int, int], groups: dict[str, int]) -> None:
        """Append pages whose jobs are all due after the first job here.

        `ranks`, `groups`: the number of jobs of each in them.
        """
        for page in pages:
            self.outside.adopt(page)
            self._list(page)
            self.size += page.count
        for rank, jobs in ranks.items():
            _count(self.ranks, rank, jobs)
        for group, jobs in groups.items():
            _count(self.groups, group, jobs)

    def _list(self, page: DelayedPage) -> None:
        self._firsts.add((page.first, page))
        self._lasts.add(((page.when, page.seq), page))
        self.paged += page.count
        self.paged_bytes += page.data_bytes

    def _open(self, page: DelayedPage) -> None:
        """Take the jobs of the page into memory, and announce that the next pages will soon be read."""
        jobs = self.outside.take(page)
        self._firsts.remove((page.first, page))
        self._lasts.remove(((page.when, page.seq), page))
        self.paged -= page.count
        self.paged_bytes -= page.data_bytes
        self._count_jobs(jobs, -1)
        self.near.include(jobs)
        for _, following in self._firsts[:PAGES_AHEAD]:
            self.outside.expect(following)

    def load(self) -> None:
        """Take all jobs into memory. Raises PageLost."""
        while self._firsts:
            self._open(self._firsts[0][1])

    def page_out(self, stays: int, jobs_max: int, jobs_min: int) -> Iterator[None]:
        """Page out all but about the first `stays` jobs in memory, from the end; stops after each block.

        Pages have `jobs_max` jobs at most; jobs too few for a page stay. The jobs may change between two steps.
        """
        near, stays = self.near, max(stays, 1)
        number = near.block_count - 1
        while number >= 0 and near.size > stays + jobs_min:
            number = min(number, near.block_count - 1)
            block, before = near.block(number), near.before(number)
            if before + len(block) <= stays:
                return
            near.leave(number, self._cut(block, max(stays - before, 0), jobs_max, jobs_min))
            yield
            number -= 1

    def _cut(self, block: list[DelayedJob], front: int, jobs_max: int, jobs_min: int) -> list[DelayedJob]:
        """Page out jobs of the block; returns the ones that stay, the first `front` among them."""
        staying = block[:front]
        for jobs, page in paged_out(block, front, jobs_max, jobs_min, self.outside.write, fit_delayed_pages):
            if page is None:
                staying += jobs
                continue
            self._list(page)
            self._count_jobs(jobs, 1)
        return staying

    def _count_jobs(self, jobs: list[DelayedJob], count: int) -> None:
        """Add `count` (1 or -1) for each of these jobs in pages to the counts of its rank and group."""
        for job in jobs:
            _count(self.ranks, job.rank, count)
            if job.extras is not None and (group := group_of(job)) != job.queue:
                _count(self.groups, group, count)


def _count(counts: dict[_Key, int], key: _Key, count: int) -> None:
    left = counts.get(key, 0) + count
    if left:
        counts[key] = left
    else:
        del counts[key]
