"""The operations on jobs, for the commands of workers and producers.

A plain PUT, GET, DONE or LATER has its own operation, as small as possible. Options are fields of other operations; an
option added by a later release is the last field and has a feature level (core/levels.py).
"""

from __future__ import annotations

from enum import IntEnum

from msgspec.structs import replace

from sockpqd.core.ops.logged import Logged


class Then(IntEnum):
    """The action at the end of a running job's lease (GET .. EXPIRE .. THEN)."""

    DEFAULT = 0     # as the cluster's expire_default says at hand-out
    LATER = 1       # back to the end of its queue
    DONE = 2        # removed
    DEAD = 3        # to the dead queue (spec/state-machine 8.2)


class Until(IntEnum):
    """The event of an item for which a job waits (PUT .. AFTER .. WHEN)."""

    DONE = 0        # it has no unfinished job
    END = 1         # it has none but DEAD and BURIED jobs
    FAILED = 2      # it has a DEAD or BURIED job


class Put(Logged, tag=1, frozen=True):
    """Add a job. `new_item`: the machine generates an item name (PUT .. NEW), and `item` is None."""

    queue: str
    priority: int
    data: bytes
    item: str | None = None
    new_item: bool = False


class Get(Logged, tag=2, frozen=True):
    """Hand out one job of the named queues, or of any queue if `queues` is None.

    `expire_ms`: the length of the lease, 0: no limit; None: no EXPIRE, so the queue's default applies. `item`: only
    jobs of this item count. `item_of_put`: only jobs of the item of the preceding Put in the same entry; this is the
    hand-out of a PUT .. WAIT, which finds nothing if the Put was refused, and whose item may have no name before (NEW).
    `session`: bind the job to this session, so that it is put back as by LATER when the session ends (GET .. BOUND).
    """

    queues: tuple[str, ...] | None
    expire_ms: int | None = None
    then: Then = Then.DEFAULT
    item: str | None = None
    item_of_put: bool = False
    session: int | None = None


class Done(Logged, tag=3, frozen=True):
    """Finish and remove the running job `id`."""

    id: int


class Later(Logged, tag=4, frozen=True):
    """Put the running job `id` back at the end of its queue."""

    id: int


class Return(Logged, tag=5, frozen=True):
    """Undo a hand-out that could not be delivered: the job goes back to its old place (spec/state-machine 2.4)."""

    id: int


class OnDup(IntEnum):
    """The effect of a Put when an unfinished job of its queue has its key (PUT .. KEY .. ONDUP)."""

    FAIL = 0        # nothing: the reply is JobExists
    IGNORE = 1      # nothing: the reply is JobIgnored or IgnoredNumber
    REPLACE = 2     # it replaces the data, priority and time of a job that does not run


class Policy(IntEnum):
    """The policy by which one of several queues is chosen (GET .. BY, spec/state-machine 4.1)."""

    RANDOM = 0      # each one that has a job is equally likely
    PRIORITY = 1    # the one whose first job has the highest priority; among equals in turn
    WEIGHT = 2      # as likely as its WEIGHT says
    RR = 3          # each in turn
    ORDER = 4       # the first in the Get; without names as SORTED
    SORTED = 5      # the first by name
    OLDEST = 6      # the one whose first job has been READY for longest
    FAIR = 7        # of the group that is next by the time used (spec/fair 4); it chooses the job as well
    PLACE = 8       # the one whose first job has the least (-priority, seq); without names as SORTED


class Due(Logged, frozen=True):
    """The time at which a job becomes active: `delay_ms` from now, or at `at_ms` Unix time, which may be past."""

    delay_ms: int = 0
    at_ms: int | None = None


class ToQueues(Logged, tag=0, frozen=True):
    """The queues into which a Put goes: all of them, or none."""

    queues: tuple[str, ...]


class ToTopic(Logged, tag=1, frozen=True):
    """The queues bound to `topic` with patterns that match `route`: the Put goes into all of them, or none."""

    topic: str
    route: str


class Dedup(Logged, frozen=True):
    """The key by which a queue remembers a Put, and how long it is remembered."""

    key: str
    duration_ms: int


class PutWith(Logged, tag=22, frozen=True):
    """A Put with options; None: without this option.

    `ttl_ms`: the job is removed if it is not handed out within this time after it becomes active; None: the TTL of its
    queue, DURATION_MS_MAX: none. `every_ms`: a Done makes it active again at the next multiple. `after`: it stays
    DELAYED until the event `until` has happened to each of these items, or with FAILED to one of them. `tries`: it is
    dead after this many attempts, instead of the queue's number. `group`: see spec/fair 1.

    `number`: the job gets a number, derived from its first place, which it keeps for life. `lease_ms`:
    the lease of hand-outs without EXPIRE (0: no limit), instead of the queue's. `targets`: it goes into these queues
    instead of `put.queue`, if there is no NEW and no duplicate; its number and lease are not read.

    Replies: as for Put, but StoredNumber instead of Stored if there is a number; with `targets` Spread, or the refusal
    of the first queue that refuses.

    `head`: the length of the headers at the start of the data. `dedup`: a later Put with this key in the same queue is
    not executed for this time, but answered JobIgnored or IgnoredNumber. `user`: the user that puts the job, if a queue
    may need it (GroupBy.USER).
    """

    put: Put
    when: Due | None = None
    ttl_ms: int | None = None
    every_ms: int | None = None
    after: tuple[str, ...] = ()
    key: str | None = None
    on_dup: OnDup = OnDup.FAIL
    tries: int | None = None
    group: str | None = None
    number: bool = False
    lease_ms: int | None = None
    targets: ToQueues | ToTopic | None = None
    head: int = 0
    dedup: Dedup | None = None
    until: Until = Until.DONE
    user: str | None = None


class InTurn(Logged, frozen=True):
    """Choice by the turns of a connection (spec/state-machine 4.3); the names in the Get are in the order of turns.

    `after`: without names, the queue of the connection's last job by turns; the next one by name is tried first.
    """

    after: str | None = None


class Allowance(Logged, frozen=True):
    """The number of free grants of this pulse."""

    pulse: str
    count: int


class GetWith(Logged, tag=23, frozen=True):
    """A Get with options: up to `count` jobs, a `policy`, attempt data.

    With PRIORITY the order of `get.queues`, if any, decides among equals, otherwise chance. `turn`: by RR or PRIORITY;
    a queue that has given a job moves to the end for the next job of the same operation; `Handed.turned` marks the jobs
    that advance the cycle. `free`: jobs may also come from queues with a rate, one for each free grant of these pulses
    (spec/pulse 5.1); to any other Get such queues are empty.

    `number`: the job with this number, whether READY, DELAYED or BURIED, regardless of pauses and limits; of the other
    options only `meta`, `head`, `life`, and the lease and the session of `get`, are read. A job whose time is in the
    future counts as due.

    Replies: Empty, or HandedMany with `count`, Handed without; SessionNotFound; with `number` NotFound and JobRunning.
    """

    get: Get
    count: int | None = None
    policy: Policy | None = None        # None: as the cluster's setting says
    meta: bool = False                  # Handed.meta is filled in
    turn: InTurn | None = None
    free: tuple[Allowance, ...] | None = None
    number: int | None = None
    head: bool = False                  # Handed.head is filled in, and its data begin with the headers
    life: bool = False                  # Handed.life is filled in, if the job has a number


class How(IntEnum):
    """The ways in which End can end a hand-out."""

    DONE = 0        # the job is removed
    LATER = 1       # it goes back to its queue
    BURY = 2        # it is dead (spec/state-machine 8.2)


class Feedback(IntEnum):
    """The outcome of an action that a grant of a pulse allowed (PULSE RESULT; options of DONE and LATER)."""

    OK = 0
    FAIL = 1        # an error that says nothing about the rate
    SLOW = 2        # the rate was too high
    SLEEP = 3       # no grants for a while


class End(Logged, tag=24, frozen=True):
    """DONE and LATER with options or of several jobs, and BURY.

    `ids`: the running job, or several, each of which ends in this way. With LATER, `when`: the job becomes active at
    that time; `priority`: its new one; `first`: it returns to its old place; `yielded`: the hand-out does not count as
    an attempt. With DONE, `last`: even a periodic job ends. With BURY, `here`: the job becomes BURIED in its own queue,
    with this `priority` if given. `reason`: of LATER and BURY; it is kept with the job. `ran_ms`: the running time for
    which its group is charged. `feedback`: for the pulse that granted the hand-out, instead of FAIL for a BURY and OK
    otherwise; `sleep_ms` with SLEEP only. `text`, of one job: the ERROR of LATER and BURY, in place of an earlier one;
    the RESULT of DONE, for its record. `dropped`: the client sent a text, but the leader had no room for it.

    Replies: as for Done and Later, in a DataDropped with `dropped`; DataTooLarge for a RESULT; of BURY Finished (of the
    queue), NotFound; of several jobs Results, with a reply for each.
    """

    ids: int | tuple[int, ...]
    how: How
    when: Due | None = None
    priority: int | None = None
    first: bool = False
    yielded: bool = False
    last: bool = False
    here: bool = False
    reason: str | None = None
    ran_ms: int | None = None
    feedback: Feedback | None = None
    sleep_ms: int = 0
    text: bytes | None = None
    dropped: bool = False

    @property
    def id(self) -> int:
        """The id of the job, if there is only one."""
        assert isinstance(self.ids, int)
        return self.ids


class Touch(Logged, tag=28, frozen=True):
    """TOUCH (spec/state-machine 3.2): restart the lease, for `expire_ms`.

    `ids`: the running job, or several. `expire_ms`: 0: no limit; None: as long as at hand-out. `then` needs
    `expire_ms`. `ran_ms`: the running time for which the group is charged. `progress`: the percentage of the work that
    is done. Replies: Leased, NotFound; of several jobs Results, with a reply for each.
    """

    ids: int | tuple[int, ...]
    expire_ms: int | None = None
    then: Then = Then.DEFAULT
    ran_ms: int | None = None
    progress: int | None = None

    @property
    def id(self) -> int:
        """The id of the job, if there is only one."""
        assert isinstance(self.ids, int)
        return self.ids


class Selector(Logged, tag=0, frozen=True):
    """Selects a job: the running one of this `id`, or if that is 0 the one of `queue` that has `key`."""

    id: int = 0
    queue: str = ""
    key: str = ""


class Place(Logged, tag=1, frozen=True):
    """Selects the READY or DELAYED job of `queue` whose place has this number (spec/state-machine 7.4)."""

    queue: str
    seq: int


class Number(Logged, tag=2, frozen=True):
    """Selects a numbered job in any state."""

    number: int


AnySelector = Selector | Place | Number


class Change(Logged, tag=29, frozen=True):
    """CHANGE (spec/state-machine 7.3); None: unchanged. `no_item`: remove its item. `data`: without headers.

    A running job can be changed by id or number only, otherwise the reply is JobRunning; its new `when` takes effect
    when it is put back.
    """

    selector: AnySelector
    priority: int | None = None
    when: Due | None = None
    item: str | None = None
    no_item: bool = False
    data: bytes | None = None
    headers: bytes | None = None


class Delete(Logged, tag=30, frozen=True):
    """DELETE (spec/state-machine 7.3). `unless_running`: only a job that is not running. `own`: sent by its holder.

    `ended`: the record of a job that has ended.

    Replies: Finished, NotFound, JobRunning (by key, or `unless_running`).
    """

    selector: AnySelector
    unless_running: bool = False
    own: bool = False
    ended: bool = False                 # with a Number only


class Move(Logged, tag=31, frozen=True):
    """MOVE (spec/state-machine 9.1): finish the running job here and put it into `queue`, with its item, key and tries.

    `data`: without headers. None leaves the data, or the `headers`, unchanged.

    Replies: Finished (of the old queue; never of the item), NotFound, and the refusals of a Put.
    """

    id: int
    queue: str
    priority: int | None = None
    when: Due | None = None
    data: bytes | None = None
    headers: bytes | None = None


class Kick(Logged, tag=33, frozen=True):
    """KICK (spec/state-machine 8.3): put up to `count` dead jobs that came from `queue` back there.

    `here`: instead, make the first `count` BURIED jobs of the queue READY or, if there are none, the first DELAYED
    ones, except jobs that wait for items. `buried`: which of the two, as decided by the previous portion. `selector`:
    make this BURIED or DELAYED job READY, and no other, or put the DEAD one at this place back; `ended`: the selected
    job has ended. One operation moves a portion at most (PORTION_MAX, PORTION_BYTES_MAX).

    Replies: Removed (with `buried` if `here`); NotFound, with a `selector`.
    """

    queue: str
    count: int
    here: bool = False
    buried: bool | None = None
    selector: Number | Place | None = None
    ended: bool = False


class HoldThen(IntEnum):
    """The action at the end of the hold of an item (ITEM HOLD .. EXPIRE .. THEN)."""

    CANCEL = 0
    RELEASE = 1


class HoldItem(Logged, tag=116, frozen=True):
    """ITEM HOLD: the item does not end before it is released, or `expire_ms` have passed and `then` is executed.

    It replaces the hold that the item has. `item`: None: the machine generates a name (NEW); `user`: the user that
    asked for it, "" where no users are required. ITEM RELEASE, with `expire_ms` None: end the hold of the item.

    Replies: Accepted; Stored, with the name of a new item; TooManyHolds; of RELEASE Finished, ItemNotHeld.
    """

    item: str | None
    expire_ms: int | None
    then: HoldThen = HoldThen.CANCEL
    user: str = ""


JobPut = Put | PutWith       # what puts jobs
Atomic = JobPut | Done | Later | End | Touch | Move | Change | Delete | Kick | HoldItem


AwaitSelector = Selector | Number


class RetryItem(Logged, tag=115, frozen=True):
    """ITEM RETRY: kick the DEAD jobs of the item, then its BURIED ones, a portion at most.

    `left`: the maximum number of jobs, as replied to the previous portion; None: the current number, so that jobs that
    die in the meantime do not keep the command going.

    Replies: Moved (to their queues; `left`: repeat the operation for this many); ItemNotFound, of the first portion.
    """

    item: str
    left: int | None = None


class CancelItem(Logged, tag=118, frozen=True):
    """ITEM CANCEL: remove the jobs of the item, and jobs waiting for it to be done. `reason`: for records and workers.

    Replies: Removed (how many jobs it has now), ItemNotFound.
    """

    item: str
    reason: str | None = None


class Await(Logged, tag=91, frozen=True):
    """AWAIT (spec/state-machine 10.6): wait for the end of a job, given by number, or by key if it is unfinished.

    If it has not ended, the entry that ends it reports this among its effects, on nodes that watch it
    (Machine.keep_watch). Replies: JobAwaited, JobEnded, NotFound.
    """

    selector: AwaitSelector


class Batch(Logged, tag=34, frozen=True):
    """A sequence of operations (PUTS; BEGIN .. COMMIT). Replies: Results, Aborted.

    `atomic`: if one of them is refused, none is executed. `user`: of each Put among them.
    """

    operations: tuple[Atomic, ...]
    atomic: bool
    user: str | None = None

PUTS = (Put, PutWith)
Taking = Get | GetWith      # what hands out jobs


def put_by(operation: Atomic, user: str) -> Atomic:
    """Return the operation, with `user` set if it is a Put."""
    if isinstance(operation, PutWith):
        return replace(operation, user=user)
    return PutWith(operation, user=user) if isinstance(operation, Put) else operation
