"""A sorted list of jobs: the READY ones of an item or a priority, the DELAYED or BURIED ones of a queue, dead ones.

It may also hold the bare seqs of jobs that wait for an item, or the places of a group's first or running jobs.

Jobs are added at the tail and nearly always taken from the front, but RETURN brings one back to its old place and a
hand-out by item takes one from the middle. So this is a sorted list in blocks, as in sortedcontainers: any operation
costs O(log jobs) and the moves within one block, and no removed job leaves a trace. The common cases cost less: a job
behind all others is compared only with the last one, and the first one is simply taken.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from sockpqd.core.limits import BLOCK_JOBS_MAX
from sockpqd.core.store.job import BuriedJob, DelayedJob, Job

_Job = TypeVar("_Job", Job, DelayedJob, BuriedJob, int, tuple[int, int, str], tuple[int, int, int])


class JobList(Struct, Generic[_Job], gc=False, eq=False):
    """Jobs, the next one first. Not tracked by the garbage collector; job.py says why.

    No block is empty, except the only one of an empty list.
    """

    size: int = 0
    _blocks: list[list[_Job]] = field(default_factory=lambda: [[]])

    @staticmethod
    def of(jobs: list[_Job]) -> JobList[_Job]:
        """Return a list of these jobs, which must be sorted."""
        starts = range(0, len(jobs), BLOCK_JOBS_MAX)
        return JobList(len(jobs), [jobs[start:start + BLOCK_JOBS_MAX] for start in starts] or [[]])

    def blocks(self) -> Iterator[list[_Job]]:
        """Return the jobs in their order, in lists that must not be changed."""
        return iter(self._blocks)

    def __iter__(self) -> Iterator[_Job]:
        return chain.from_iterable(self._blocks)

    def behind(self, job: _Job, place: Callable[[_Job], Any]) -> Iterator[_Job]:
        """Yield the jobs after the place of `job`, which need not be here.

        Places are compared instead of jobs, as there may be another job at the place of this one by now.
        """
        after = place(job)
        number = bisect_left(self._blocks, after, key=lambda block: place(block[-1])) if self.size else 0
        for block in self._blocks[number:]:
            yield from block[bisect_right(block, after, key=place):]

    def __getitem__(self, position: int) -> _Job:
        for block in self._blocks:
            if position < len(block):
                return block[position]
            position -= len(block)
        raise IndexError(position)

    @property
    def first(self) -> _Job:
        """The first job; there must be one."""
        return self._blocks[0][0]

    @property
    def last(self) -> _Job:
        """The last job; there must be one."""
        return self._blocks[-1][-1]

    def add(self, job: _Job) -> None:
        """Insert `job` at its place."""
        self.size += 1
        blocks = self._blocks
        block = blocks[-1]
        if not block or block[-1] < job:
            if len(block) < BLOCK_JOBS_MAX:
                block.append(job)
            else:
                blocks.append([job])
            return
        self._insert(job)

    def _insert(self, job: _Job) -> None:
        """Insert `job` at its place among the others."""
        blocks = self._blocks
        number = self._block_of(job)
        block = blocks[number]
        insort(block, job)
        if len(block) > BLOCK_JOBS_MAX:
            middle = len(block) // 2
            blocks[number:number + 1] = [block[:middle], block[middle:]]

    def _block_of(self, job: _Job) -> int:
        """Return the index of the block in which the place of `job` is."""
        blocks = self._blocks
        return 0 if len(blocks) == 1 else min(bisect_left(blocks, job, key=_last), len(blocks) - 1)

    def take_first(self) -> _Job:
        """Remove and return the next job; there must be one."""
        self.size -= 1
        blocks = self._blocks
        block = blocks[0]
        job = block.pop(0)
        if not block and self.size:
            del blocks[0]
        return job

    def position(self, job: _Job) -> int:
        """Return the number of jobs before the place of `job`."""
        number = self._block_of(job)
        return sum(map(len, self._blocks[:number])) + bisect_left(self._blocks[number], job)

    def remove(self, job: _Job) -> None:
        """Remove `job`, wherever it is; it must be here."""
        self.size -= 1
        number = self._block_of(job)
        block = self._blocks[number]
        del block[bisect_left(block, job)]
        if not block and self.size:
            del self._blocks[number]

    def find(self, seq: int) -> _Job | None:
        """Return the job with this seq, None if there is none, in a list that is sorted by seq."""
        blocks = self._blocks
        if not blocks[0]:
            return None
        number = bisect_left(blocks, seq, key=_last_seq)
        if number == len(blocks):
            return None
        block = blocks[number]
        job = block[bisect_left(block, seq, key=_seq)]
        return job if _seq(job) == seq else None

    def __contains__(self, job: _Job) -> bool:
        """Return whether a job with the place of `job` is here."""
        block = self._blocks[self._block_of(job)]
        at = bisect_left(block, job)
        return at < len(block) and block[at] == job

    def discard(self, job: _Job) -> bool:
        """Remove `job` if it is here; returns whether it was."""
        number = self._block_of(job)
        block = self._blocks[number]
        at = bisect_left(block, job)
        if at == len(block) or block[at] != job:
            return False
        self.size -= 1
        del block[at]
        if not block and self.size:
            del self._blocks[number]
        return True


def _last(block: list[_Job]) -> _Job:
    return block[-1]


def _seq(job: Any) -> int:
    seq: int = job.seq
    return seq


def _last_seq(block: list[Any]) -> int:
    return _seq(block[-1])
