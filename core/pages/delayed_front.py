"""The part of a queue's DELAYED jobs that is in memory when others are paged."""

from __future__ import annotations

from sockpqd.core.store.job import DelayedJob
from sockpqd.core.store.job_list import JobList


class DelayedFront(JobList[DelayedJob], gc=False, eq=False):
    """A sorted list whose blocks can be taken out and put in as a whole."""

    @staticmethod
    def of_list(jobs: JobList[DelayedJob]) -> DelayedFront:
        """Take over the blocks of `jobs`, which must not be used afterwards."""
        return DelayedFront(jobs.size, jobs._blocks)

    @property
    def block_count(self) -> int:
        """The number of blocks; they are numbered from 0."""
        return len(self._blocks)

    def block(self, number: int) -> list[DelayedJob]:
        """Return the jobs of a block."""
        return self._blocks[number]

    def before(self, number: int) -> int:
        """Return the number of jobs before a block."""
        return sum(map(len, self._blocks[:number]))

    def leave(self, number: int, staying: list[DelayedJob]) -> None:
        """Remove all jobs of a block except `staying`. The list must not become empty."""
        self.size -= len(self._blocks[number]) - len(staying)
        self._blocks[number:number + 1] = [staying] if staying else []

    def include(self, jobs: list[DelayedJob]) -> None:
        """Insert jobs, which are sorted and mostly due before all others."""
        blocks = self._blocks
        if not blocks[0]:
            blocks[0] = jobs
        elif jobs[-1] < blocks[0][0]:
            blocks.insert(0, jobs)
        else:
            for job in jobs:
                self.add(job)
            return
        self.size += len(jobs)
