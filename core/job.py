"""A job in its states.

    state      meaning                                     held as
    (none)     not yet put, or ended for good              nothing
    WAITING    in its queue, can be handed out             Job
    RUNNING    handed out under an id, until its end       RunningJob

    operation or event        from       to         place in the queue      id
    Put                       (none)     WAITING    tail of its priority    -
    Get                       WAITING    RUNNING    -                       a new one
    Done                      RUNNING    (none)     -                       void
    Later                     RUNNING    WAITING    tail of its priority    void
    Return                    RUNNING    WAITING    its old place           void
    lease over, THEN LATER    RUNNING    WAITING    tail of its priority    void
    its session ends          RUNNING    WAITING    tail of its priority    void
    lease over, THEN DONE     RUNNING    (none)     -                       void
    Lead                      RUNNING    RUNNING    -                       kept; the lease may get longer, once

Every operation on a job in another state than its "from" is answered NotFound and changes nothing: a waiting job has no
id, so no operation can name it.

The place of a waiting job is the pair (rank, seq). `rank` is the negated priority, so that the smallest pair is the
first to be handed out; `seq` is a number no other job of the cluster has: a new one puts the job at the tail, the old
one puts it back to where it was. A running job keeps its seq for that.

Both types are out of the garbage collector's sight (gc=False), so that a million jobs cost it nothing. That is safe
because they refer to strings, bytes and numbers only and so cannot be part of a cycle.
"""

from __future__ import annotations

from msgspec import Struct

from core.job_operations import Then


class Job(Struct, order=True, frozen=True, gc=False):
    """A waiting job. Jobs sort by their place, by rank, then by seq. Seqs differ, so no later field is compared."""

    rank: int               # -priority
    seq: int
    queue: str
    data: bytes
    item: str | None


class RunningJob(Struct, gc=False):
    """A job handed out. Only its deadline changes (the failover grace), and its session when it is no longer bound."""

    id: int
    queue: str
    priority: int
    data: bytes
    item: str | None
    deadline_ms: int | None     # replicated time at which the lease ends; None: no limit
    then: Then                  # LATER or DONE: what follows the deadline
    seq: int                    # its old place
    graced: bool = False        # the failover grace was used up
    session: int | None = None  # the session it is bound to
