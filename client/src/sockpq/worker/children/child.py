"""What a pool knows of a child, of whatever kind, and what a child tells its pool."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from sockpq.model import Handed
from sockpq.worker.outcome import Outcome


class Child(Protocol):
    """Works on one job at a time. `number` is its own in this pool, never used again."""

    number: int

    def start(self) -> None:
        """Begin; the pool hears ready() when it can work."""
        ...

    def give(self, job: Handed) -> None:
        """Work on this job."""
        ...

    def stop(self) -> None:
        """End when there is no job; the pool hears gone()."""
        ...

    def kill(self) -> None:
        """End now; the pool hears gone()."""
        ...


class Usage(NamedTuple):
    """What a child uses: the most memory it ever had, in bytes; None where children share their process's."""

    memory_bytes: int | None = None


class Parent(Protocol):
    """What a child tells its pool, in the thread of the pool."""

    def ready(self, child: int) -> None:
        """It can work."""
        ...

    def ended(self, child: int, job: int, outcome: Outcome, usage: Usage) -> None:
        """It has worked on this job."""
        ...

    def gone(self, child: int, why: str) -> None:
        """It is not there any more."""
        ...
