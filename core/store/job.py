"""A job in its states.

The table shows the new state of a job after each event, by its old state; an operation on a job in any other state is
refused and changes nothing. "+": at the tail of its priority; "=": at its old place; "dead": READY at the tail of a
dead queue.

    event                               (none)    DELAYED     READY             RUNNING
    ----------------------------------  --------  ----------  ----------------  ----------------------
    Put                                 READY +
    Put for later, or after items       DELAYED
    Put that replaces the one of a key            READY =     READY =
      the same for later                          DELAYED     DELAYED
    its time comes                                READY +
    Get                                                       RUNNING, new id
    Get by number                                 RUNNING     RUNNING, new id
    Done; lease over, THEN DONE                                                 (none)
      of a periodic job                                                         DELAYED
    Later; lease over, THEN LATER                                               READY +
      for later; in a queue with BACKOFF                                        DELAYED
      to its old place                                                          READY =
      after its last attempt                                                    dead
    its session ends                                                            READY +, or dead
      because it was not used, BACKOFF                                          DELAYED
    Return                                                                      READY =
    BURY; lease over, THEN DEAD                                                 dead
    BURY .. HERE                                                                BURIED
    Kick                                                      READY +, from
                                                              the dead queue
    Kick here                                     READY +
    Move                                                                        READY +, other queue
    Change                                        DELAYED     READY             RUNNING, same id
      for later                                   DELAYED     DELAYED           RUNNING, same id
      for now                                     READY +     READY             RUNNING, same id
    Touch                                                                       RUNNING, same id
    Lead, Resume                                                                RUNNING, longer lease
    Delete; its queue is deleted                  (none)      (none)            (none)
    Purge                                         (none)      (none)
    TTL over                                                  (none)

BURIED jobs are not in the table: such a job stays in its own queue, in the order of burial and not counted as
unfinished, until a Kick here (READY +), a Get by its number (RUNNING), a Change of its data, or its end. It frees its
key.

A job is held as a DelayedJob, a Job (READY), a RunningJob or a BuriedJob. Only a RUNNING job has an id, which is void
when it leaves that state; operations name other jobs by their keys. A dead job is READY like any other, but in another
queue, and remembers the queue in which it died. Return and a yielded Later do not count as attempts.

The place of a READY job is (rank, when, seq). `rank` is the negated priority, so that the smallest place is handed out
first; `when` is the time at which the job became active in a queue with ORDER TIME, otherwise 0; `seq` is a number that
no other job of the cluster has: a new one puts the job at the tail, the old one back where it was. A running job keeps
`when` and `seq` for that. The seqs of an entry begin at its time times 2^SEQ_BITS, so a seq also shows since when the
job has had its place.

A numbered job has the seq of its first place as its number. One put with NUMBER keeps that place for life: where the
table says "+" or "dead", it comes to the place of that seq, and its `when` is the time of its number. One with a number
by the setting of its queue (NUMBERED) floats: it gets new places as a job without a number does, and when it has left
its first one, the number is kept in its counts.

None of these types is tracked by the garbage collector (gc=False), so a million jobs cost it nothing. That is safe
because they refer to strings, bytes (or a Body of them) and numbers only and cannot be part of a cycle.

A new attribute that few jobs have goes into Extras here and into ExtrasRow (core/snapshot/frames.py), and follows the
job through all of its states.
"""

from __future__ import annotations

from itertools import islice
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.core.limits import SEQ_BITS, SHARED_EXTRAS_MAX
from sockpqd.core.ops.jobs import Then, Until
from sockpqd.core.store.body import Data, bytes_of

NEVER_MS = (1 << 63) - 1        # the due time of a job that waits for items


class JobCounts(Struct, gc=False, frozen=True, omit_defaults=True):
    """The history of a numbered job in counts and times; its number gives the time of its creation.

    `number`: None if the job keeps the place of its number for life. Otherwise it floats: 0 while the job has its first
    place, whose seq is the number, and the number itself later.
    """

    reserves: int = 0       # hand-outs, but those undone
    timeouts: int = 0       # leases that ended
    releases: int = 0       # by Later
    buries: int = 0
    kicks: int = 0
    delay_ms: int = 0       # for which it was DELAYED by its Put or its last Later
    died_ms: int = 0        # its last death or burial, until a kick or a Move
    first_ms: int | None = None     # its first hand-out that has ended,
    last_ms: int | None = None      # and its last one
    number: int | None = None


class Extras(Struct, gc=False, frozen=True, omit_defaults=True):
    """Attributes that most jobs lack. In pages, those with default values are omitted."""

    key: str | None = None
    tries: int | None = None            # attempts, when its Put set a limit; 0: unlimited
    ttl_ms: int | None = None           # how long it may be READY
    expires_at_ms: int | None = None    # when its TTL ends, while it is READY
    every_ms: int | None = None         # the period of a periodic job
    origin: str | None = None           # of a dead job: the queue it came from
    after: tuple[str, ...] = ()         # of a DELAYED job: items that must be finished first
    ready_ms: int | None = None         # when it last became READY at an old place; a newer seq overrules it
    reason: str | None = None           # why it was put back or buried last, as given by its worker
    group: str | None = None            # for fair shares: PUT .. GROUP
    body: int | None = None             # the number of a body that it shares with jobs of other queues
    lease_ms: int | None = None         # of hand-outs that name none; 0: no limit
    counts: JobCounts | None = None     # of a numbered job
    head: int = 0                       # bytes of its headers, with which its data begin (headers.py)
    error: int | None = None            # the number of the text that its worker left (errors.py); it may be dropped
    until: Until = Until.DONE           # for what of these items it waits (`after`)


NO_EXTRAS = Extras()
NEW_COUNTS = JobCounts()
FLOATING = JobCounts(number=0)
ONCE_HANDED_OUT = JobCounts(reserves=1)
FLOATING_ONCE_HANDED_OUT = JobCounts(reserves=1, number=0)

# Shared immutable extras, by their values. Emptied when there are too many.
_shared: dict[tuple[int | str | None, ...], Extras] = {}
_handed_out: dict[Extras, Extras] = {}      # of these that are numbered, those after the first hand-out


def extras_of_many(
    tries: int | None, ttl_ms: int | None, every_ms: int | None, group: str | None, lease_ms: int | None,
    counts: JobCounts | None = None, head: int = 0,
) -> Extras:
    """Return the extras of a job with only these attributes, which many jobs have in common.

    They share one object: the jobs of a group take a third less memory. `counts`: None, NEW_COUNTS or FLOATING.
    """
    kind = tries, ttl_ms, every_ms, group, lease_ms, None if counts is None else counts is FLOATING, head
    extras = _shared.get(kind)
    if extras is None:
        if len(_shared) >= SHARED_EXTRAS_MAX:
            _shared.clear()
            _handed_out.clear()
        extras = _shared[kind] = Extras(
            tries=tries, ttl_ms=ttl_ms, every_ms=every_ms, group=group, lease_ms=lease_ms, counts=counts, head=head,
        )
    return extras


def of_many(extras: Extras) -> Extras:
    """Return the shared object equal to these extras if they are of a common kind; otherwise the extras themselves."""
    counts = None
    if extras.counts is not None:
        counts = NEW_COUNTS if extras.counts == NEW_COUNTS else FLOATING if extras.counts == FLOATING else None
    made = extras_of_many(
        extras.tries, extras.ttl_ms, extras.every_ms, extras.group, extras.lease_ms, counts, extras.head,
    )
    return made if extras == made else extras


def with_error(extras: Extras | None, number: int | None) -> Extras | None:
    """Return the extras of a job with the error text of this number (errors.py) instead of any other; None: no text."""
    if (None if extras is None else extras.error) == number:
        return extras
    extras = replace(extras or Extras(), error=number)
    return None if extras == Extras() else extras


def without_body(extras: Extras | None) -> Extras | None:
    """Return the extras of a job after its shared data were replaced."""
    if extras is None or extras.body is None:
        return extras
    extras = replace(extras, body=None)
    return None if extras == Extras() else extras


def with_head(extras: Extras | None, head: int) -> Extras | None:
    """Return the extras of a job whose headers now have this length."""
    if extras is None:
        return extras_of_many(None, None, None, None, None, head=head) if head else None
    if extras.head == head:
        return extras
    extras = replace(extras, head=head)
    return None if extras == NO_EXTRAS else of_many(extras)


def is_plain(extras: Extras | None) -> bool:
    """Return whether these extras consist of nothing but headers."""
    return extras is None or (extras.head > 0 and extras == with_head(None, extras.head))


def is_numbered(extras: Extras | None) -> bool:
    """Return whether a job with these extras has a number, by which it is found."""
    return extras is not None and extras.counts is not None


def keeps_place(extras: Extras | None) -> bool:
    """Return whether a job with these extras has the place of its number for life."""
    return extras is not None and extras.counts is not None and extras.counts.number is None


def number_of(job: AnyJob) -> int | None:
    """Return the number of a job; None if it has none."""
    extras = job.extras
    return None if extras is None or extras.counts is None else extras.counts.number or job.seq


def with_number(extras: Extras | None, seq: int) -> Extras | None:
    """Return the extras of a job that leaves the place with this seq: one that floats keeps its number."""
    if extras is None or extras.counts is None or extras.counts.number != 0:
        return extras
    return replace(extras, counts=replace(extras.counts, number=seq))


def time_in_order(job: Job, active_ms: int) -> int:
    """Return the time from which the job is active under ORDER TIME: `active_ms`, or the time of its kept place."""
    return job.seq >> SEQ_BITS if keeps_place(job.extras) else active_ms


def counted(
    extras: Extras | None, *, reserves: int = 0, timeouts: int = 0, releases: int = 0, buries: int = 0, kicks: int = 0,
    died_ms: int | None = None,
) -> Extras | None:
    """Return the extras of a job with these counts added, if it is numbered. `died_ms`: replaces the old one."""
    if extras is None or extras.counts is None:
        return extras
    old = extras.counts
    counts = JobCounts(
        old.reserves + reserves, old.timeouts + timeouts, old.releases + releases, old.buries + buries,
        old.kicks + kicks, old.delay_ms, old.died_ms if died_ms is None else died_ms, old.first_ms, old.last_ms,
        old.number,
    )
    return replace(extras, counts=counts)


def handed_out(extras: Extras | None) -> Extras | None:
    """Return the extras of a job that is handed out once more; at a first hand-out they are a shared object."""
    if extras is None or extras.counts is None:
        return extras
    if (extras.counts is not NEW_COUNTS and extras.counts is not FLOATING) or extras.key is not None:
        return counted(extras, reserves=1)
    after = _handed_out.get(extras)
    if after is None:
        if len(_handed_out) >= SHARED_EXTRAS_MAX:
            _handed_out.clear()
        once = ONCE_HANDED_OUT if extras.counts is NEW_COUNTS else FLOATING_ONCE_HANDED_OUT
        after = _handed_out[extras] = replace(extras, counts=once)
    return after


def delayed_by(extras: Extras | None, delay_ms: int) -> Extras | None:
    """Return the extras of a job that its Put or a Later delays by `delay_ms`, which only numbered jobs remember."""
    if extras is None or extras.counts is None or extras.counts.delay_ms == max(delay_ms, 0):
        return extras
    return replace(extras, counts=replace(extras.counts, delay_ms=max(delay_ms, 0)))


def after_attempt(job: RunningJob) -> Extras | None:
    """Return the extras of a job whose hand-out has ended; a numbered job remembers when it was handed out.

    A first hand-out thus needs no extras of its own while the job runs, and is forgotten if it is undone.
    """
    extras = job.extras
    if extras is None or extras.counts is None:
        return extras
    return replace(extras, counts=counts_after_attempt(extras.counts, job.started_ms))


def counts_after_attempt(counts: JobCounts, started_ms: int) -> JobCounts:
    """Return the counts of a job that was handed out at this time."""
    return replace(counts, first_ms=started_ms if counts.first_ms is None else counts.first_ms, last_ms=started_ms)


def expiring(extras: Extras | None, clock_ms: int | None) -> Extras | None:
    """Return the extras of a job READY since `clock_ms`; None: it is not READY, so its TTL has not started."""
    if extras is None:
        return None
    expires_at_ms = None if clock_ms is None or extras.ttl_ms is None else clock_ms + extras.ttl_ms
    return extras if extras.expires_at_ms == expires_at_ms else replace(extras, expires_at_ms=expires_at_ms)


class Job(Struct, order=True, frozen=True, gc=False, array_like=True):
    """A READY job. Jobs sort by their place: rank, when, seq. Seqs are unique, so no later field is compared.

    Pages hold it as an array of its fields (core/pages), which no other node and no other process reads.
    """

    rank: int               # -priority
    when: int
    seq: int
    queue: str
    data: Data
    item: str | None
    attempts: int           # how often it was handed out
    at_ms: int | None       # the time it was put for, if any
    extras: Extras | None

    def delayed(self, due_ms: int) -> DelayedJob:
        """Return the same job as a DELAYED one that becomes active at `due_ms`."""
        return DelayedJob(
            due_ms, self.seq, self.rank, self.queue, self.data, self.item, self.attempts, self.at_ms,
            expiring(self.extras, None),
        )


class DelayedJob(Struct, order=True, frozen=True, gc=False, array_like=True):
    """A DELAYED job. They sort by due time, then by seq; no later field is compared. Encoded as Job."""

    due_ms: int             # when it becomes active; NEVER_MS while it waits for items
    seq: int
    rank: int
    queue: str
    data: Data
    item: str | None
    attempts: int
    at_ms: int | None
    extras: Extras | None

    def ready(self, seq: int) -> Job:
        """Return the same job at this place among the READY ones."""
        extras = self.extras if seq == self.seq else with_number(self.extras, self.seq)
        return Job(self.rank, 0, seq, self.queue, self.data, self.item, self.attempts, self.at_ms, extras)


class RunningJob(Struct, gc=False):
    """A job that is handed out. Only its deadline changes (failover grace), and its session when it is unbound.

    Any other change makes a new object under the same id.
    """

    id: int
    queue: str
    priority: int
    data: Data
    item: str | None
    deadline_ms: int | None     # replicated time at which the lease ends; None: no limit
    then: Then                  # LATER, DONE or DEAD: what follows the deadline
    when: int                   # its old place
    seq: int
    attempts: int               # including this hand-out
    at_ms: int | None
    extras: Extras | None
    lease_ms: int | None        # length of the lease as it was granted, for TOUCH
    graced: bool = False        # the failover grace is used up
    session: int | None = None  # the session it is bound to
    pulse: str | None = None    # the pulse that granted the hand-out
    since_ms: int = 0           # its hand-out, or the last charge for it, since FAIR has been in use
    progress: int | None = None     # how many per cent of its work are done, as its worker last reported
    started_ms: int = 0         # of a numbered job: its hand-out

    def ready(self, seq: int, attempts: int, extras: Extras | None) -> Job:
        """Return the same job at this place among the READY ones of its priority."""
        extras = extras if seq == self.seq else with_number(extras, self.seq)
        return Job(-self.priority, 0, seq, self.queue, self.data, self.item, attempts, self.at_ms, extras)


class HasTaken(Protocol):
    """A queue or a session: it has the ids of its running jobs, in rising order unless `disordered`."""

    taken: dict[int, None]
    disordered: bool


def first_taken(owner: HasTaken, count: int) -> list[int]:
    """Return the ids of the first `count` running jobs of a queue or a session, in rising order."""
    if owner.disordered:
        owner.taken = dict.fromkeys(sorted(owner.taken))
        owner.disordered = False
    return list(islice(owner.taken, count))


class BuriedJob(Struct, order=True, frozen=True, gc=False):
    """A BURIED job. They sort by their burial; no later field is compared."""

    burial: int             # a number that no other burial of the cluster has
    seq: int
    rank: int
    queue: str
    data: Data
    item: str | None
    attempts: int
    at_ms: int | None
    extras: Extras | None

    def ready(self, seq: int, attempts: int, at_ms: int | None, extras: Extras | None) -> Job:
        """Return the same job at this place among the READY ones of its priority."""
        extras = extras if seq == self.seq else with_number(extras, self.seq)
        return Job(self.rank, 0, seq, self.queue, self.data, self.item, attempts, at_ms, extras)


AnyJob = Job | DelayedJob | RunningJob | BuriedJob


def head_of(job: AnyJob) -> int:
    """Return the length of the headers at the start of the job's data."""
    return 0 if job.extras is None else job.extras.head


def group_of(job: AnyJob) -> str:
    """Return the group of a job: the GROUP of its PUT, or else the name of its queue."""
    extras = job.extras
    return job.queue if extras is None or extras.group is None else extras.group


def body_of(job: AnyJob) -> bytes:
    """Return the data of a job without its headers, from memory or disk. Raises PageLost."""
    head = head_of(job)
    return bytes_of(job.data)[head:] if head else bytes_of(job.data)
