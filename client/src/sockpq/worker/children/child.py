"""The interfaces between a pool and its children, of every kind."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple, Protocol

from sockpq.model import Handed
from sockpq.worker.outcome import Outcome


class Child(Protocol):
    """Works on one job at a time. `number` is its own in this pool, never used again."""

    number: int

    def start(self) -> None:
        """Begin; the pool hears ready() when it can work."""
        ...

    def give(self, jobs: Sequence[Handed], until: float, timed: Set[int]) -> None:
        """Work on these jobs, one after the other; none is begun at or after `until`, on the monotonic clock.

        `timed`: the ids of those whose run time the pool tells the server, so that their tasks must not.
        """
        ...

    def take_back(self) -> set[int]:
        """Take back the jobs that it has not begun, and return their ids."""
        ...

    def cancel(self, job: int) -> bool:
        """Interrupt the work on this job, if it is at it; returns whether the child must end after that."""
        ...

    def stop(self) -> None:
        """End when there is no job; the pool hears gone()."""
        ...

    def kill(self) -> None:
        """End now; the pool hears gone()."""
        ...


class Usage(NamedTuple):
    """The greatest memory that the child ever used, in bytes; None where children share their process's."""

    memory_bytes: int | None = None


class Result(NamedTuple):
    """The result of one job; `outcome` None: it was not begun, because it was too late."""

    job: int
    outcome: Outcome | None
    usage: Usage


class Parent(Protocol):
    """The notifications of a child to its pool, in the thread of the pool."""

    def ready(self, child: int) -> None:
        """Note that the child can work."""
        ...

    def ended(self, child: int, results: Sequence[Result]) -> None:
        """Note that the child has worked on these jobs, in this order."""
        ...

    def gone(self, child: int, why: str) -> None:
        """Note that the child has ended."""
        ...
