"""Jobs in memory and jobs in pages, as one sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush, heapreplace
from typing import TypeVar

_Job = TypeVar("_Job")
_Page = TypeVar("_Page")
Place = tuple[int, ...]


def merged(
    near: Iterable[_Job], pages: Iterable[tuple[Place, _Page]], jobs_of: Callable[[_Page], Iterable[_Job]],
    place: Callable[[_Job], Place],
) -> Iterator[_Job]:
    """Yield all jobs in their order. A page is read when its first job comes next.

    `near`: jobs in their order. `pages`: each with the place of its first job, in the order of these places; the jobs
    of a page are in order, too. `place(job)`: unique for each job.
    """
    heap: list[tuple[Place, _Job, Iterator[_Job]]] = []

    def begin(jobs: Iterator[_Job]) -> None:
        for job in jobs:
            heappush(heap, (place(job), job, jobs))
            break

    def take() -> _Job:
        _, first, jobs = heap[0]
        for job in jobs:
            heapreplace(heap, (place(job), job, jobs))
            break
        else:
            heappop(heap)
        return first

    begin(iter(near))
    for first, page in pages:
        while heap and heap[0][0] < first:
            yield take()
        begin(iter(jobs_of(page)))
    while heap:
        yield take()
