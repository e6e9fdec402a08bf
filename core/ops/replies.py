"""The replies of the machine, one for each operation. A mistake of a client is a reply too, never an exception."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from sockpqd.core.ops.workers import WorkerState


class Stored(Struct, gc=False, frozen=True):
    """Put: the job is queued. `item`: the name generated for PUT .. NEW, otherwise None. HoldItem: of a new item."""

    item: str | None = None


class StoredNumber(Struct, gc=False, frozen=True):
    """Put: the job is queued under this number. `item`: see Stored."""

    number: int
    item: str | None = None


class Meta(Struct, gc=False, frozen=True):
    """The attempt data of a job handed out (GET .. META)."""

    key: str | None
    attempt: int                # this hand-out is the n-th
    at_ms: int | None           # the time it was put for, if any
    deadline_ms: int | None
    reason: str | None = None   # why it was put back last, if its worker gave a reason
    group: str | None = None
    number: int | None = None   # of a numbered job


class Life(Struct, gc=False, frozen=True):
    """The history of a numbered job (META LIFE). Times are Unix time in milliseconds."""

    created_ms: int
    first_ms: int | None        # its first hand-out; None: there was none
    started_ms: int | None      # its last one
    taken: int                  # hand-outs, but those undone
    origin: str | None = None   # of a dead job: the queue in which it died


class Handed(Struct, gc=False, frozen=True):
    """Get: this job is now running under `id`.

    `meta`: unset unless a GetWith asks for it, and then not encoded. `turned`: unset unless its queue was chosen by
    turns. `head`: unset unless a GetWith asks for the headers; then this many bytes of them precede the data. `life`:
    unset unless a GetWith asks for it and the job has a number.
    """

    id: int
    queue: str
    priority: int
    data: bytes
    item: str | None = None
    meta: Meta | UnsetType = UNSET
    turned: bool | UnsetType = UNSET
    head: int | UnsetType = UNSET
    life: Life | UnsetType = UNSET


class HandedMany(Struct, gc=False, frozen=True):
    """GetWith with `count`: these jobs, at least one, are now running."""

    jobs: tuple[Handed, ...]


class Empty(Struct, gc=False, frozen=True):
    """Get: there is no job. `unfinished`: the queues still have unfinished jobs (which decides GETBE)."""

    unfinished: bool


class Finished(Struct, gc=False, frozen=True):
    """Done: the job is removed. HoldItem: the hold is removed.

    `queue_done`: FINQ, `item_done`: FINI (spec/state-machine 5.2).
    """

    queue_done: bool = False
    item_done: bool = False


class Rearmed(Struct, gc=False, frozen=True):
    """Done of a periodic job: it will be active again at `next_ms` (200 OK NEXT)."""

    next_ms: int


class DataDropped(Struct, gc=False, frozen=True):
    """End with `dropped`: executed, but what came with it was not kept (200 OK .. DROPPED)."""

    reply: Finished | Accepted | Rearmed


class Leased(Struct, gc=False, frozen=True):
    """Touch: the lease now ends at `deadline_ms`; None: it has no limit."""

    deadline_ms: int | None


class ItemNotFound(Struct, gc=False, frozen=True):
    """RetryItem: the item has no jobs."""


class ItemCancelled(Struct, gc=False, frozen=True):
    """The item, or the item of the job, is cancelled, so it takes and gives no jobs; 409 Item Cancelled."""


class ItemNotHeld(Struct, gc=False, frozen=True):
    """HoldItem: the item has no hold to end."""


class TooManyHolds(Struct, gc=False, frozen=True):
    """HoldItem: no more items may be held; 503 Busy."""


class JobDropped(Struct, gc=False, frozen=True):
    """PutWith: nothing is queued, as the failure for which the job would wait can no longer happen."""


class JobExists(Struct, gc=False, frozen=True):
    """PutWith, Move: an unfinished job of the queue has this key, or a finished one whose key is retained (KEEP)."""


class JobIgnored(Struct, gc=False, frozen=True):
    """PutWith with IGNORE: like JobExists, but a success (200 OK EXISTS)."""


class IgnoredNumber(Struct, gc=False, frozen=True):
    """As JobIgnored, for a Put that asks for a number: this is the number of the existing or earlier job."""

    number: int


class JobReplaced(Struct, gc=False, frozen=True):
    """PutWith with REPLACE: the job that has the key was changed (200 OK REPLACED)."""


class JobRunning(Struct, gc=False, frozen=True):
    """Change and Delete by key, PutWith with REPLACE: the job is running, so it belongs to its worker."""


class QueueNotFound(Struct, gc=False, frozen=True):
    """The queue does not exist; a Put does not create it while AUTOCREATE is OFF."""


class QueueExists(Struct, gc=False, frozen=True):
    """ConfigureQueue: the queue that was to be created exists."""


class QueueNotEmpty(Struct, gc=False, frozen=True):
    """DeleteQueue, ConfigureQueue: the queue has (too many) jobs."""


class QueueFull(Struct, gc=False, frozen=True):
    """Put, Move: the queue has its CAPACITY of waiting jobs, or (Put) as many DEDUP keys as it may; 503 Queue Full."""


class QueuePaused(Struct, gc=False, frozen=True):
    """Put, Move: the queue is paused (QUEUE PAUSE .. IN); 503 Queue Paused."""


class DataTooLarge(Struct, gc=False, frozen=True):
    """Put, Move, Change, End: the data, or the result, exceed the queue's MAXDATA; 413 Data Too Large."""


class TooManyQueues(Struct, gc=False, frozen=True):
    """ConfigureQueue, PauseQueue: no further queues may have settings; 503 Busy."""


class PulseExists(Struct, gc=False, frozen=True):
    """ConfigurePulse: the pulse that was to be created exists."""


class PulseNotFound(Struct, gc=False, frozen=True):
    """There is no such pulse."""


class PulseInUse(Struct, gc=False, frozen=True):
    """DeletePulse: the settings of a queue name it."""


class TooManyPulses(Struct, gc=False, frozen=True):
    """No more pulses may be created; 503 Too Many Pulses."""


class GroupNotFound(Struct, gc=False, frozen=True):
    """ConfigureGroup: it is neither paused nor asleep; DeleteGroup: it has no settings."""


class TooManyGroups(Struct, gc=False, frozen=True):
    """No more groups may have settings; 503 Busy."""


class GroupDecided(Struct, gc=False, frozen=True):
    """Put with a group: the queue decides the groups of its jobs itself (GROUPBY); 400 Bad Arguments."""


class BadSetting(Struct, gc=False, frozen=True):
    """The settings contradict the current ones; 400 Bad Arguments."""


class TicketNotFound(Struct, gc=False, frozen=True):
    """GiveResult: there is no such ticket, it has its result already, or it was given up."""


class Granted(Struct, gc=False, frozen=True):
    """Grant: `count` grants, with the tickets from `first` on."""

    first: int
    count: int


class Turn(Struct, gc=False, frozen=True):
    """TakeTurn: one grant, with this ticket."""

    ticket: int


class Removed(Struct, gc=False, frozen=True):
    """PurgeQueue, Kick: the number of jobs removed or moved; `more`: ask again for the rest.

    `buried`: for a Kick with `here`, whether the jobs were BURIED (otherwise DELAYED); otherwise unset and not encoded.
    """

    count: int
    more: bool = False
    buried: bool | UnsetType = UNSET


class Moved(Struct, gc=False, frozen=True):
    """MoveJobs, RetryItem: the number of jobs moved. `refusal`: why the destination refused the next one.

    To continue, repeat the operation with these values of `left` and `behind`.
    """

    count: int
    left: int = 0
    behind: tuple[int, int, int] | None = None
    refusal: Reply | None = None


class Results(Struct, gc=False, frozen=True):
    """End or Touch of several jobs, Batch: the replies in order."""

    replies: tuple[Reply, ...]


class Aborted(Struct, gc=False, frozen=True):
    """Batch: nothing was executed, because the operation at `position` (from 1) was refused with `reply`."""

    position: int
    reply: Reply


class Accepted(Struct, gc=False, frozen=True):
    """Executed: Later, Return, Tick, Lead, the operations of CLONE, members (except JOIN), sessions and users."""


class NotFound(Struct, gc=False, frozen=True):
    """No job that the operation may change has this id, key or place."""


class JobAwaited(Struct, gc=False, frozen=True):
    """Await: the job has not ended. `job`: its handle in the effects (store/watches.py)."""

    job: int
    queue: str


class JobEnded(Struct, gc=False, frozen=True):
    """Await: the job has ended, or is DEAD or BURIED.

    `state`: of JobState or EndState. `data`: the result of a job that is done; the error of one that is dead or buried.
    """

    queue: str
    state: int
    data: bytes = b""


class InvalidSnapshot(Struct, gc=False, frozen=True):
    """CloneChunk: the collected bytes are not a snapshot; nothing was changed."""


class FragmentsMissing(Struct, gc=False, frozen=True):
    """Fragment: an earlier one is missing; the operation was not executed and never will be."""


class NotYet(Struct, gc=False, frozen=True):
    """The operation, or the snapshot of a CLONE, is of a higher feature level than the cluster; nothing was changed.

    For most operations the proposer gives this reply, and they never enter the log.
    """


class Joined(Struct, gc=False, frozen=True):
    """ChangeMember: the node is now the learner, with this server id."""

    id: int


class NodeExists(Struct, gc=False, frozen=True):
    """ChangeMember: the node that was to join is a member."""


class UnknownNode(Struct, gc=False, frozen=True):
    """ChangeMember: the node is not a member."""


class LastNode(Struct, gc=False, frozen=True):
    """ChangeMember: the node is the only voter."""


class ChangeInProgress(Struct, gc=False, frozen=True):
    """ChangeMember: another change came first, or is still in progress."""


class SessionOpened(Struct, gc=False, frozen=True):
    """OpenSession: the name by which the client refers to the session, and how long it lives without use."""

    sid: str
    ttl_ms: int


class TooManySessions(Struct, gc=False, frozen=True):
    """OpenSession: no more sessions may be opened."""


class SessionAttached(Struct, gc=False, frozen=True):
    """AttachSession: the session exists. `last`: its greatest request number, 0 before the first."""

    ttl_ms: int
    last: int


class SessionNotFound(Struct, gc=False, frozen=True):
    """Any operation that names a session: it has ended or never existed. Nothing was executed."""


class RequestMismatch(Struct, gc=False, frozen=True):
    """Request: the number was used for another command. Nothing was executed."""


class RequestTooOld(Struct, gc=False, frozen=True):
    """Request: the number is below the window of the session, so it is unknown whether it was used."""


class UserNotFound(Struct, gc=False, frozen=True):
    """SetUser: there is no such user to remove."""


class TooManyUsers(Struct, gc=False, frozen=True):
    """SetUser: no more users may be added."""


class Spread(Struct, gc=False, frozen=True):
    """PutWith with `targets`: the job is in this many queues."""

    queues: int


class TopicNotFound(Struct, gc=False, frozen=True):
    """UnbindQueue: nothing is bound to the topic."""


class BindingNotFound(Struct, gc=False, frozen=True):
    """UnbindQueue: the queue is not bound to the topic in this way."""


class TooManyBindings(Struct, gc=False, frozen=True):
    """BindQueue: the topic, or all of them together, may have no more; 503 Too Many Bindings."""


class WorkerBounds(Struct, gc=False, frozen=True):
    """BeatWorker: the operator's settings for the worker; None: not set."""

    most: int | None
    least: int | None
    state: WorkerState


class WorkerNotFound(Struct, gc=False, frozen=True):
    """SetWorker: there is no such worker."""


class WorkerExists(Struct, gc=False, frozen=True):
    """BeatWorker: another session has the name."""


class TooManyWorkers(Struct, gc=False, frozen=True):
    """BeatWorker: there may be no more workers, or no more of this user; 503 Busy."""


class Elsewhere(Struct, gc=False, frozen=True):
    """Any operation that adds to a name: another cluster of the map owns it; None: no cluster does at present.

    Nothing was executed; 409 Elsewhere.
    """

    cluster: str | None


class MapChanged(Struct, gc=False, frozen=True):
    """SetMap: the version sent is not greater than this one, the current version; 409 Map Changed."""

    version: int


class Mirrored(Struct, gc=False, frozen=True):
    """An operation on the mirror: the index that it has reached."""

    index: int


class ReplicaRefused(Struct, gc=False, frozen=True):
    """An operation on the mirror, Promote, Fence: refused.

    `reason`: "not empty", "promoted", "no mirror", or "replica", which cannot be fenced.
    """

    reason: str


class ServiceFenced(Struct, gc=False, frozen=True):
    """SwitchService: the service stays off, because the replica of this id has taken its place."""

    replica: str


Reply = (
    Stored
    | StoredNumber
    | Handed
    | Empty
    | Finished
    | Accepted
    | NotFound
    | JobAwaited
    | JobEnded
    | InvalidSnapshot
    | FragmentsMissing
    | NotYet
    | DataDropped
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
    | HandedMany
    | Rearmed
    | Leased
    | JobExists
    | ItemNotFound
    | ItemNotHeld
    | ItemCancelled
    | TooManyHolds
    | JobDropped
    | JobIgnored
    | IgnoredNumber
    | JobReplaced
    | JobRunning
    | QueueNotFound
    | QueueExists
    | QueueNotEmpty
    | QueueFull
    | QueuePaused
    | DataTooLarge
    | TooManyQueues
    | Removed
    | Moved
    | PulseExists
    | PulseNotFound
    | PulseInUse
    | TooManyPulses
    | BadSetting
    | GroupDecided
    | GroupNotFound
    | TooManyGroups
    | TicketNotFound
    | Granted
    | Turn
    | Results
    | Aborted
    | Spread
    | TopicNotFound
    | BindingNotFound
    | TooManyBindings
    | WorkerBounds
    | WorkerNotFound
    | WorkerExists
    | TooManyWorkers
    | Elsewhere
    | MapChanged
    | Mirrored
    | ReplicaRefused
    | ServiceFenced
)

# Replies without fields, and a few other frequent ones, are created once.
ACCEPTED = Accepted()
NOT_FOUND = NotFound()
SESSION_NOT_FOUND = SessionNotFound()
STORED = Stored()
INVALID_SNAPSHOT = InvalidSnapshot()
NOT_YET = NotYet()
EMPTY = Empty(unfinished=False)
EMPTY_UNFINISHED = Empty(unfinished=True)
FINISHED = {(queue, item): Finished(queue, item) for queue in (False, True) for item in (False, True)}
DATA_TOO_LARGE = DataTooLarge()
ITEM_NOT_FOUND = ItemNotFound()
ITEM_NOT_HELD = ItemNotHeld()
ITEM_CANCELLED = ItemCancelled()
TOO_MANY_HOLDS = TooManyHolds()
JOB_DROPPED = JobDropped()
JOB_EXISTS = JobExists()
JOB_IGNORED = JobIgnored()
JOB_REPLACED = JobReplaced()
JOB_RUNNING = JobRunning()
QUEUE_EXISTS = QueueExists()
QUEUE_FULL = QueueFull()
QUEUE_NOT_EMPTY = QueueNotEmpty()
QUEUE_NOT_FOUND = QueueNotFound()
QUEUE_PAUSED = QueuePaused()
TOO_MANY_QUEUES = TooManyQueues()
PULSE_EXISTS = PulseExists()
PULSE_NOT_FOUND = PulseNotFound()
PULSE_IN_USE = PulseInUse()
TOO_MANY_PULSES = TooManyPulses()
BAD_SETTING = BadSetting()
GROUP_DECIDED = GroupDecided()
GROUP_NOT_FOUND = GroupNotFound()
TOO_MANY_GROUPS = TooManyGroups()
TICKET_NOT_FOUND = TicketNotFound()


def digests_of(replies: list[Reply]) -> list[object]:
    """Return the part of an entry's replies that the hash chain covers: all but the data of jobs handed out or ended.

    Such data, of up to megabytes, came with an entry that the chain covers. A job handed out is represented by its id
    and the length of its data, an ended one by its state and that length.
    """
    if _HANDED.isdisjoint(map(type, replies)):
        return list(replies)
    return [
        (reply.id, len(reply.data)) if type(reply) is Handed
        else [(job.id, len(job.data)) for job in reply.jobs] if type(reply) is HandedMany
        else (reply.state, len(reply.data)) if type(reply) is JobEnded else reply
        for reply in replies
    ]


_HANDED = frozenset((Handed, HandedMany, JobEnded))
