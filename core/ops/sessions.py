"""Operations on sessions, and Request, which executes another operation exactly once."""

from __future__ import annotations

from sockpqd.core.ops import jobs, pulses, queues, topics, workers
from sockpqd.core.ops.cluster import CloneChunk
from sockpqd.core.ops.logged import Logged


class OpenSession(Logged, tag=15, frozen=True):
    """Open a session (spec/sessions 1), which ends `ttl_ms` after its last use.

    `secret`: 64 random bits, so that no other client can guess the name of the session. `user`: the owner, "" for a
    client without a name. `address`: of the client. One user at one address may have `owner_max` sessions: one more
    ends its least recently used one without bound jobs.
    """

    secret: int
    ttl_ms: int
    user: str = ""
    address: str = ""
    owner_max: int | None = None        # None: any number


class AttachSession(Logged, tag=16, frozen=True):
    """Resume a session, named by number and secret, for a client that came back.

    A session of a user is open to this `user` only, and to clients without a name ("").
    """

    session: int
    secret: int
    user: str = ""


class CloseSession(Logged, tag=17, frozen=True):
    """End the session. Jobs bound to it are put back with `release`, otherwise they run on (spec/sessions 4.2).

    `first`: they go back to their old places. Replies: Accepted, SessionNotFound; Removed if there were more jobs to
    unbind or put back than one entry may: the session stays, with the other jobs.
    """

    session: int
    release: bool
    first: bool = False


class TouchSession(Logged, tag=18, frozen=True):
    """Count as a use of one or several sessions, such as all of one program, so that they do not end.

    Unknown ones are skipped. Replies: Accepted; SessionNotFound, of a single one.
    """

    session: int | tuple[int, ...]


Requested = (
    jobs.Atomic | jobs.Taking | jobs.Batch | jobs.RetryItem | jobs.CancelItem | queues.OnQueues
    | queues.OnGroups | pulses.OnPulses | workers.OnWorkers | topics.OnTopics | CloneChunk
)


class Request(Logged, tag=19, frozen=True):
    """Execute `operation`, unless request `number` of the session was answered before: then repeat the answer.

    `digest` (16 bytes, or none) identifies the client's whole command: one number stands for one command. A command of
    several operations gives each of them its own `part`: 0 is the command itself, 1 the hand-out of a PUT .. WAIT. With
    `keep_waiting` (GETB, GETBE, the hand-out of a WAIT) an Empty is not an answer yet: the same Request is proposed
    again when there may be a job. With `until_finished` too (GETBE), this holds only for an Empty with unfinished jobs.
    """

    session: int
    number: int
    digest: bytes
    part: int
    keep_waiting: bool
    operation: Requested
    until_finished: bool = False
