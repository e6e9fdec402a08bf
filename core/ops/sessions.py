"""Operations on sessions, and the Request, which executes another operation once (spec/sessions)."""

from __future__ import annotations

from msgspec import Struct

from core.ops import jobs, queues
from core.ops.cluster import CloneEnd


class OpenSession(Struct, array_like=True, tag=15, gc=False, frozen=True):
    """A client wants a session (spec/sessions 1), which ends `ttl_ms` after its last use.

    `secret`: 64 random bits, so that nobody can guess the name of somebody else's session. `user`: whose session it
    is, "" when the client has no name. `address`: where the client is. One user at one address may have `owner_max`
    sessions: for another one it loses its longest unused one without bound jobs.
    """

    secret: int
    ttl_ms: int
    user: str = ""
    address: str = ""
    owner_max: int | None = None        # None: any number


class AttachSession(Struct, array_like=True, tag=16, gc=False, frozen=True):
    """A client comes back to the session that it names by number and secret.

    A session of a user is there for this `user` only; "" for a client that has no name, which any session is there for.
    """

    session: int
    secret: int
    user: str = ""


class CloseSession(Struct, array_like=True, tag=17, gc=False, frozen=True):
    """The session ends now. Jobs bound to it go LATER with `release`, otherwise they run on (spec/sessions 4.2).

    Replies: Accepted, SessionNotFound; Removed when there were more jobs to unbind than one entry should: the session
    lives on with the others.
    """

    session: int
    release: bool


class TouchSession(Struct, array_like=True, tag=18, gc=False, frozen=True):
    """Use the session, so that it does not end."""

    session: int


Requested = (
    jobs.Atomic | jobs.Get | jobs.Pick | jobs.DoneAll | jobs.LaterAll | jobs.Kick | jobs.Batch | queues.OnQueues
    | CloneEnd
)


class Request(Struct, array_like=True, tag=19, gc=False, frozen=True):
    """Execute `operation`, unless request `number` of the session was answered before: then answer the same again.

    `digest` (16 bytes) is that of the client's whole command: under one number there is one command only. A command of
    several operations gives each of them a `part` of its own: 0 is the command itself, 1 the hand-out of a PUT .. WAIT.
    An Empty is no answer yet with `keep_waiting` (GETB, GETBE, the hand-out of a WAIT): the same Request is proposed
    again when a job may be there. With `until_finished` as well (GETBE) only an Empty with unfinished jobs is none.
    """

    session: int
    number: int
    digest: bytes
    part: int
    keep_waiting: bool
    operation: Requested
    until_finished: bool = False
