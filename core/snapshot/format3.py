"""Snapshots of format 3, made before jobs had attempts, times and keys, and queues settings.

Formats 1 and 2 had the same rows of jobs.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict

from core.ops.jobs import Then
from core.snapshot.format4 import Head4, SessionRows4
from core.snapshot.frames import (
    Chunk,
    Clone,
    Counter,
    End,
    Running,
    RunningRow,
    SessionTable,
    UserRows,
    Waiting,
)

WaitingRow3 = tuple[int, Counter, str | None, bytes]     # priority, seq, item, data


class Waiting3(Struct, array_like=True, tag="waiting", forbid_unknown_fields=True):
    """Some waiting jobs of one queue."""

    queue: str
    jobs: list[WaitingRow3]

    def upgraded(self) -> Waiting:
        """The frame of today: nobody knows how often they were handed out."""
        return Waiting(self.queue, [
            (priority, 0, seq, item, data, 0, None, None) for priority, seq, item, data in self.jobs
        ])


class RunningRow3(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One running job."""

    id: Counter
    queue: str
    priority: int
    seq: Counter
    item: str | None
    data: bytes
    deadline_ms: Counter | None
    then: Then
    graced: bool


class Running3(Struct, array_like=True, tag="running", forbid_unknown_fields=True):
    """Some running jobs."""

    jobs: list[RunningRow3]

    def upgraded(self) -> Running:
        """The frame of today: the hand-out that goes on is the first one known, and the length of its lease is not."""
        return Running([
            RunningRow(**asdict(row), when=0, attempts=1, at_ms=None, lease_ms=None, more=None) for row in self.jobs
        ])


Frame3 = Head4 | Waiting3 | Running3 | SessionTable | SessionRows4 | UserRows | Clone | Chunk | End
