"""Which child gets the next job, and how many jobs a pool asks for. No IO, no clock."""

from __future__ import annotations

from collections import deque
from typing import Literal

Strategy = Literal["fair", "fast"]


def to_ask(idle: int, slots: int, held: int, waiting: int, prefetch: int) -> int:
    """How many jobs to ask for: idle slots x prefetch, less those that wait here already; 0 while nobody is idle.

    `slots`: children there are or may be; `held`: all jobs of the pool, of which `waiting` are given to no child. Never
    more than slots x prefetch are held.
    """
    return max(min(idle * prefetch - waiting, slots * prefetch - held), 0)


class Balancer:
    """The ready children in rotation, with the number of jobs that each has.

    "fair": a job goes only to an idle child. "fast": jobs are spread as they arrive, up to `inbox_max` for each child,
    busy or not.
    """

    def __init__(self, strategy: Strategy, inbox_max: int) -> None:
        self.strategy = strategy
        self.inbox_max = inbox_max
        self._jobs: dict[int, int] = {}
        self._rotation: deque[int] = deque()

    def add(self, child: int) -> None:
        """This child is ready for jobs."""
        self._jobs[child] = 0
        self._rotation.append(child)

    def remove(self, child: int) -> None:
        """This child gets no more jobs."""
        if self._jobs.pop(child, None) is not None:
            self._rotation.remove(child)

    def ended(self, child: int) -> None:
        """One job of this child is over."""
        if child in self._jobs:
            self._jobs[child] -= 1

    def choose(self) -> int | None:
        """The child for the next job, which counts as given to it; None when the job must wait."""
        most = 1 if self.strategy == "fair" else self.inbox_max
        for _ in range(len(self._rotation)):
            child = self._rotation[0]
            self._rotation.rotate(-1)
            if self._jobs[child] < most:
                self._jobs[child] += 1
                return child
        return None

    def idle(self) -> list[int]:
        """The children without a job, the next in turn first."""
        return [child for child in self._rotation if not self._jobs[child]]
