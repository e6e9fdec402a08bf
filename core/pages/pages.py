"""Pages: consecutive jobs of a run as bytes in a store, and the counters of pages.

A page holds plain jobs, and numbered ones (extras.py). A job that is also in a second list, or can be looked up by
name, stays in memory: one with an item, a key or a TTL, for example.

A numbered job is looked up by its number alone, which equals its seq while it is in a page. So the numbered jobs in
pages have an index, of 8 bytes each. DELAYED jobs of all kinds are found in the same way (delayed_pages.py).
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from sockpqd.core.limits import INDEXED_BYTES, JOB_BYTES, PAGE_HANDLE_BYTES
from sockpqd.core.pages.bodies import PagedBodies, leave, of_memory, wait
from sockpqd.core.pages.extras import with_shared_extras
from sockpqd.core.pages.page_space import PageLost, PageSpace, PageStore
from sockpqd.core.pages.seq_index import SeqIndex
from sockpqd.core.store.job import AnyJob, DelayedJob, Job, is_numbered

_Job = TypeVar("_Job", Job, DelayedJob)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Job])


class Page(Struct, gc=False, frozen=True):
    """The handle of a page with READY jobs."""

    number: int
    count: int          # of jobs
    data_bytes: int     # of their data
    when: int           # the place of the last one within its priority
    seq: int


class NumberedPage(Page, gc=False, frozen=True):
    """The handle of a page with READY jobs some of which are numbered."""

    numbered: int       # so many


class GroupPage(NumberedPage, gc=False, frozen=True):
    """The handle of a page with READY jobs of one group and one priority, all indexed by seq."""

    group: str
    rank: int
    first: int          # the seq of the first one

    @property
    def first_place(self) -> tuple[int, int, int]:
        """The place of the first job in its queue."""
        return self.rank, 0, self.first

    @property
    def last_place(self) -> tuple[int, int, int]:
        """The place of the last job in its queue."""
        return self.rank, self.when, self.seq


class DelayedPage(Page, gc=False, frozen=True):
    """The handle of a page with DELAYED jobs, in the order in which they are due; places are (due_ms, seq)."""

    first: tuple[int, int]      # the place of the first one


class Pages:
    """The pages of one state: `jobs` and `data_bytes` are in them; `read` and `written` count pages since the start.

    `full`: there was no room for the last page. `bodies`: of jobs that are in no page. `numbers`: the numbered jobs
    that are in no page. `index`: the pages of the other numbered READY jobs, by number. `indexed`: the number of jobs
    in pages that can be found by their seqs.
    """

    __slots__ = (
        "_numbered", "_records", "_space", "_store", "bodies", "count", "data_bytes", "full", "index", "indexed",
        "jobs", "numbers", "read", "written",
    )

    def __init__(self, store: PageStore) -> None:
        self._store = store
        self._space = store.space()
        self._records: PageSpace | None = None
        self.bodies = PagedBodies(self._space)
        self.numbers: dict[int, AnyJob] = {}
        self.read = 0
        self.written = 0
        self.full = False
        self._nothing()

    def _nothing(self) -> None:
        self.count = 0
        self.jobs = 0
        self.indexed = 0
        self.data_bytes = 0
        self.index = SeqIndex()
        self._numbered: dict[int, NumberedPage] = {}    # by the numbers of the pages

    @property
    def handles_bytes(self) -> int:
        """The approximate memory of the handles by which paged jobs are found, in bytes."""
        return PAGE_HANDLE_BYTES * self.count + INDEXED_BYTES * self.indexed

    @property
    def saved_bytes(self) -> int:
        """The approximate memory that the jobs in pages would take, in bytes."""
        return self.data_bytes + JOB_BYTES * self.jobs

    def write(self, jobs: list[Job], data_bytes: int) -> Page | None:
        """Write these jobs as a page; None if there is no room, so they stay in memory."""
        number = self.keep(_encoder.encode(of_memory(jobs)), len(jobs), data_bytes)
        if number is None:
            return None
        self.leave(jobs)
        last = jobs[-1]
        seqs = _numbers(jobs)
        if not seqs:
            return Page(number, len(jobs), data_bytes, last.when, last.seq)
        self.index.add(seqs, number)
        return self._list(NumberedPage(number, len(jobs), data_bytes, last.when, last.seq, len(seqs)))

    def write_group(self, group: str, jobs: list[Job], data_bytes: int) -> GroupPage | None:
        """Write these jobs, of this group and of one priority, as a page; None if there is no room, so they stay."""
        number = self.keep(_encoder.encode(of_memory(jobs)), len(jobs), data_bytes)
        if number is None:
            return None
        self.leave(jobs)
        seqs = [job.seq for job in jobs]
        self.index.add(seqs, number)
        page = GroupPage(
            number, len(jobs), data_bytes, jobs[-1].when, seqs[-1], len(seqs), group, jobs[0].rank, seqs[0])
        self._list(page)
        return page

    def _list(self, page: NumberedPage) -> NumberedPage:
        self.indexed += page.numbered
        self._numbered[page.number] = page
        return page

    def leave(self, jobs: list[_Job]) -> None:
        """Record that these jobs have moved into a page."""
        leave(jobs)
        for seq in _numbers(jobs):
            del self.numbers[seq]

    def come(self, jobs: list[_Job]) -> None:
        """Record that these jobs have left their page."""
        wait(jobs)
        self.numbers.update([(job.seq, job) for job in jobs if is_numbered(job.extras)])

    def keep(self, data: bytes, jobs: int, data_bytes: int) -> int | None:
        """Write a page with `jobs` jobs; returns its number, or None when there is no room."""
        number = self._space.put(data)
        self.full = number is None
        if number is not None:
            self.written += 1
            self.count += 1
            self.jobs += jobs
            self.data_bytes += data_bytes
        return number

    def write_body(self) -> bool:
        """Page out one body; returns whether there was one, and room for it."""
        written = self.bodies.write_oldest()
        self.full = written is False
        return bool(written)

    def data(self, page: Page) -> bytes:
        """Return the bytes of the page. Raises PageLost."""
        self.read += 1
        return self._space.get(page.number)

    def look(self, page: Page) -> list[Job]:
        """Return the jobs of the page, which stays. Raises PageLost."""
        try:
            jobs = _decoder.decode(self.data(page))
        except msgspec.MsgspecError as error:
            raise PageLost(f"page {page.number} holds no jobs: {error}") from error
        if len(jobs) != page.count or jobs[-1].seq != page.seq:
            raise PageLost(f"page {page.number} holds other jobs")
        return self.bodies.of_page(with_shared_extras(jobs))

    def take(self, page: Page) -> list[Job]:
        """Return the jobs of the page, which is then released. Raises PageLost."""
        jobs = self.look(page)
        self.come(jobs)
        if isinstance(page, NumberedPage):
            self.index.remove([job.seq for job in jobs] if isinstance(page, GroupPage) else _numbers(jobs))
        self.free(page)
        return jobs

    def drop_page(self, page: Page) -> None:
        """Drop the page with its jobs without reading it."""
        if isinstance(page, NumberedPage):
            self.index.drop(page.number, page.numbered)
        self.free(page)

    def free(self, page: Page) -> None:
        """Release the page, whose jobs the index no longer has."""
        if isinstance(page, NumberedPage):
            del self._numbered[page.number]
            self.indexed -= page.numbered
        self._space.free(page.number)
        self.count -= 1
        self.jobs -= page.count
        self.data_bytes -= page.data_bytes
        if isinstance(page, DelayedPage):
            self.indexed -= page.count

    def reference(self, page: Page) -> bytes:
        """Return the reference by which a later process finds the page."""
        return self._space.reference(page.number)

    def adopt(self, reference: bytes, count: int, data_bytes: int, when: int, seq: int) -> Page:
        """Take over a page that an earlier process left; `when`, `seq`: the place of its last job. Raises PageLost."""
        return Page(self._adopted(reference, count, data_bytes), count, data_bytes, when, seq)

    def adopt_numbered(
        self, reference: bytes, count: int, data_bytes: int, when: int, seq: int, numbered: int,
    ) -> NumberedPage:
        """Adopt, like `adopt`, a page with `numbered` numbered jobs, which the index already has."""
        number = self._adopted(reference, count, data_bytes)
        return self._list(NumberedPage(number, count, data_bytes, when, seq, numbered))

    def adopt_group(
        self, reference: bytes, count: int, data_bytes: int, place: tuple[str, int, int, int],
    ) -> GroupPage:
        """Like `adopt`, for jobs of one group, which the index has. `place`: group, rank, first and last seq."""
        group, rank, first, seq = place
        number = self._adopted(reference, count, data_bytes)
        page = GroupPage(number, count, data_bytes, 0, seq, count, group, rank, first)
        self._list(page)
        return page

    def page_of(self, number: int) -> int | None:
        """Return the page that may hold the READY job with this number, or this seq in a group; None if no page can."""
        return self.index.find(number)

    def find(self, number: int) -> Job | None:
        """Return the READY job of this number, None if it is in no page. Raises PageLost."""
        found = self.index.find(number)
        page = None if found is None else self._numbered.get(found)
        job = None if page is None else next(job for job in self.look(page) if job.seq == number)
        return job if job is not None and is_numbered(job.extras) else None

    def adopt_delayed(
        self, reference: bytes, count: int, data_bytes: int, due_ms: int, seq: int, first: tuple[int, int],
    ) -> DelayedPage:
        """Adopt, like `adopt`, a page of DELAYED jobs; `first`: the place of the first one."""
        self.indexed += count
        return DelayedPage(self._adopted(reference, count, data_bytes), count, data_bytes, due_ms, seq, first)

    def _adopted(self, reference: bytes, jobs: int, data_bytes: int) -> int:
        self.count += 1
        self.jobs += jobs
        self.data_bytes += data_bytes
        return self._space.adopt(reference)

    def expect(self, page: Page) -> None:
        """Announce that the page will be taken soon."""
        self._space.expect(page.number)

    def drop(self) -> None:
        """Drop the pages of an abandoned state."""
        self.bodies.drop()
        self._space.drop()
        if self._records is not None:
            self._records.drop()
            self._records = None
        self._nothing()

    def another(self) -> Pages:
        """Return an empty collection of pages for another state in the same store."""
        return Pages(self._store)

    @property
    def records(self) -> PageSpace:
        """Return the space for records of ended jobs.

        It is separate, so that whole files can be deleted, oldest first.
        """
        if self._records is None:
            self._records = self._store.space()
        return self._records

    def another_space(self) -> PageSpace:
        """Return an empty space in the same store for another purpose."""
        return self._store.space()

    def replace(self, other: Pages) -> None:
        """Replace the pages of `other`, whose state is abandoned."""
        self.read += other.read
        self.written += other.written
        self.bodies.reads += other.bodies.reads
        self.bodies.written += other.bodies.written
        other.drop()


def _numbers(jobs: list[_Job]) -> list[int]:
    return [job.seq for job in jobs if is_numbered(job.extras)]
