"""The pages of DELAYED jobs of one state, and the page that holds each seq."""

from __future__ import annotations

import msgspec

from sockpqd.core.pages.bodies import of_memory
from sockpqd.core.pages.extras import with_shared_extras
from sockpqd.core.pages.page_space import PageLost
from sockpqd.core.pages.pages import DelayedPage, Pages
from sockpqd.core.pages.seq_index import SeqIndex
from sockpqd.core.store.delayed import Delays
from sockpqd.core.store.job import DelayedJob

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[DelayedJob])


def jobs_in(data: bytes, page: DelayedPage) -> list[DelayedJob]:
    """Return the jobs in the bytes of a page. Raises PageLost."""
    try:
        jobs = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise PageLost(f"page {page.number} holds no delayed jobs: {error}") from error
    if len(jobs) != page.count or place(jobs[0]) != page.first or place(jobs[-1]) != (page.when, page.seq):
        raise PageLost(f"page {page.number} holds other jobs")
    return jobs


def place(job: DelayedJob) -> tuple[int, int]:
    """Return the place of a job among the DELAYED jobs of its queue."""
    return job.due_ms, job.seq


class DelayedPages:
    """The DELAYED jobs of all queues that are not in memory."""

    __slots__ = ("_by_number", "_pages", "in_memory", "index")

    def __init__(self, pages: Pages, in_memory: dict[int, DelayedJob]) -> None:
        """`in_memory`: the jobs in memory by seq."""
        self.index = SeqIndex()
        self._pages = pages
        self.in_memory = in_memory
        self._by_number: dict[int, DelayedPage] = {}

    @staticmethod
    def of(delays: Delays, pages: Pages) -> DelayedPages:
        """Return the pages of the DELAYED jobs of a state, empty."""
        outside = delays.outside
        if outside is None:
            outside = delays.outside = DelayedPages(pages, delays.by_seq)
        assert isinstance(outside, DelayedPages)
        return outside

    def write(self, jobs: list[DelayedJob], data_bytes: int) -> DelayedPage | None:
        """Page out these sorted jobs; None if there is no room, so they stay."""
        number = self._pages.keep(_encoder.encode(of_memory(jobs)), len(jobs), data_bytes)
        if number is None:
            return None
        self._pages.leave(jobs)
        last = jobs[-1]
        page = DelayedPage(number, len(jobs), data_bytes, last.due_ms, last.seq, place(jobs[0]))
        seqs = [job.seq for job in jobs]
        self.index.add(seqs, number)
        self._pages.indexed += len(seqs)
        self._by_number[number] = page
        for seq in seqs:
            del self.in_memory[seq]
        return page

    def look(self, page: DelayedPage) -> list[DelayedJob]:
        """Return the jobs of the page, which stays. Raises PageLost."""
        return self._pages.bodies.of_page(with_shared_extras(jobs_in(self._pages.data(page), page)))

    def take(self, page: DelayedPage) -> list[DelayedJob]:
        """Take the jobs of the page back into memory. Raises PageLost."""
        jobs = self.look(page)
        self._pages.come(jobs)
        self._pages.free(page)
        del self._by_number[page.number]
        self.index.remove([job.seq for job in jobs])
        self.in_memory.update([(job.seq, job) for job in jobs])
        return jobs

    def find(self, seq: int) -> DelayedJob | None:
        """Return the job with this seq, None if it is in no page. Raises PageLost."""
        number = self.index.find(seq)
        if number is None:
            return None
        return next(job for job in self.look(self._by_number[number]) if job.seq == seq)

    def page_of(self, seq: int) -> DelayedPage:
        """Return the page of the job with this seq; there must be one."""
        number = self.index.find(seq)
        assert number is not None
        return self._by_number[number]

    def adopt(self, page: DelayedPage) -> None:
        """Take over a page that an earlier process left; its jobs are in the index already."""
        self._by_number[page.number] = page

    def expect(self, page: DelayedPage) -> None:
        """Announce that the page will be taken soon."""
        self._pages.expect(page)

    def reference(self, page: DelayedPage) -> bytes:
        """Return the reference by which a later process finds the page."""
        return self._pages.reference(page)
