"""The READY jobs of a queue that several groups share: a list for each group, with its later jobs in pages.

Jobs of the group of the queue's name are *own* ones: they have runs, and pages, as in a queue without other groups. The
others are in memory in one collection in the order of the queue, and in the list of their group. Later jobs of a group
are in pages (group_pages.py): the first job of each group is always in memory, and therefore the first one of the
queue. A page of a group is read when its first job becomes the next one of the group, or when one of its jobs is
removed. Jobs that arrive stay in memory at first; they may belong before, between or behind pages.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, groupby

from msgspec import Struct, field
from sortedcontainers import SortedDict

from sockpqd.core.limits import PAGES_AHEAD
from sockpqd.core.pages.extras import fit_group_pages
from sockpqd.core.pages.group_pages import GroupPages
from sockpqd.core.pages.merge import merged
from sockpqd.core.pages.paged_run import paged_out
from sockpqd.core.pages.pages import GroupPage, Pages
from sockpqd.core.store.job import Job, group_of
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue
from sockpqd.core.store.ready import ReadyJobs, place_of

LOOKS = 256             # groups looked at in one step


class PagedGroup(Struct, gc=False, eq=False):
    """The jobs of a group, some of which are in pages. Not tracked by the garbage collector; job.py says why."""

    near: JobList[Job]              # those in memory; the first one of the group is always there
    size: int
    pages: list[GroupPage] = field(default_factory=list)        # in the order of their first jobs

    @property
    def first(self) -> Job:
        """The next job; there must be one."""
        return self.near.first

    @property
    def next_page(self) -> GroupPage | None:
        """The page whose first job is the next one of the group; None: the next job is in memory, or there is none."""
        if not self.pages:
            return None
        page = self.pages[0]
        return page if not self.near.size or page.first_place < place_of(self.near.first) else None

    def add(self, job: Job) -> None:
        """Insert `job` at its place."""
        self.size += 1
        self.near.add(job)

    def remove(self, job: Job) -> None:
        """Remove `job`, which must be in memory."""
        self.size -= 1
        self.near.remove(job)


class GroupedReady(ReadyJobs, gc=False, eq=False, kw_only=True):
    """Jobs of several groups, the next one first; `size` counts all of them."""

    name: str                                                   # of the queue
    own: ReadyJobs
    others: ReadyJobs = field(default_factory=ReadyJobs)        # jobs of other groups, in memory
    groups: SortedDict = field(default_factory=SortedDict)      # group -> ReadyJobs (own), JobList or PagedGroup
    outside: GroupPages | None = None                           # None: there has been no page yet

    @staticmethod
    def split(queue: Queue, others: Iterable[Job]) -> GroupedReady:
        """List the READY jobs of the queue by groups from now on. `others`: those of other groups, which it has."""
        own = queue.ready
        ready = queue.ready = GroupedReady(name=queue.name, own=own)
        others = list(others)
        for job in others:
            own.remove(job)
        ready.size = own.size
        if own.size:
            ready.groups[queue.name] = own
        for job in others:
            ready.add(job)
        return ready

    @property
    def other_count(self) -> int:
        """The number of jobs whose groups do not have the queue's name."""
        return self.size - self.own.size

    def __iter__(self) -> Iterator[Job]:
        return merge(self.own, self.of_others())

    def of_others(self) -> Iterator[Job]:
        """Yield the jobs whose groups do not have the queue's name, in the order of the queue. Raises PageLost."""
        outside = self.outside
        if outside is None:
            return iter(self.others)
        return merged(self.others, outside.places(), outside.pages.look, place_of)

    def behind(self, job: Job) -> Iterator[Job]:
        """See ReadyJobs. Raises PageLost."""
        others, outside, after = self.others.behind(job), self.outside, place_of(job)
        if outside is not None:
            all_behind = merged(others, outside.behind(after), outside.pages.look, place_of)
            others = (one for one in all_behind if place_of(one) > after)
        return merge(self.own.behind(job), others)

    @property
    def first(self) -> Job:
        """The next job; there must be one."""
        if not self.others.size:
            return self.own.first
        return min(self.own.first, self.others.first) if self.own.size else self.others.first

    @property
    def front(self) -> int:
        """The rank of the next job; there must be one."""
        return self.first.rank

    def find(self, seq: int) -> Job | None:
        """See ReadyJobs. Raises PageLost."""
        job = self.own.find(seq) or self.others.find(seq)
        return self.outside.find(seq) if job is None and self.outside is not None else job

    def oldest_seq(self) -> int:
        """Return the smallest seq, in a queue without ORDER TIME and ITEMLIMIT; there must be a job."""
        seqs = [jobs.oldest_seq() for jobs in (self.own, self.others) if jobs.size]
        if self.outside:
            seqs.append(self.outside.oldest_seq())
        return min(seqs)

    @property
    def first_of_least_priority(self) -> Job:
        """The first job of the lowest priority; there must be one. Raises PageLost."""
        jobs = [jobs.first_of_least_priority for jobs in (self.own, self.others) if jobs.size]
        job = min(jobs, key=lambda job: (-job.rank, job))
        if self.outside:
            page = self.outside.first_of_least_priority()
            if (-page.rank, page.first_place) < (-job.rank, place_of(job)):
                return self.outside.pages.look(page)[0]
        return job

    def add(self, job: Job) -> None:
        """Insert `job` at its place."""
        self.size += 1
        group = group_of(job)
        jobs = self.groups.get(group)
        if group == self.name:
            self.own.add(job)
            if jobs is None:
                self.groups[group] = self.own
            return
        self.others.add(job)
        if jobs is None:
            jobs = self.groups[group] = JobList()
        jobs.add(job)

    def take_first(self) -> Job:
        """Remove and return the next job; there must be one."""
        job = self.first
        self.remove(job)
        return job

    def remove(self, job: Job) -> None:
        """Remove `job`, wherever it is; it must be here. Raises PageLost."""
        self.size -= 1
        group = group_of(job)
        if group == self.name:
            self.own.remove(job)
            if not self.own.size:
                del self.groups[group]
            return
        if self.outside is not None:
            job = self._brought_in(job, self.outside)
        self.others.remove(job)
        jobs = self.groups[group]
        jobs.remove(job)
        if isinstance(jobs, PagedGroup):
            self._advance(jobs)
        if not jobs.size:
            del self.groups[group]

    def _brought_in(self, job: Job, outside: GroupPages) -> Job:
        """Return the job in memory at the place of `job`, which may be a copy from a page."""
        page = outside.page_of(job.seq)
        if page is not None:
            self._open(page)
        run = self.others.run(job.rank)
        found = run.find(job.seq) if isinstance(run, JobList) else run or self.others.find(job.seq)
        assert found is not None
        return found

    def _advance(self, jobs: PagedGroup) -> None:
        """Bring the next job of the group into memory, and announce that its next pages will soon be read."""
        while (page := jobs.next_page) is not None:
            self._open(page)
            for following in jobs.pages[:PAGES_AHEAD]:
                assert self.outside is not None
                self.outside.pages.expect(following)

    def _open(self, page: GroupPage) -> None:
        """Take the jobs of the page into memory."""
        jobs = self.groups[page.group]
        assert isinstance(jobs, PagedGroup)
        assert self.outside is not None
        taken = self.outside.take(page)
        jobs.pages.remove(page)
        for job in taken:
            self.others.add(job)
            jobs.near.add(job)

    def count_page(self, jobs: int) -> None:
        """See ReadyJobs. The page must have own jobs."""
        self.own.count_page(jobs)
        self.size += jobs

    def adopt(self, page: GroupPage, pages: Pages) -> bool:
        """List a page left by an earlier process.

        Returns False if that is not allowed: its group has no job before it.
        """
        jobs = self.groups.get(page.group)
        if not isinstance(jobs, JobList | PagedGroup) or place_of(jobs.first) >= page.first_place:
            return False
        if isinstance(jobs, JobList):
            jobs = self.groups[page.group] = PagedGroup(jobs, jobs.size)
        self._list(jobs, page, pages)
        self.size += page.count
        return True

    # ---- paging

    def page_out(self, pages: Pages, stays: int, jobs_max: int, jobs_min: int) -> Iterator[None]:
        """Page out jobs of other groups, after the first ones of each, in steps.

        `stays`: about how many jobs of all groups together stay, but at least `jobs_min` of each. Pages have `jobs_max`
        jobs at most; jobs too few for a page stay. The jobs may change between two steps.
        """
        names = list(self.groups)
        stays = max(stays // max(len(names), 1), jobs_min, 1)
        for number, group in enumerate(names):
            jobs = self.groups.get(group)
            if isinstance(jobs, JobList | PagedGroup):
                near = jobs if isinstance(jobs, JobList) else jobs.near
                if near.size > stays + jobs_min:
                    yield from self._page_out(group, near, pages, stays, jobs_max, jobs_min)
            if number % LOOKS == LOOKS - 1:
                yield

    def _page_out(
        self, group: str, near: JobList[Job], pages: Pages, stays: int, jobs_max: int, jobs_min: int,
    ) -> Iterator[None]:
        """Page out jobs of one group, from the end; stops after each page. `near`: its jobs in memory.

        A whole block in one step would take longer than a node pages between two turns.
        """
        number, end = len(list(near.blocks())) - 1, 0       # of the block, and after its jobs; 0: at its end
        while number >= 0 and near.size > stays + jobs_min:
            blocks = list(near.blocks())
            number = min(number, len(blocks) - 1)
            front = max(stays - sum(map(len, blocks[:number])), 0)
            if front >= len(blocks[number]):
                return
            end = end or len(blocks[number])
            start = max(front, end - jobs_max)
            for jobs, page in self._written(group, blocks[number][start:end], pages, jobs_max, jobs_min):
                self._leave(group, near, jobs, page, pages)
            yield
            if start > front:
                end = start
            else:
                number, end = number - 1, 0

    def _written(
        self, group: str, block: list[Job], pages: Pages, jobs_max: int, jobs_min: int,
    ) -> Iterator[tuple[list[Job], GroupPage]]:
        """Write pages of these sorted jobs of a group; yields each with its jobs."""
        def write(jobs: list[Job], data_bytes: int) -> GroupPage | None:
            return pages.write_group(group, jobs, data_bytes)

        same = (list(jobs) for _, jobs in groupby(block, key=lambda job: job.rank))
        written = chain.from_iterable(paged_out(jobs, 0, jobs_max, jobs_min, write, fit_group_pages) for jobs in same)
        return ((jobs, page) for jobs, page in written if page is not None)

    def _leave(self, group: str, near: JobList[Job], jobs: list[Job], page: GroupPage, pages: Pages) -> None:
        """Remove from memory these jobs of a group, which are now in this page."""
        for job in jobs:
            self.others.remove(job)
            near.remove(job)
        its = self.groups[group]
        if isinstance(its, JobList):
            its = self.groups[group] = PagedGroup(near, near.size)
        else:
            its.size -= len(jobs)           # counted again with the page
        self._list(its, page, pages)

    def _list(self, jobs: PagedGroup, page: GroupPage, pages: Pages) -> None:
        """List a page of jobs that were not counted in the group."""
        jobs.size += page.count
        insort(jobs.pages, page, key=lambda page: page.first_place)
        if self.outside is None:
            self.outside = GroupPages(pages)
        self.outside.add(page)


def own_jobs(queue: Queue) -> ReadyJobs:
    """Return the READY jobs of a queue that are in runs: all whose group has the queue's name."""
    return queue.ready.own if isinstance(queue.ready, GroupedReady) else queue.ready
