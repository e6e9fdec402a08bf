"""What the machine answers: one reply for each operation. A client's mistake is a reply too, never an exception."""

from __future__ import annotations

from msgspec import Struct


class Stored(Struct, gc=False, frozen=True):
    """Put: the job is queued. `item` is the name the machine made for PUT .. NEW, otherwise None."""

    item: str | None = None


class Handed(Struct, gc=False, frozen=True):
    """Get: this job is now running under `id`."""

    id: int
    queue: str
    priority: int
    data: bytes
    item: str | None = None


class Empty(Struct, gc=False, frozen=True):
    """Get: nothing to give. `unfinished`: the queues asked for still have unfinished jobs (decides GETBE, A24)."""

    unfinished: bool


class Finished(Struct, gc=False, frozen=True):
    """Done: the job is removed. `queue_done`: FINQ, `item_done`: FINI (A41)."""

    queue_done: bool = False
    item_done: bool = False


class Accepted(Struct, gc=False, frozen=True):
    """Executed: Later, Return, Tick, Lead, the operations of CLONE, members (but AddLearner), sessions and users."""


class NotFound(Struct, gc=False, frozen=True):
    """Done, Later, Return: no running job has this id."""


class InvalidSnapshot(Struct, gc=False, frozen=True):
    """CloneChunk, CloneEnd: the collected bytes are not a snapshot; nothing was changed."""


class Joined(Struct, gc=False, frozen=True):
    """AddLearner: the node is the learner now, with this server id."""

    id: int


class NodeExists(Struct, gc=False, frozen=True):
    """AddLearner: the node is a member already."""


class UnknownNode(Struct, gc=False, frozen=True):
    """RemoveMember: the node is no member."""


class LastNode(Struct, gc=False, frozen=True):
    """RemoveMember: the node is the only voter."""


class ChangeInProgress(Struct, gc=False, frozen=True):
    """AddLearner, PromoteLearner, RemoveMember: another change came first, or has not ended yet."""


class SessionOpened(Struct, gc=False, frozen=True):
    """OpenSession: the session's name, as the client will give it, and how long it lives without use."""

    sid: str
    ttl_ms: int


class TooManySessions(Struct, gc=False, frozen=True):
    """OpenSession: there are as many sessions as there may be."""


class SessionAttached(Struct, gc=False, frozen=True):
    """AttachSession: the session lives. `last`: the greatest request number seen, 0 when there was none."""

    ttl_ms: int
    last: int


class SessionNotFound(Struct, gc=False, frozen=True):
    """Whatever names a session: it has ended or never was. Nothing was executed."""


class RequestMismatch(Struct, gc=False, frozen=True):
    """Request: the number was used for another command. Nothing was executed."""


class RequestTooOld(Struct, gc=False, frozen=True):
    """Request: the number lies below the session's window, so nobody knows any more whether it was used."""


class UserNotFound(Struct, gc=False, frozen=True):
    """DeleteUser: there is no such user."""


class TooManyUsers(Struct, gc=False, frozen=True):
    """SetUser: there are as many users as there may be."""


Reply = (
    Stored
    | Handed
    | Empty
    | Finished
    | Accepted
    | NotFound
    | InvalidSnapshot
    | Joined
    | NodeExists
    | UnknownNode
    | LastNode
    | ChangeInProgress
    | SessionOpened
    | TooManySessions
    | SessionAttached
    | SessionNotFound
    | RequestMismatch
    | RequestTooOld
    | UserNotFound
    | TooManyUsers
)
