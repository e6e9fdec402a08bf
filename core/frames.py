"""The frames a snapshot consists of; snapshot.py tells how they follow each other, and what to do to change one.

They are types of their own, so that the classes of the state can change while the bytes stay.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from core.job_operations import Then

COUNTER_MAX = (1 << 63) - 1

Counter = Annotated[int, Meta(ge=0, le=COUNTER_MAX)]
Number = Annotated[int, Meta(ge=0)]         # up to 64 bits


class SnapshotError(ValueError):
    """These bytes are not a snapshot this version can read."""


def check(right: bool, wrong: str) -> None:
    """Raise SnapshotError, unless all is `right`; otherwise the snapshot contradicts itself in what `wrong` tells."""
    if not right:
        raise SnapshotError(f"inconsistent snapshot: {wrong}")


class Head(Struct, array_like=True, tag="head", forbid_unknown_fields=True):
    """All of the state that does not grow with the jobs."""

    index: Counter
    term: Counter
    leader: str | None
    clock_ms: Counter
    cluster_id: bytes | None
    expire_default: Then
    servers: list[tuple[str, Counter]]      # in rising id
    max_id: Counter
    next_id: Counter
    next_seq: Counter
    next_item: Counter
    members: list[tuple[str, str, str]]     # name, peer, client, in name order
    learner: str | None
    configuration: Counter
    online: bool


WaitingRow = tuple[int, Counter, str | None, bytes]     # priority, seq, item, data


class Waiting(Struct, array_like=True, tag="waiting", forbid_unknown_fields=True):
    """Some waiting jobs of one queue."""

    queue: str
    jobs: list[WaitingRow]


class RunningRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
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


class Running(Struct, array_like=True, tag="running", forbid_unknown_fields=True):
    """Some running jobs."""

    jobs: list[RunningRow]


class StoredAnswer(Struct, array_like=True, tag="stored", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer was Stored."""

    item: str | None


class HandedAnswer(Struct, array_like=True, tag="handed", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer was Handed, with this id."""

    id: Counter


class EmptyAnswer(Struct, array_like=True, tag="empty", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer was Empty."""

    unfinished: bool


class FinishedAnswer(Struct, array_like=True, tag="finished", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer was Finished."""

    queue_done: bool
    item_done: bool


class PlainAnswer(Struct, array_like=True, tag="plain", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer was one that says nothing but its name."""

    name: Literal["accepted", "not found", "invalid", "no session"]


AnswerRow = StoredAnswer | HandedAnswer | EmptyAnswer | FinishedAnswer | PlainAnswer


class RequestRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One request of a session."""

    number: Number
    digest: bytes
    answers: list[tuple[int, AnswerRow]]        # with their parts, in rising order


class SessionRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One session."""

    number: Counter
    secret: Number
    ttl_ms: Counter
    deadline_ms: Counter
    graced: bool
    ending: bool
    requests: list[RequestRow]                  # in rising number
    taken: list[Counter]                        # ids of the bound jobs, in rising order
    user: str                                   # whose it is, "" when nobody's


class SessionTable(Struct, array_like=True, tag="sessions", forbid_unknown_fields=True):
    """There has been a session."""

    next_session: Counter
    sessions: Counter                           # how many there are now


class SessionRows(Struct, array_like=True, tag="session", forbid_unknown_fields=True):
    """Some sessions."""

    rows: list[SessionRow]


class UserRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One user."""

    name: str
    rights: str
    key: bytes


class UserRows(Struct, array_like=True, tag="users", forbid_unknown_fields=True):
    """Some users."""

    rows: list[UserRow]


class Clone(Struct, array_like=True, tag="clone", forbid_unknown_fields=True):
    """A CLONE is under way."""

    clone: int
    total_bytes: int


class Chunk(Struct, array_like=True, tag="chunk", forbid_unknown_fields=True):
    """One chunk it has received."""

    data: bytes


class End(Struct, array_like=True, tag="end", forbid_unknown_fields=True):
    """Nothing follows but the checksum."""

    waiting: Counter
    running: Counter


Frame = Head | Waiting | Running | SessionTable | SessionRows | UserRows | Clone | Chunk | End
