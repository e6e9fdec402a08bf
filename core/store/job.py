"""A job in its states.

    state      meaning                                     held as
    (none)     not yet put, or ended for good              nothing
    DELAYED    it becomes active later: at a time, or      DelayedJob
               when other items are finished
    READY      in its queue, can be handed out             Job
    RUNNING    handed out under an id, until its end       RunningJob

    operation or event            from       to         place in the queue      id
    Put                           (none)     READY      tail of its priority    -
    Put for later, or after       (none)     DELAYED    -                       -
    its time has come             DELAYED    READY      tail of its priority    -
    Get                           READY      RUNNING    -                       a new one
    Done                          RUNNING    (none)     -                       void
    Done of a periodic job        RUNNING    DELAYED    -                       void
    Later                         RUNNING    READY      tail of its priority    void
    Later for later               RUNNING    DELAYED    -                       void
    Later to its old place        RUNNING    READY      its old place           void
    Return                        RUNNING    READY      its old place           void
    lease over, THEN LATER        RUNNING    READY      tail of its priority    void
    its session ends              RUNNING    READY      tail of its priority    void
    lease over, THEN DONE         RUNNING    as Done    -                       void
    lease over, THEN DEAD; Bury   RUNNING    READY      tail, dead queue        void
    one attempt too many          RUNNING    READY      tail, dead queue        void
    Kick                          READY      READY      tail, its old queue     -
    Move                          RUNNING    READY      tail, another queue     void
    Change for later              READY      DELAYED    -                       -
    TTL over, Purge, Delete       READY      (none)     -                       -
    Purge, Delete                 DELAYED    (none)     -                       -
    Delete by id                  RUNNING    (none)     -                       void
    Touch, Change by id           RUNNING    RUNNING    -                       kept
    Lead                          RUNNING    RUNNING    -                       kept; the lease may get longer, once

An operation on a job in another state than its "from" is refused and changes nothing. A job that does not run has no
id: only by its key can an operation name it. "One attempt too many": what would have made it READY again (but for
Return and a yielded Later) makes it dead when its queue, or its Put, allows no more attempts. A dead job is READY as
any other, in another queue; it remembers the one that it comes from.

The place of a READY job is (rank, when, seq). `rank` is the negated priority, so that the smallest place is the first
to be handed out; `when` is the time at which it became active, in a queue in the order of time, otherwise 0; `seq` is a
number no other job of the cluster has: a new one puts the job at the tail, the old one puts it back to where it was. A
running job keeps when and seq for that. The numbers given in an entry begin at its time times 2^SEQ_BITS, so that seq
also tells since when the job has its place.

All types are out of the garbage collector's sight (gc=False), so that a million jobs cost it nothing. That is safe
because they refer to strings, bytes and numbers only, and so cannot be part of a cycle.
"""

from __future__ import annotations

from msgspec import Struct

from core.ops.jobs import Then

NEVER_MS = (1 << 63) - 1        # the due time of a job that waits for items


class More(Struct, gc=False, frozen=True):
    """What few jobs have; most have none of it."""

    key: str | None = None
    tries: int | None = None        # attempts it has, when its Put said so; 0: any number
    ttl_ms: int | None = None       # it ends when it was READY for so long
    fade_ms: int | None = None      # while it is READY: when that will be
    every_ms: int | None = None     # of a periodic job
    origin: str | None = None       # of a dead job: the queue that it comes from
    after: tuple[str, ...] = ()     # of a DELAYED one: items that must be finished first


def fading(more: More, fade_ms: int | None) -> More:
    """The same with another end of its TTL."""
    if more.fade_ms == fade_ms:
        return more
    return More(more.key, more.tries, more.ttl_ms, fade_ms, more.every_ms, more.origin, more.after)


class Job(Struct, order=True, frozen=True, gc=False):
    """A READY job. Jobs sort by their place: rank, when, seq. Seqs differ, so no later field is compared."""

    rank: int               # -priority
    when: int
    seq: int
    queue: str
    data: bytes
    item: str | None
    attempts: int           # how often it was handed out
    at_ms: int | None       # the time it was put for, when it was put for one
    more: More | None


class DelayedJob(Struct, order=True, frozen=True, gc=False):
    """A DELAYED job. They sort by due time, then by seq; no later field is compared."""

    due_ms: int             # when it becomes active; NEVER_MS while it waits for items
    seq: int
    rank: int
    queue: str
    data: bytes
    item: str | None
    attempts: int
    at_ms: int | None
    more: More | None


class RunningJob(Struct, gc=False):
    """A job handed out. Only its deadline changes (the failover grace), and its session when it is no longer bound.

    What else changes makes another one of it, under the same id.
    """

    id: int
    queue: str
    priority: int
    data: bytes
    item: str | None
    deadline_ms: int | None     # replicated time at which the lease ends; None: no limit
    then: Then                  # LATER, DONE or DEAD: what follows the deadline
    when: int                   # its old place
    seq: int
    attempts: int               # this hand-out counted
    at_ms: int | None
    more: More | None
    lease_ms: int | None        # length of the lease as it was given, for TOUCH
    graced: bool = False        # the failover grace was used up
    session: int | None = None  # the session it is bound to


AnyJob = Job | DelayedJob | RunningJob
