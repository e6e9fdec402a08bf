"""What can be seen of jobs, queues and sessions from outside (PEEK, QUEUE LIST, QUEUE STAT, SESSION LIST)."""

from __future__ import annotations

from msgspec import Struct

from core.ops.queues import JobState


class Seen(Struct, gc=False, frozen=True):
    """One job."""

    queue: str
    id: int | None              # of a running job
    priority: int
    data: bytes
    state: JobState
    item: str | None
    key: str | None
    attempts: int               # hand-outs so far
    at_ms: int | None           # the time for which it was put, when it was put for one
    deadline_ms: int | None     # of a running job with a lease


class Counts(Struct, gc=False, frozen=True):
    """How many jobs of a queue are in each state; dead ones are those that come from it."""

    ready: int
    delayed: int
    running: int
    dead: int


class History(Struct, gc=False, frozen=True):
    """What happened in a queue since it began; it goes with the queue."""

    put: int            # jobs that came, by Put, Move and Kick
    taken: int          # hand-outs, those that were undone as well
    done: int           # hand-outs that ended so, at the end of a lease too; Move is one
    later: int          # those after which the job went back, or was dead: by Later, or with its session
    expired: int        # those that ended with the lease, whatever followed
    dead: int           # jobs that were given up
    faded: int          # jobs whose TTL was over
    oldest_ms: int      # for how long the READY job has been waiting that waits for longest, 0: there is none
