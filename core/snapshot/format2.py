"""Snapshots of format 2, made before there were users. The rows of their sessions named none."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict

from core.snapshot.format3 import Running3, Waiting3
from core.snapshot.format4 import Head4, SessionRow4
from core.snapshot.frames import (
    Chunk,
    Clone,
    Counter,
    End,
    Number,
    RequestRow,
    SessionRows,
    SessionTable,
)


class SessionRow2(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One session of that format."""

    number: Counter
    secret: Number
    ttl_ms: Counter
    deadline_ms: Counter
    graced: bool
    ending: bool
    requests: list[RequestRow]
    taken: list[Counter]


class SessionRows2(Struct, array_like=True, tag="session", forbid_unknown_fields=True):
    """Some sessions."""

    rows: list[SessionRow2]

    def upgraded(self) -> SessionRows:
        """The frame of today: they are nobody's."""
        return SessionRows([SessionRow4(**asdict(row), user="").upgraded() for row in self.rows])


Frame2 = Head4 | Waiting3 | Running3 | SessionTable | SessionRows2 | Clone | Chunk | End
