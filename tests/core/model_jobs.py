"""What the reference model is made of: its jobs, what it tells of an entry, and how it chooses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from core import Reply, Then

Name = TypeVar("Name", str, tuple[str, str])


@dataclass
class ModelJob:
    """A job; it runs iff it has an id."""

    queue: str
    priority: int
    seq: int
    data: bytes
    item: str | None
    id: int | None = None
    deadline_ms: int | None = None
    then: Then = Then.LATER
    graced: bool = False
    session: int | None = None      # the session it is bound to

    def facts(self) -> tuple[object, ...]:
        """What can be read of a running job."""
        return (self.id, self.queue, self.priority, self.data, self.item, self.deadline_ms, self.session)


@dataclass
class ModelApplied:
    """As core's Applied, with the effects as lists."""

    replies: list[Reply] = field(default_factory=list)
    ready: list[str] = field(default_factory=list)
    ready_items: list[tuple[str, str]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    restored: bool = False

    def job_ready(self, queue: str, item: str | None) -> None:
        """A job waits (again)."""
        note(self.ready, queue)
        if item is not None:
            note(self.ready_items, (queue, item))


def random_bits(number: int) -> int:
    """SplitMix64's output for the state `number`, after its reference implementation."""
    full = 2**64
    z = (number + 0x9E3779B97F4A7C15) % full
    z = (z ^ (z // 2**30)) * 0xBF58476D1CE4E5B9 % full
    z = (z ^ (z // 2**27)) * 0x94D049BB133111EB % full
    return z ^ (z // 2**31)


def first(jobs: list[ModelJob]) -> ModelJob:
    """The job that is handed out first: the greatest priority, and in it the smallest seq."""
    return sorted(jobs, key=lambda job: (-job.priority, job.seq))[0]


def note(names: list[Name], name: Name) -> None:
    """Remember that something happened in a queue, or to an item in it; the first time counts."""
    if name not in names:
        names.append(name)
