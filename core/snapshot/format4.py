"""Snapshots of format 4, made before queues counted what happens in them and sessions had addresses.

Formats 2 and 3 had the same head, format 3 the same sessions.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict

from core.ops.jobs import Then
from core.snapshot.frames import (
    Chunk,
    Clone,
    Counter,
    Delayed,
    End,
    Head,
    KeptRows,
    Number,
    QueueRows,
    Released,
    RequestRow,
    Running,
    SessionRow,
    SessionRows,
    SessionTable,
    Settings,
    UserRows,
    Waiting,
)


class Head4(Struct, array_like=True, tag="head", forbid_unknown_fields=True):
    """The head of that format."""

    index: Counter
    term: Counter
    leader: str | None
    clock_ms: Counter
    cluster_id: bytes | None
    expire_default: Then
    servers: list[tuple[str, Counter]]
    max_id: Counter
    next_id: Counter
    next_seq: Counter
    next_item: Counter
    members: list[tuple[str, str, str]]
    learner: str | None
    configuration: Counter
    online: bool

    def upgraded(self) -> Head:
        """The head of today: places were numbered one by one, so nobody knows how old they are."""
        return Head(**asdict(self), seqs_since_ms=self.clock_ms)


class SessionRow4(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One session of that format."""

    number: Counter
    secret: Number
    ttl_ms: Counter
    deadline_ms: Counter
    graced: bool
    ending: bool
    requests: list[RequestRow]
    taken: list[Counter]
    user: str

    def upgraded(self) -> SessionRow:
        """The row of today: nobody knows the address; the last use is as long ago as it was prolonged by then."""
        return SessionRow(**asdict(self), address="", used_ms=max(0, self.deadline_ms - self.ttl_ms))


class SessionRows4(Struct, array_like=True, tag="session", forbid_unknown_fields=True):
    """Some sessions."""

    rows: list[SessionRow4]

    def upgraded(self) -> SessionRows:
        """The frame of today."""
        return SessionRows([row.upgraded() for row in self.rows])


Frame4 = (
    Head4 | Settings | QueueRows | Waiting | Delayed | Running | Released | KeptRows | SessionTable | SessionRows4
    | UserRows | Clone | Chunk | End
)
