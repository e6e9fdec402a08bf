"""The DELAYED jobs of a queue that are in memory, if others are not."""

from __future__ import annotations

from sockpqd.core.store.job import DelayedJob
from sockpqd.core.store.job_list import JobList


class DelayedFront(JobList[DelayedJob], gc=False, eq=False):
    """A sorted list of which whole blocks may be taken out or put in."""

    @staticmethod
    def of_list(jobs: JobList[DelayedJob]) -> DelayedFront:
        """Take over the blocks of `jobs`, which must not be used any more."""
        return DelayedFront(jobs.size, jobs._blocks)

    @property
    def block_count(self) -> int:
        """How many blocks there are; they have numbers from 0 on."""
        return len(self._blocks)

    def block(self, number: int) -> list[DelayedJob]:
        """The jobs of a block."""
        return self._blocks[number]

    def before(self, number: int) -> int:
        """How many jobs stand before a block."""
        return sum(map(len, self._blocks[:number]))

    def leave(self, number: int, staying: list[DelayedJob]) -> None:
        """Remove all jobs of a block but these. There must be some in the list afterwards."""
        self.size -= len(self._blocks[number]) - len(staying)
        self._blocks[number:number + 1] = [staying] if staying else []

    def include(self, jobs: list[DelayedJob]) -> None:
        """Put jobs at their places; they are sorted, and mostly due before all others."""
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
