"""What can be seen of jobs and queues from outside (PEEK, QUEUE LIST, QUEUE STAT)."""

from __future__ import annotations

from msgspec import Struct

from core.queue_operations import JobState


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
