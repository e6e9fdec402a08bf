"""The pages with READY jobs of the groups of one queue, in the order of the queue.

Each has jobs of one group and one priority, so the places of pages overlap: merge.py reads them in their order.
"""

from __future__ import annotations

from collections.abc import Iterator

from sortedcontainers import SortedList

from sockpqd.core.pages.pages import GroupPage, Pages
from sockpqd.core.store.job import Job

Place = tuple[int, int, int]        # of a READY job: rank, when, seq


class GroupPages:
    """Pages of one queue: `jobs` are in them, with `data_bytes` of data."""

    __slots__ = ("_by_number", "_by_place", "_by_seq", "data_bytes", "jobs", "pages")

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.jobs = 0
        self.data_bytes = 0
        self._by_number: dict[int, GroupPage] = {}
        self._by_place: SortedList = SortedList()       # (place of the first job, page)
        self._by_seq: SortedList = SortedList()         # (seq of the first job, number of the page)

    def __iter__(self) -> Iterator[GroupPage]:
        return (page for _, page in self._by_place)

    def __len__(self) -> int:
        return len(self._by_number)

    def add(self, page: GroupPage) -> None:
        """Add a page, whose jobs and bytes then count."""
        self._by_number[page.number] = page
        self._by_place.add((page.first_place, page))
        self._by_seq.add((page.first, page.number))
        self.jobs += page.count
        self.data_bytes += page.data_bytes

    def take(self, page: GroupPage) -> list[Job]:
        """Take the jobs of the page back into memory. Raises PageLost."""
        jobs = self.pages.take(page)
        del self._by_number[page.number]
        self._by_place.remove((page.first_place, page))
        self._by_seq.remove((page.first, page.number))
        self.jobs -= page.count
        self.data_bytes -= page.data_bytes
        return jobs

    def page_of(self, seq: int) -> GroupPage | None:
        """Return the page of the job with this seq; None if it is in none of these."""
        number = self.pages.page_of(seq)
        return None if number is None else self._by_number.get(number)

    def find(self, seq: int) -> Job | None:
        """Return the job with this seq, None if it is in no page. Raises PageLost."""
        page = self.page_of(seq)
        return None if page is None else next(job for job in self.pages.look(page) if job.seq == seq)

    def behind(self, place: Place) -> list[tuple[Place, GroupPage]]:
        """Return the pages with jobs after this place, each with the place of its first job, sorted by these places."""
        return [(first, page) for first, page in self._by_place if page.last_place > place]

    def places(self) -> SortedList:
        """Return all pages, each with the place of its first job, sorted by these places."""
        return self._by_place

    def oldest_seq(self) -> int:
        """Return the smallest seq of a job; there must be a page."""
        seq: int = self._by_seq[0][0]
        return seq

    def first_of_least_priority(self) -> GroupPage:
        """Return the page with the first job of the lowest priority; there must be a page."""
        rank = self._by_place[-1][1].rank
        page: GroupPage = self._by_place[self._by_place.bisect_left(((rank,),))][1]
        return page
