"""A run of jobs in which some blocks are pages. Its first block is always in memory.

Any change to a block takes its page back into memory first; reading leaves it on disk. So several objects may stand for
one job, which is identified by its place: Jobs themselves can be compared only if they are the same object or have
different places.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from sockpqd.core.limits import BLOCK_JOBS_MAX, PAGE_BYTES_MAX, PAGE_BYTES_MIN, PAGES_AHEAD
from sockpqd.core.pages.extras import fit_pages
from sockpqd.core.pages.pages import Page, Pages
from sockpqd.core.store.job import DelayedJob, Job
from sockpqd.core.store.job_list import JobList

_Job = TypeVar("_Job", Job, DelayedJob)
_Page = TypeVar("_Page")

Block = list[Job] | Page
PASSED_MAX = 256        # pages that are passed in one step, to what is in memory before them


class PagedRun(JobList[Job], gc=False, eq=False, kw_only=True):
    """The READY jobs of one priority, the next one first."""

    pages: Pages
    paged: int = 0          # jobs that are in pages,
    paged_bytes: int = 0    # and their data

    @staticmethod
    def of_run(run: JobList[Job], pages: Pages) -> PagedRun:
        """Take over the blocks of `run`, which must not be used afterwards."""
        return PagedRun(size=run.size, _blocks=run._blocks, pages=pages)

    def _load(self, number: int) -> None:
        """Take the block back into memory if it is a page."""
        page: Block = self._blocks[number]
        if isinstance(page, Page):
            self._blocks[number] = self.pages.take(page)
            self.paged -= page.count
            self.paged_bytes -= page.data_bytes

    def look(self, block: Block) -> list[Job]:
        """Return the jobs of a block, which must not be changed. Raises PageLost."""
        return self.pages.look(block) if isinstance(block, Page) else block

    def _open_front(self) -> None:
        """Bring the new first block into memory, and announce that the next ones will soon be read."""
        if self.paged:
            self._load(0)
            ahead: list[Block] = [*self._blocks[1:1 + PAGES_AHEAD]]
            for block in ahead:
                if isinstance(block, Page):
                    self.pages.expect(block)

    # Code that may be given a PagedRun must expect pages; a JobList has none.
    def blocks(self) -> Iterator[Block]:  # type: ignore[override]
        """Return the jobs, and pages of jobs, in order."""
        return iter(self._blocks)

    def in_memory(self) -> Iterator[Job]:
        """Yield the jobs that are not in pages."""
        for block in self._blocks:
            if not isinstance(block, Page):
                yield from block

    def append_page(self, page: Page) -> None:
        """Append a page after all jobs; there must be one."""
        blocks: list[Block] = self._blocks  # type: ignore[assignment]
        blocks.append(page)
        self.size += page.count
        self.paged += page.count
        self.paged_bytes += page.data_bytes

    def __iter__(self) -> Iterator[Job]:
        for block in self._blocks:
            yield from self.look(block)

    def behind(self, job: Job, place: Callable[[Job], Any]) -> Iterator[Job]:
        """See JobList; places are within the priority. Raises PageLost."""
        after = place(job)
        for block in self._blocks[bisect_left(self._blocks, after, key=_last_place):]:
            jobs = self.look(block)
            yield from jobs[bisect_right(jobs, after, key=place):]

    def __getitem__(self, position: int) -> Job:
        for block in self._blocks:
            count = _count(block)
            if position < count:
                return self.look(block)[position]
            position -= count
        raise IndexError(position)

    @property
    def last(self) -> Job:
        """The last job; there must be one."""
        return self.look(self._blocks[-1])[-1]

    def add(self, job: Job) -> None:
        """Insert `job` at its place."""
        tail: Block = self._blocks[-1]
        if not isinstance(tail, Page):
            if tail and tail[-1] < job and len(tail) < BLOCK_JOBS_MAX:      # nearly always
                self.size += 1
                tail.append(job)
            else:
                super().add(job)
            return
        self.size += 1
        if _place(tail) < _place(job):
            self._blocks.append([job])
        else:
            self._insert(job)

    def _insert(self, job: Job) -> None:
        self._load(self._block_of(job))
        super()._insert(job)

    def _block_of(self, job: Job) -> int:
        blocks = self._blocks
        return 0 if len(blocks) == 1 else min(bisect_left(blocks, _place(job), key=_last_place), len(blocks) - 1)

    def take_first(self) -> Job:
        """Remove and return the next job; there must be one."""
        self.size -= 1
        blocks = self._blocks
        block = blocks[0]
        job = block.pop(0)
        if not block and self.size:
            del blocks[0]
            self._open_front()
        return job

    def position(self, job: Job) -> int:
        """Return the number of jobs before the place of `job`."""
        number = self._block_of(job)
        return sum(map(_count, self._blocks[:number])) + _at(self.look(self._blocks[number]), job)

    def remove(self, job: Job) -> None:
        """Remove `job`, which must be here, in memory or not."""
        number = self._block_of(job)
        self._load(number)
        block = self._blocks[number]
        at = _at(block, job)
        assert block[at].seq == job.seq
        del block[at]
        self.size -= 1
        if not block and self.size:
            del self._blocks[number]
            if not number:
                self._open_front()

    def open(self, number: int) -> list[Job]:
        """Take the block of this number into memory; returns its jobs, which must not be changed. Raises PageLost."""
        self._load(number)
        return self._blocks[number]

    def drop_page(self, page: Page) -> None:
        """Remove this page with its jobs without reading it; it must not be the first block."""
        number = bisect_left(self._blocks, _place(page), key=_last_place)
        block: Block = self._blocks[number]
        assert number
        assert block is page
        del self._blocks[number]
        self.size -= page.count
        self.paged -= page.count
        self.paged_bytes -= page.data_bytes
        self.pages.drop_page(page)

    def find(self, seq: int) -> Job | None:
        """Return the job with this seq, None if there is none, in a list that is sorted by seq."""
        if not self.size:
            return None
        blocks = self._blocks
        number = bisect_left(blocks, seq, key=_last_seq)
        if number == len(blocks):
            return None
        block = self.look(blocks[number])
        job = block[bisect_left(block, seq, key=_seq)]
        return job if job.seq == seq else None

    def __contains__(self, job: Job) -> bool:
        """Return whether a job with the place of `job` is here."""
        block = self.look(self._blocks[self._block_of(job)])
        at = _at(block, job)
        return at < len(block) and block[at] == job

    def discard(self, job: Job) -> bool:
        """Remove `job` if it is here; returns whether it was here."""
        found = job in self
        if found:
            self.remove(job)
        return found

    def page_out(self, stays: int, jobs_max: int, jobs_min: int) -> Iterator[None]:
        """Page out all but about the first `stays` jobs, from the end, in steps of a block or many passed pages.

        Pages have `jobs_max` jobs at most; jobs too few for a page stay. The run may change between two steps.
        """
        number = len(self._blocks) - 1
        while self.size - self.paged > stays + jobs_min:
            number = min(number, len(self._blocks) - 1)
            first, before = self._first_to_page(stays)
            if number < first:
                return
            block: Block = self._blocks[number]
            if not isinstance(block, Page):
                front = max(0, stays - before) if number == first else 0
                if not number:
                    front = max(front, 1)
                self._blocks[number:number + 1] = self._cut(block, front, jobs_max, jobs_min)  # type: ignore[assignment]
                yield
            elif not number % PASSED_MAX:
                yield
            number -= 1

    def _first_to_page(self, stays: int) -> tuple[int, int]:
        """Return the block in which the first `stays` jobs end, and the number of jobs before it."""
        before = 0
        for number, block in enumerate(self._blocks):
            count = _count(block)
            if before + count > stays:
                return number, before
            before += count
        return len(self._blocks), before

    def _cut(self, block: list[Job], front: int, jobs_max: int, jobs_min: int) -> list[Block]:
        """Page out the block; returns pages and the jobs that stay between them, the first `front` jobs included."""
        cut: list[Block] = []
        staying = block[:front]
        for jobs, page in paged_out(block, front, jobs_max, jobs_min, self.pages.write):
            if page is None:
                staying += jobs
                continue
            if staying:
                cut.append(staying)
                staying = []
            cut.append(page)
            self.paged += page.count
            self.paged_bytes += page.data_bytes
        return [*cut, staying] if staying else cut


def paged_out(
    block: list[_Job], start: int, jobs_max: int, jobs_min: int, write: Callable[[list[_Job], int], _Page | None],
    fits: Callable[[list[_Job]], list[bool]] = fit_pages,
) -> Iterator[tuple[list[_Job], _Page | None]]:
    """Write pages: yields the block's jobs after the first `start` in pieces, each with its page; None: it stays.

    `write` takes the jobs and the bytes of their data, and returns None if there is no room; then no more are written.
    `fits` returns for each of some jobs whether it may be paged.
    """
    room = True
    for jobs, data_bytes, fit in _pieces(block, start, jobs_max, fits):
        page = None
        if room and fit and (len(jobs) >= jobs_min or data_bytes >= PAGE_BYTES_MIN):
            page = write(jobs, data_bytes)
            room = page is not None
        yield jobs, page


def _pieces(
    block: list[_Job], start: int, jobs_max: int, fits: Callable[[list[_Job]], list[bool]] = fit_pages,
) -> Iterator[tuple[list[_Job], int, bool]]:
    """Cut a block into candidates for pages: jobs, the bytes of their data, and whether all may be in one page.

    If they may not, the bytes are not counted.
    """
    for begin in range(start, len(block), jobs_max):
        jobs = block[begin:begin + jobs_max]
        fit = fits(jobs)
        if all(fit):
            data_bytes = sum([len(job.data) for job in jobs])
            if data_bytes <= PAGE_BYTES_MAX:
                yield jobs, data_bytes, True        # nearly always
                continue
        yield from _parts(jobs, fit)


def _parts(jobs: list[_Job], fits: list[bool]) -> Iterator[tuple[list[_Job], int, bool]]:
    """Cut jobs that cannot be one page into such candidates. `fits`: which may be paged."""
    part: list[_Job] = []
    data_bytes, fit = 0, True
    for job, it_fits in zip(jobs, fits, strict=True):
        its_bytes = len(job.data) if it_fits else 0
        if part and (it_fits is not fit or data_bytes + its_bytes > PAGE_BYTES_MAX):
            yield part, data_bytes, fit
            part, data_bytes = [], 0
        part.append(job)
        data_bytes += its_bytes
        fit = it_fits
    if part:
        yield part, data_bytes, fit


def _count(block: Block) -> int:
    return block.count if isinstance(block, Page) else len(block)


def _place(one: Job | Page) -> tuple[int, int]:
    """Return the place of a job, or of the last job of a page, within its priority."""
    return one.when, one.seq


def _last_place(block: Block) -> tuple[int, int]:
    return _place(block if isinstance(block, Page) else block[-1])


def _at(block: list[Job], job: Job) -> int:
    """Return the index in the block at which the job is, or would be inserted."""
    return bisect_left(block, _place(job), key=_place)


def _last_seq(block: Block) -> int:
    return block.seq if isinstance(block, Page) else block[-1].seq


def _seq(job: Job) -> int:
    return job.seq
