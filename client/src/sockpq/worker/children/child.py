"""The interfaces between a pool and its children, of every kind."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple, Protocol

from sockpq.model import Handed
from sockpq.worker.outcome import Outcome


class Child(Protocol):
    """Processes one job at a time. `number`: unique in this pool, never reused."""

    number: int

    def start(self) -> None:
        """Start the child; the pool's ready() is called when it can work."""
        ...

    def give(self, jobs: Sequence[Handed], until: float, timed: Set[int]) -> None:
        """Process these jobs one after another; none is begun at or after `until`, on the monotonic clock.

        `timed`: the ids of jobs whose run time the pool reports to the server, so that their tasks must not.
        """
        ...

    def take_back(self) -> set[int]:
        """Take back the jobs that the child has not begun, and return their ids."""
        ...

    def cancel(self, job: int) -> bool:
        """Interrupt this job, if it is being processed; returns whether the child must end after that."""
        ...

    def stop(self) -> None:
        """End the child after its jobs; the pool's gone() is called then."""
        ...

    def kill(self) -> None:
        """Kill the child; the pool's gone() is called when it has ended."""
        ...


class Usage(NamedTuple):
    """The peak memory of the child, in bytes; None if it shares a process with the other children."""

    memory_bytes: int | None = None


class Result(NamedTuple):
    """The result of one job; `outcome` is None if it was not begun because it was too late."""

    job: int
    outcome: Outcome | None
    usage: Usage


class Parent(Protocol):
    """The notifications of a child to its pool, in the thread of the pool."""

    def ready(self, child: int) -> None:
        """Record that the child can work."""
        ...

    def ended(self, child: int, results: Sequence[Result]) -> None:
        """Record that the child has processed these jobs, in this order."""
        ...

    def gone(self, child: int, why: str) -> None:
        """Record that the child has ended."""
        ...
