"""The operations on queues, on groups (spec/fair 7), and on the settings of the cluster (spec/state-machine 10)."""

from __future__ import annotations

from enum import IntEnum

from sockpqd.core.ops.jobs import Policy, Then
from sockpqd.core.ops.logged import Logged


class Order(IntEnum):
    """The order of jobs of equal priority."""

    FIFO = 0        # as they came
    TIME = 1        # by the time at which they became active


class GroupBy(IntEnum):
    """The source of the group of each job of a queue (spec/fair 7)."""

    PUT = 0         # the GROUP of its PUT
    USER = 1        # who puts it
    HEAD = 2        # the value of one of its headers
    ITEM = 3


class Sched(IntEnum):
    """The choice of the job that a queue hands out next."""

    FIFO = 0            # the first by priority, then in the order of the queue
    FAIR = 1            # one of the group that is next by the time used (spec/fair 4)
    GROUPS = 2          # the first one of all groups that are open (spec/fair 7)


class Overflow(IntEnum):
    """The reaction of a queue that has reached its CAPACITY to a Put."""

    REFUSE = 0          # it is refused
    DROPOLDEST = 1      # it takes the place of a waiting job


class JobState(IntEnum):
    """The states of jobs, as clients see them."""

    READY = 0
    DELAYED = 1
    RUNNING = 2
    DEAD = 3
    BURIED = 4          # in its own queue, by BURY .. HERE


class Purged(IntEnum):
    """The jobs that QUEUE PURGE removes; the first ones are states of jobs."""

    READY = 0
    DELAYED = 1
    RUNNING = 2
    DEAD = 3
    BURIED = 4
    ALL = 5             # all but the running ones, and the records
    OWN = 6             # READY, DELAYED and BURIED ones, then running ones: all that lie in the queue itself
    ENDED = 7           # the records


class EndState(IntEnum):
    """The end of a job of which there is a record (RETAIN); the numbers continue those of JobState."""

    DONE = 5
    CANCELLED = 6       # deleted, or dropped for a newer one
    EXPIRED = 7         # not taken within its TTL


class QueueChange(Logged, frozen=True):
    """New values for settings of a queue; None: unchanged.

    0 removes a limit: `expire_ms`, `tries`, `limit`, `item_limit`, `capacity`, `data_bytes_max`, `batch`, `keep_ms`,
    `ttl_ms`, `idle_ms`, `alarm`, `rate`, `backoff_ms`, `group_limit`, `group_rate`.
    """

    expire_ms: int | None = None        # the lease of hand-outs without EXPIRE, and what follows it
    then: Then = Then.DEFAULT           # read with expire_ms only
    order: Order | None = None
    tries: int | None = None
    dead: str | None = None             # read with tries only: the dead queue, None: the queue's name and "_dead"
    weight: int | None = None
    limit: int | None = None
    item_limit: int | None = None
    capacity: int | None = None
    data_bytes_max: int | None = None
    batch: int | None = None
    portion: int | None = None
    keep_ms: int | None = None
    ttl_ms: int | None = None           # of jobs that are put without a TTL
    idle_ms: int | None = None          # the queue is deleted when it was not used for this long
    overflow: Overflow | None = None
    alarm: int | None = None            # DEPTH is sent when this many jobs wait, and when no more than half do again
    rate: int | None = None             # of a pulse of its own
    per_ms: int | None = None           # read with rate only
    pulse: str | None = None            # another pulse, "": none
    pulses_max: int | None = None       # there may be as many; None: any number
    sched: Sched | None = None
    spread: bool = False                # read with rate only: hand-outs are at even distances
    backoff_ms: int | None = None       # how long a job is DELAYED after the first attempt that fails
    backoff_max_ms: int | None = None   # read with backoff_ms only: after any
    error_bytes: int | None = None      # of the texts that workers left with the jobs in the queue; 0 keeps none
    dedup_max: int | None = None        # keys of DEDUP that are remembered at a time; 0: none
    retain_ms: int | None = None        # for which records of ended jobs are kept,
    retain_max: int | None = None       # how many at most,
    retain_bytes: int | None = None     # and how many bytes of them; 0 keeps none
    numbered: bool | None = None        # give each job a number that is put or moved into the queue
    group_limit: int | None = None      # RUNNING jobs of one group in the queue
    group_rate: int | None = None       # hand-outs to one group
    group_per_ms: int | None = None     # in this time; read with group_rate only
    group_by: GroupBy | None = None
    group_header: str | None = None     # the name of the header; read with group_by only
    group_order: bool | None = None     # a job of a group waits for those before it that are RUNNING


class ConfigureQueue(Logged, tag=36, frozen=True):
    """QUEUE CONFIG with settings, even of a queue that has none yet; QUEUE CREATE, with `create`.

    `session`, with `create` only: the queue is deleted when this session ends (BOUND).

    Replies: Accepted; QueueNotEmpty (another `order` or `item_limit` would move more than 2,000 waiting jobs, another
    choice by groups would concern more than 10,000 of them, or GROUPORDER as many RUNNING jobs), TooManyQueues; for
    `rate` and `pulse` also BadSetting, PulseNotFound, TooManyPulses; with `create` QueueExists (it has settings or an
    unfinished job), SessionNotFound.
    """

    queue: str
    change: QueueChange
    create: bool = False
    session: int | None = None


class DeleteQueue(Logged, tag=37, frozen=True):
    """QUEUE DELETE: remove the settings and, with `force`, all jobs, including running ones.

    `leave`, with `force` only: its dead jobs stay, as if they had been put where they are. `idle_since_ms`: only if its
    IDLE time has passed; the leader saw no use of it since then (replicated time), and the state has recorded none.

    Replies: Accepted, QueueNotFound, QueueNotEmpty; Removed, if there are more jobs than a portion: then the queue
    still exists, with the others.
    """

    queue: str
    force: bool
    leave: bool = False
    idle_since_ms: int | None = None


class PurgeQueue(Logged, tag=38, frozen=True):
    """QUEUE PURGE: remove these jobs of the queue, at most a portion.

    `before_seq`: only jobs put before (Machine.next_seq; None: all); `before_id`: of the running ones only those handed
    out before (Machine.next_id). Replies: Removed, QueueNotFound.
    """

    queue: str
    purged: Purged
    before_seq: int | None = None
    before_id: int | None = None


class MoveJobs(Logged, tag=110, frozen=True):
    """QUEUE MOVE (spec/state-machine 9.5): put READY jobs of `queue` into `to`, in their order, a portion at most.

    `count`: the maximum number of jobs to move. `died`: only dead jobs that came from this queue. `left`: the maximum
    number of jobs to inspect; None: the current number, so that a queue that is being filled does not keep the command
    going. `behind`: look for dead jobs after this place (rank, when, seq). Both come from the reply to the previous
    portion. `seq`: move the one READY job at this place of `queue`, and no other.

    Replies: Moved; QueueNotFound, of the first portion; with `seq` NotFound, ItemCancelled and the refusals of a Put.
    """

    queue: str
    to: str
    count: int
    died: str | None = None
    left: int | None = None
    behind: tuple[int, int, int] | None = None
    seq: int | None = None


class PauseQueue(Logged, tag=39, frozen=True):
    """QUEUE PAUSE: `incoming`: Puts are refused; `outgoing`: Gets see it empty. QUEUE RESUME, with neither: both end.

    `pause_ms` (OUT FOR): Gets see it empty for this long from now on; 0 ends that. It replaces any other `outgoing`
    pause, and does not affect Puts. A queue without settings has none after the pause either.

    Replies: Accepted; TooManyQueues of a pause, QueueNotFound of RESUME.
    """

    queue: str
    incoming: bool
    outgoing: bool
    pause_ms: int | None = None

    @property
    def resumes(self) -> bool:
        """True if it ends the pauses of the queue."""
        return not self.incoming and not self.outgoing and self.pause_ms is None


class FairChange(Logged, frozen=True):
    """New values for settings of fair shares (spec/fair 6); None: unchanged."""

    thresholds_s: tuple[int, ...] | None = None
    cap_ms: int | None = None
    multiplier: int | None = None
    keep_ms: int | None = None


class Configure(Logged, tag=41, frozen=True):
    """CONFIG and SCHED CONFIG with a setting; None: unchanged. Replies: Accepted; BadSetting of `fair`, and no change.
    """

    expire_default: Then | None = None
    autocreate: bool | None = None
    policy: Policy | None = None
    grace_ms: int | None = None         # the failover grace of later leaderships, instead of their own configuration
    session_ttl_ms: int | None = None   # the TTL of sessions whose client names none
    fast_empty: bool | None = None      # a Get that finds nothing is answered without the log
    retained_bytes: int | None = None   # of the records of ended jobs in all queues
    fair: FairChange | None = None


class ConfigureGroup(Logged, tag=100, frozen=True):
    """GROUP CONFIG with settings, GROUP PAUSE and RESUME; None: unchanged. 0 removes a limit or a rate.

    `paused`: hand out no jobs of the group, for `pause_ms` (None: until it is resumed), in place of any other pause;
    False, which stands alone: end the pause, and the SLEEP of the group in all queues (spec/fair 7), at most a portion
    of them.

    Replies: Accepted, TooManyGroups; GroupNotFound, of a group that is to be resumed and is neither paused nor asleep.
    """

    group: str
    limit: int | None = None        # RUNNING jobs of the group
    rate: int | None = None         # hand-outs of its jobs
    per_ms: int | None = None       # in this time; read with rate only
    weight: int | None = None       # its share is as many times greater
    paused: bool | None = None
    pause_ms: int | None = None     # read with paused only


class DeleteGroup(Logged, tag=103, frozen=True):
    """GROUP DELETE: remove the settings of the group and its pause. Replies: Accepted; GroupNotFound if it has none."""

    group: str


OnQueues = ConfigureQueue | DeleteQueue | PurgeQueue | MoveJobs | PauseQueue | Configure
OnGroups = ConfigureGroup | DeleteGroup
