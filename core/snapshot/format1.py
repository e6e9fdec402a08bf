"""Snapshots of format 1, made before the cluster could change its members. Only their head was another."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict

from core.ops.jobs import Then
from core.snapshot.format3 import Running3, Waiting3
from core.snapshot.format4 import Head4
from core.snapshot.frames import Chunk, Clone, Counter, End, Head


class Head1(Struct, array_like=True, tag="head", forbid_unknown_fields=True):
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

    def upgraded(self) -> Head:
        """The head of today: every server is a voter, at an address not known yet (leaders will tell it)."""
        members = [(name, "", "") for name in sorted(name for name, _ in self.servers)]
        return Head4(**asdict(self), members=members, learner=None, configuration=0, online=True).upgraded()


Frame1 = Head1 | Waiting3 | Running3 | Clone | Chunk | End
