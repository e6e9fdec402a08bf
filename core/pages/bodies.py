"""Large bodies outside memory: each is a page of its own, while the record of its job stays in memory.

For the jobs that no page can hold as a whole: jobs with a key, an item or a group, RUNNING, BURIED or dead jobs, and
jobs at the front of their queue. The oldest bodies leave first. A body that was read stays on disk.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.pages.page_space import PageLost, PageSpace
from sockpqd.core.store.body import Body, Data, Held, bytes_of
from sockpqd.core.store.job import DelayedJob, Job

_Job = TypeVar("_Job", Job, DelayedJob)


class OutsideCounts(Struct):
    """The part of one queue that is outside memory: waiting jobs, and the bytes of their bodies."""

    jobs: int = 0
    data_bytes: int = 0


class PagedBodies:
    """The bodies of one state from `bytes_min` bytes on. `hot_bytes` are in memory; `count`, `data_bytes` are not.

    `waiting_bytes`: of waiting jobs, in memory or not. `reads` and `written` count since the start of the process.
    """

    __slots__ = ("_gone", "_hot", "_serial", "_space", "bytes_min", "count", "data_bytes", "hot_bytes", "outside",
                 "outside_jobs", "reads", "waiting_bytes", "written")

    def __init__(self, space: PageSpace) -> None:
        self.bytes_min = limits.BODY_BYTES_MIN
        self.reads = 0
        self.written = 0
        self._space: PageSpace | None = space
        self._serial = 0
        self._gone: list[Held] = []
        self._nothing()

    def _nothing(self) -> None:
        self._hot: OrderedDict[int, Held] = OrderedDict()       # by serial: the oldest first
        self.hot_bytes = 0
        self.count = 0
        self.data_bytes = 0
        self.waiting_bytes = 0
        self.outside: dict[str, OutsideCounts] = {}           # of the queues with such jobs,
        self.outside_jobs = OutsideCounts()                   # and of all together

    def hold(self, data: bytes) -> Body:
        """Return a new body with these bytes."""
        self._serial += 1
        held = self._hot[self._serial] = Held(self._serial, len(data), data)
        self.hot_bytes += held.length
        return Body(self, held)

    def held(self, data: bytes) -> Data:
        """Return a new body with these bytes if they are worth it, otherwise the bytes themselves."""
        return data if len(data) < self.bytes_min else self.hold(data)

    def adopt(self, reference: bytes, length: int) -> Body:
        """Return a body of this size that an earlier process left. Raises PageLost."""
        assert self._space is not None
        self._serial += 1
        held = Held(self._serial, length, None, self._space.adopt(reference))
        self.count += 1
        self.data_bytes += length
        return Body(self, held)

    def take(self, reference: bytes, length: int) -> bytes:
        """Return the bytes of a body that an earlier process left, which stay in memory. Raises PageLost."""
        assert self._space is not None
        page = self._space.adopt(reference)
        data = body_of(self._space.get(page), length)
        self._space.free(page)
        return data

    def write_oldest(self) -> bool | None:
        """Page out the oldest body in memory. None: there is none. False: there is no room for it."""
        self.settle()
        if not self._hot:
            return None
        assert self._space is not None
        held = next(iter(self._hot.values()))
        assert held.data is not None
        page = self._space.put(held.data)
        if page is None:
            return False
        del self._hot[held.serial]
        held.data, held.page = None, page
        self.hot_bytes -= held.length
        self.count += 1
        self.data_bytes += held.length
        self.written += 1
        for queue, jobs in _queues_of(held):
            self._count(queue, jobs, held.length)
        return True

    def settle(self) -> None:
        """Free the bodies to which no job refers any longer."""
        while self._gone:
            held = self._gone.pop()
            if held.data is None:
                assert self._space is not None
                self._space.free(held.page)
                self.count -= 1
                self.data_bytes -= held.length
            else:
                del self._hot[held.serial]
                self.hot_bytes -= held.length

    def drop(self) -> None:
        """Drop the bodies of an abandoned state together with their space."""
        self._space = None
        self._nothing()
        self._gone.clear()

    # ---- calls by Body

    def read(self, held: Held) -> bytes:
        if self._space is None:
            raise PageLost("the state with this job was given up")
        self.reads += 1
        return body_of(self._space.get(held.page), held.length)

    def reference(self, held: Held) -> bytes | None:
        if held.data is not None:
            return None
        assert self._space is not None
        return self._space.reference(held.page)

    def gone(self, held: Held) -> None:
        """Record that the body is unused.

        Does nothing else, because the code it interrupts may be using the same lists.
        """
        if self._space is not None:
            self._gone.append(held)

    def waits(self, held: Held, queue: str) -> None:
        self.waiting_bytes += held.length
        if held.queues is not None:
            held.queues[queue] = held.queues.get(queue, 0) + 1
        elif held.queue is None:
            held.queue = queue
        else:
            held.queues = {held.queue: 1}
            held.queues[queue] = held.queues.get(queue, 0) + 1
        if held.data is None:
            self._count(queue, 1, held.length)

    def leaves(self, held: Held, queue: str) -> None:
        """See BodyKeeper. The job may come from a page, so that it was never counted as waiting with this body."""
        self.waiting_bytes -= held.length
        if held.queues is not None:
            left = held.queues[queue] - 1
            if left:
                held.queues[queue] = left
            else:
                del held.queues[queue]
        else:
            held.queue = None
        if held.data is None:
            self._count(queue, -1, held.length)

    def _count(self, queue: str, jobs: int, length: int) -> None:
        outside = self.outside.get(queue)
        if outside is None:
            outside = self.outside[queue] = OutsideCounts()
        for one in (outside, self.outside_jobs):
            one.jobs += jobs
            one.data_bytes += jobs * length
        if not outside.jobs:
            del self.outside[queue]

    def of_page(self, jobs: list[_Job]) -> list[_Job]:
        """Return the jobs of a page in the form that they have in memory."""
        least = self.bytes_min
        return [job if len(job.data) < least else replace(job, data=self.held(bytes_of(job.data))) for job in jobs]


def body_of(page: bytes, length: int) -> bytes:
    """Return the body of this size that is in a page. Raises PageLost."""
    if len(page) != length:
        raise PageLost(f"a page of {len(page)} bytes holds another body than one of {length}")
    return page


def of_memory(jobs: list[_Job]) -> list[_Job]:
    """Return the jobs in the form that they have in a page. Raises PageLost."""
    return [replace(job, data=job.data.read()) if type(job.data) is Body else job for job in jobs]


def leave(jobs: list[_Job]) -> None:
    """Record that these jobs have moved into a page."""
    for job in jobs:
        if type(job.data) is Body:
            job.data.leaves(job.queue)


def wait(jobs: list[_Job]) -> None:
    """Record that these jobs have left their page."""
    for job in jobs:
        if type(job.data) is Body:
            job.data.waits(job.queue)


def _queues_of(held: Held) -> list[tuple[str, int]]:
    if held.queues is not None:
        return list(held.queues.items())
    return [] if held.queue is None else [(held.queue, 1)]
