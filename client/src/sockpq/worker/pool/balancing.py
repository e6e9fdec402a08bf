"""Decides which child gets the next job, and how many jobs a pool asks for. No IO, no clock."""

from __future__ import annotations

from collections import deque
from typing import Literal

Strategy = Literal["fair", "fast"]

ASKED_JOBS_MAX = 1000       # at once, where there is no other limit


def to_ask(idle: int, slots: int, held: int, waiting: int, prefetch: int) -> int:
    """Return the number of jobs to ask for: idle slots x prefetch, less those waiting here; 0 while no child is idle.

    `slots`: the current or maximum number of children; `held`: all jobs of the pool, of which `waiting` are assigned to
    no child. At most slots x prefetch are held; with a prefetch of 0 any number, even if no child is idle.
    """
    if not prefetch:
        return ASKED_JOBS_MAX if slots else 0
    return max(min(idle * prefetch - waiting, slots * prefetch - held), 0)


class Balancer:
    """The ready children in rotation, with the number of jobs that each has.

    "fair": jobs are distributed among idle children only. "fast": they are distributed as they arrive, even to busy
    children. None has more than `inbox_max`.
    """

    def __init__(self, strategy: Strategy, inbox_max: int) -> None:
        self.strategy = strategy
        self.inbox_max = inbox_max
        self._jobs: dict[int, int] = {}
        self._rotation: deque[int] = deque()

    def add(self, child: int) -> None:
        """Count a child that is ready for jobs."""
        self._jobs[child] = 0
        self._rotation.append(child)

    def remove(self, child: int) -> None:
        """Remove the child: it gets no more jobs."""
        if self._jobs.pop(child, None) is not None:
            self._rotation.remove(child)

    def ended(self, child: int, count: int = 1) -> None:
        """Record that `count` jobs of this child have ended, or were taken back."""
        if child in self._jobs:
            self._jobs[child] -= count

    def deal(self, count: int) -> list[int]:
        """Return the children for the next `count` jobs, which count as given to them.

        Fewer when the others must wait.
        """
        room = {
            child: self.inbox_max - jobs for child, jobs in self._jobs.items()
            if not jobs or (self.strategy == "fast" and jobs < self.inbox_max)
        }
        chosen: list[int] = []
        while room and len(chosen) < count:
            child = self._rotation[0]
            self._rotation.rotate(-1)
            if child in room:
                chosen.append(child)
                self._jobs[child] += 1
                room[child] -= 1
                if not room[child]:
                    del room[child]
        return chosen

    @property
    def room(self) -> int:
        """The number of jobs that deal() would assign to children."""
        counts = self._jobs.values()
        return sum(max(self.inbox_max - jobs, 0) for jobs in counts if self.strategy == "fast" or not jobs)

    def idle(self) -> list[int]:
        """Return the children without a job, the next in turn first."""
        return [child for child in self._rotation if not self._jobs[child]]
