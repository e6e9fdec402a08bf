"""The frames that make up a snapshot; write.py defines their order, and how to change one.

They are separate types, so that the classes of the state can change while the bytes stay the same.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sockpqd.core.levels import FIRST_LEVEL
from sockpqd.core.limits import (
    COUNTER_MAX,
    ERRORS_BYTES,
    REMEMBERED_OF_QUEUE,
    RETAIN_BYTES,
    RETAIN_MAX,
    RETAINED_BYTES,
)
from sockpqd.core.ops.jobs import HoldThen, Policy, Then, Until
from sockpqd.core.ops.queues import EndState, GroupBy, Order, Overflow, Sched
from sockpqd.core.ops.workers import WorkerState
from sockpqd.core.store.items.dependents import Outcome

Counter = Annotated[int, Meta(ge=0, le=COUNTER_MAX)]
Number = Annotated[int, Meta(ge=0)]         # up to 64 bits


class SnapshotError(ValueError):
    """The bytes are not a snapshot that this version can read."""


class LevelError(SnapshotError):
    """The state has a feature level that is unknown or not reached yet, or a format that belongs to such a level."""


def check(right: bool, wrong: str) -> None:
    """Raise SnapshotError with the message `wrong` unless `right`."""
    if not right:
        raise SnapshotError(f"inconsistent snapshot: {wrong}")


class AnyHead(Struct, array_like=True, tag="head"):
    """A Head of any level; if its feature level is unknown there may be more fields after `level`."""

    index: Counter
    term: Counter
    leader: str | None
    clock_ms: Counter
    cluster_id: bytes | None
    expire_default: Then
    servers: list[tuple[str, Counter]]      # in rising id
    max_id: Counter
    next_id: Counter
    next_seq: Counter
    next_item: Counter
    members: list[tuple[str, str, str]]     # name, peer, client, in name order
    learner: str | None
    configuration: Counter
    online: bool
    seqs_since_ms: Counter
    event_seq: Counter = 0                  # since format 6
    level: Counter = FIRST_LEVEL


class Head(AnyHead, array_like=True, tag="head", forbid_unknown_fields=True):
    """The part of the state that does not grow with the number of jobs."""


class CountsRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The fields of store.job.JobCounts, in their order."""

    reserves: Counter
    timeouts: Counter
    releases: Counter
    buries: Counter
    kicks: Counter
    delay_ms: Counter = 0
    died_ms: Counter = 0
    first_ms: Counter | None = None
    last_ms: Counter | None = None
    number: Counter | None = None


class ExtrasRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The fields of store.job.Extras, in their order."""

    key: str | None
    tries: Counter | None
    ttl_ms: Counter | None
    expires_at_ms: Counter | None
    every_ms: Counter | None
    origin: str | None
    after: tuple[str, ...]
    ready_ms: Counter | None = None
    reason: str | None = None
    group: str | None = None
    body: Counter | None = None
    lease_ms: Counter | None = None
    counts: CountsRow | None = None
    head: Counter = 0
    error: Counter | None = None
    until: Until = Until.DONE


# priority, when, seq, item, data, attempts, at_ms, extras
WaitingRow = tuple[int, Counter, Counter, str | None, bytes, Counter, Counter | None, ExtrasRow | None]


class Waiting(Struct, array_like=True, tag="waiting", forbid_unknown_fields=True):
    """Some READY jobs of one queue."""

    queue: str
    jobs: list[WaitingRow]


# priority, jobs, bytes of their data, when and seq of the last one, reference of the page
PageRow = tuple[int, Counter, Counter, Counter, Counter, bytes]


class Paged(Struct, array_like=True, tag="pages", forbid_unknown_fields=True):
    """Pages of READY jobs of one queue, each after a job of its priority. Only in snapshots by reference."""

    queue: str
    pages: list[PageRow]


# the same, number of numbered jobs, reference of the page
NumberedPageRow = tuple[int, Counter, Counter, Counter, Counter, Counter, bytes]


class NumberedPaged(Struct, array_like=True, tag="numbered pages", forbid_unknown_fields=True):
    """Pages with numbered READY jobs of one queue, each after a job of its priority. Only by reference."""

    queue: str
    pages: list[NumberedPageRow]


class SeqRanks(Struct, array_like=True, tag="seq ranks", forbid_unknown_fields=True):
    """Seqs of READY jobs of a queue with very many priorities, behind its jobs, by which these are found.

    `searched`: in the first frame of the queue, the priorities whose jobs are searched for instead. `seqs`: priorities,
    and the seqs of their jobs, each as the difference to the one before. Only in snapshots by reference.
    """

    queue: str
    searched: list[int] | None
    seqs: list[tuple[int, list[Counter]]]


class GroupWaiting(Struct, array_like=True, tag="group waiting", forbid_unknown_fields=True):
    """READY jobs in memory of groups without their queue's name, before the queue's own ones. Only by reference."""

    queue: str
    jobs: list[WaitingRow]


# group, priority, jobs, bytes of their data, seqs of the first and of the last one, reference of the page
GroupPageRow = tuple[str, int, Counter, Counter, Counter, Counter, bytes]


class GroupPaged(Struct, array_like=True, tag="group pages", forbid_unknown_fields=True):
    """Pages of READY jobs of groups, each after a job in memory, in the order of their first jobs.

    Only by reference.
    """

    queue: str
    pages: list[GroupPageRow]


class NumberIndex(Struct, array_like=True, tag="number index", forbid_unknown_fields=True):
    """Maps numbered READY jobs to pages (pages/seq_index.py). Only in snapshots by reference."""

    spans: list[tuple[Counter, bytes, bytes]]


# jobs, bytes of their data, due_ms and seq of the first and of the last one, reference of the page
DelayedPageRow = tuple[Counter, Counter, Counter, Counter, Counter, Counter, bytes]


class PageIndex(Struct, array_like=True, tag="page index", forbid_unknown_fields=True):
    """Maps DELAYED jobs to pages (pages/seq_index.py). Only in snapshots by reference."""

    spans: list[tuple[Counter, bytes, bytes]]


class PagedDelayed(Struct, array_like=True, tag="delayed pages", forbid_unknown_fields=True):
    """Pages of DELAYED jobs of one queue, and the numbers of their jobs by priority and group. Only by reference."""

    queue: str
    priorities: list[tuple[int, Counter]]
    pages: list[DelayedPageRow]
    groups: list[tuple[str, Counter]] = []


# due_ms, seq, priority, item, data, attempts, at_ms, extras
DelayedRow = tuple[Counter, Counter, int, str | None, bytes, Counter, Counter | None, ExtrasRow | None]


class Delayed(Struct, array_like=True, tag="delayed", forbid_unknown_fields=True):
    """Some DELAYED jobs of one queue."""

    queue: str
    jobs: list[DelayedRow]


# burial, seq, priority, item, data, attempts, at_ms, extras
BuriedRow = tuple[Counter, Counter, int, str | None, bytes, Counter, Counter | None, ExtrasRow | None]


class Buried(Struct, array_like=True, tag="buried", forbid_unknown_fields=True):
    """Some BURIED jobs of one queue."""

    queue: str
    jobs: list[BuriedRow]


class RunningRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One running job: the fields of store.job.RunningJob."""

    id: Counter
    queue: str
    priority: int
    seq: Counter
    item: str | None
    data: bytes
    deadline_ms: Counter | None
    then: Then
    graced: bool
    when: Counter
    attempts: Counter
    at_ms: Counter | None
    lease_ms: Counter | None
    extras: ExtrasRow | None
    pulse: str | None = None
    since_ms: Counter = 0
    progress: Counter | None = None
    started_ms: Counter = 0


class Running(Struct, array_like=True, tag="running", forbid_unknown_fields=True):
    """Some running jobs, in the order of their ids."""

    jobs: list[RunningRow]


class ItemRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One item, without its jobs."""

    name: str
    done: Counter = 0
    hold_ends_ms: Counter = 0               # 0: it is not held
    hold_ms: Counter = 0
    hold_then: HoldThen = HoldThen.CANCEL
    hold_graced: bool = False
    owner: str | None = None
    cancelling: bool = False
    reason: str | None = None
    tainted: bool = False
    cancelled: Counter = 0


class ItemRows(Struct, array_like=True, tag="items", forbid_unknown_fields=True):
    """Some items that have more state than their jobs, in the order of their names."""

    rows: list[ItemRow]


class BodiesFrame(Struct, array_like=True, tag="bodies", forbid_unknown_fields=True):
    """The places of bodies of jobs in the next frame, whose rows lack them. Only in snapshots by reference."""

    bodies: list[tuple[Counter, Counter, bytes]]        # seq of the job, length, where the body is


class Released(Struct, array_like=True, tag="released", forbid_unknown_fields=True):
    """Some DELAYED jobs for which `item` has decided; `more`: the next frame continues them."""

    item: str
    seqs: list[Counter]
    more: bool
    until: Until = Until.DONE
    outcome: Outcome = Outcome.MET


class ErrorRows(Struct, array_like=True, tag="errors", forbid_unknown_fields=True):
    """Some error texts of jobs: the number of the job, its text."""

    rows: list[tuple[Counter, bytes]]


class KeptRows(Struct, array_like=True, tag="kept", forbid_unknown_fields=True):
    """Some keys of finished jobs: queue, key, end of its retention."""

    rows: list[tuple[str, str, Counter]]


class RememberedRows(Struct, array_like=True, tag="remembered", forbid_unknown_fields=True):
    """Some keys of DEDUP: queue, key, end of its retention, number of its job (0: none)."""

    rows: list[tuple[str, str, Counter, Counter]]


class RecordRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The record of an ended job: the fields of records.record.JobRecord, with the extras that it keeps."""

    number: Counter
    state: EndState
    ended_ms: Counter
    priority: int
    item: str | None
    data: bytes
    attempts: Counter
    extras: ExtrasRow
    result: bytes = b""
    error: bytes = b""


class RecordRows(Struct, array_like=True, tag="records", forbid_unknown_fields=True):
    """Some records of one queue, in the order of their ends."""

    queue: str
    rows: list[RecordRow]


# serial, base, ends (since the base) and sizes of its records as in records.block, reference of the page
RecordPageRow = tuple[Counter, Counter, list[Counter], list[Counter], bytes]


class RecordPages(Struct, array_like=True, tag="record pages", forbid_unknown_fields=True):
    """Pages with records of one queue, before its others; the first `start` have expired. Only by reference."""

    queue: str
    start: Counter
    pages: list[RecordPageRow]


class RecordIndex(Struct, array_like=True, tag="record index", forbid_unknown_fields=True):
    """Maps the numbers of records in pages to blocks (pages/seq_index.py). Only in snapshots by reference."""

    spans: list[tuple[Counter, bytes, bytes]]


class Settings(Struct, array_like=True, tag="settings", forbid_unknown_fields=True):
    """The settings of the cluster, except the expire default, which is in the head."""

    autocreate: bool
    policy: Policy
    grace_ms: Counter | None
    session_ttl_ms: Counter | None
    fast_empty: bool
    retained_bytes: Counter = RETAINED_BYTES


class OldestIndex(Struct, array_like=True, tag="oldest", forbid_unknown_fields=True):
    """Queues up to this name (None: all) are indexed by the READY time of their first job."""

    reached: str | None


class QueueRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The settings of one queue."""

    name: str
    expire_ms: Counter
    then: Then
    order: Order
    tries: Counter
    dead: str | None
    weight: Counter
    limit: Counter
    item_limit: Counter
    capacity: Counter
    data_bytes_max: Counter
    batch: Counter
    portion: Counter
    keep_ms: Counter
    paused_in: bool
    paused_out: bool
    ttl_ms: Counter = 0
    idle_ms: Counter = 0
    overflow: Overflow = Overflow.REFUSE
    bound: Counter = 0
    alarm: Counter = 0
    alarmed: bool = False
    pulse: str | None = None
    sched: Sched = Sched.FIFO
    pause_ms: Counter = 0
    pause_ends_ms: Counter = 0
    passing: bool = False
    backoff_ms: Counter = 0
    backoff_max_ms: Counter = 0
    error_bytes: Counter = ERRORS_BYTES
    dedup_max: Counter = REMEMBERED_OF_QUEUE
    retain_ms: Counter = 0
    retain_max: Counter = RETAIN_MAX
    retain_bytes: Counter = RETAIN_BYTES
    numbered: bool = False
    group_limit: Counter = 0
    group_rate: Counter = 0
    group_per_ms: Counter = 0
    group_by: GroupBy = GroupBy.PUT
    group_header: str = ""
    group_order: bool = False


class QueueRows(Struct, array_like=True, tag="queues", forbid_unknown_fields=True):
    """The settings of some queues."""

    rows: list[QueueRow]


class UsedRows(Struct, array_like=True, tag="used", forbid_unknown_fields=True):
    """Some queues with IDLE: name, last use."""

    rows: list[tuple[str, Counter]]


class PulseTable(Struct, array_like=True, tag="pulses", forbid_unknown_fields=True):
    """The counters of pulses, if there are pulses or tickets have been issued."""

    next_ticket: Counter
    pulses: Counter                             # how many there are


class PulseRow(Struct, array_like=True, tag="pulse", forbid_unknown_fields=True):
    """One pulse: the fields of pulse.pulse.Pulse."""

    name: str
    rate: Counter
    per_ms: Counter
    step_ms: Counter
    max_pause_ms: Counter
    max_run_ms: Counter
    together: bool
    max_wait_ms: Counter
    payload: bytes
    deny: bool
    now: Counter
    pause_ms: Counter
    sleep_until_ms: Counter
    granted: Counter
    errors: Counter
    period_ends_ms: Counter
    slow: bool
    failed: bool
    window: list[tuple[Counter, Counter]]       # in rising time
    tickets: list[tuple[Counter, Counter]]      # in rising number
    spread: bool = False


class CountedRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The counters of one queue."""

    name: str
    put: Counter
    taken: Counter
    done: Counter
    later: Counter
    expired: Counter
    dead: Counter
    ttl_ended: Counter
    deleted: Counter = 0
    pauses: Counter = 0


class CountedRows(Struct, array_like=True, tag="counted", forbid_unknown_fields=True):
    """The counters of some queues that have any above zero."""

    rows: list[CountedRow]


class FairTable(Struct, array_like=True, tag="fair", forbid_unknown_fields=True):
    """The clock of FAIR, if it is in use. Times are decimal numbers, as they may have any number of digits."""

    thresholds_s: tuple[Counter, ...]
    cap_ms: Counter
    multiplier: Counter
    keep_ms: Counter
    started_ms: Counter
    next_turn: Counter
    levels: list[tuple[str, str | None, Counter]]       # time, least priority, choices
    tasks: list[tuple[str | None, str]]                 # groups still to be offered: of this queue, after this name
    accounts: Counter                                   # how many there are
    unit_ns: Counter = 1000                             # of the times of levels and the priorities: 1 since weights


class FairRows(Struct, array_like=True, tag="groups", forbid_unknown_fields=True):
    """Some groups, in the order of their names: name, time, level, priority, turn, offered, idle since."""

    rows: list[tuple[str, str, Counter, str, Counter, bool, Counter | None]]


class GroupRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The settings of one group: the fields of fair.group_settings.GroupSettings."""

    name: str
    limit: Counter
    rate: Counter
    per_ms: Counter
    weight: Counter
    paused: bool
    pause_ends_ms: Counter


class GroupRows(Struct, array_like=True, tag="group settings", forbid_unknown_fields=True):
    """The settings of some groups, in the order of their names."""

    rows: list[GroupRow]


class RateRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The recent hand-outs of one group in one queue, or "" in all: the fields of fair.rates.RateWindow."""

    queue: str
    group: str
    slot_ms: Counter
    slots: list[tuple[Counter, Counter]]        # rising
    closed: bool
    sleep_until_ms: Counter
    due_ms: Counter


class RateRows(Struct, array_like=True, tag="rates", forbid_unknown_fields=True):
    """The recent hand-outs of some groups, in the order of queues and groups."""

    rows: list[RateRow]


class StoredAnswer(Struct, array_like=True, tag="stored", forbid_unknown_fields=True, gc=False, frozen=True):
    item: str | None


class StoredNumberAnswer(
    Struct, array_like=True, tag="stored number", forbid_unknown_fields=True, gc=False, frozen=True,
):
    number: Counter
    item: str | None


class IgnoredNumberAnswer(
    Struct, array_like=True, tag="ignored number", forbid_unknown_fields=True, gc=False, frozen=True,
):
    number: Counter


class HandedAnswer(Struct, array_like=True, tag="handed", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer was Handed, with this id."""

    id: Counter


class EmptyAnswer(Struct, array_like=True, tag="empty", forbid_unknown_fields=True, gc=False, frozen=True):
    unfinished: bool


class FinishedAnswer(Struct, array_like=True, tag="finished", forbid_unknown_fields=True, gc=False, frozen=True):
    queue_done: bool
    item_done: bool


class HandedManyAnswer(Struct, array_like=True, tag="handed many", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer was HandedMany, with these ids."""

    ids: tuple[Counter, ...]


class RearmedAnswer(Struct, array_like=True, tag="rearmed", forbid_unknown_fields=True, gc=False, frozen=True):
    next_ms: Counter


class LeasedAnswer(Struct, array_like=True, tag="leased", forbid_unknown_fields=True, gc=False, frozen=True):
    deadline_ms: Counter | None


class RemovedAnswer(Struct, array_like=True, tag="removed", forbid_unknown_fields=True, gc=False, frozen=True):
    count: Counter
    more: bool
    buried: bool | None = None


class MovedAnswer(Struct, array_like=True, tag="moved", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer was Moved, with the answer of a queue that refused a job."""

    count: Counter
    left: Counter = 0
    behind: tuple[int, Counter, Counter] | None = None
    refusal: PlainAnswer | ElsewhereAnswer | None = None


class TurnAnswer(Struct, array_like=True, tag="turn", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer was Turn, with this ticket."""

    ticket: Counter


class PlainAnswer(Struct, array_like=True, tag="plain", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer has no fields."""

    name: Literal[
        "accepted", "not found", "invalid", "no session", "item not found", "item not held", "item cancelled",
        "too many holds", "job dropped", "job exists", "job ignored", "job replaced", "job running",
        "queue not found", "queue exists", "queue not empty", "queue full", "queue paused", "too large",
        "too many queues", "pulse exists", "pulse not found", "pulse in use", "too many pulses", "bad setting",
        "ticket not found", "worker not found", "topic not found", "binding not found", "too many bindings",
        "too many workers", "worker exists", "group not found", "too many groups", "group decided",
        "request too old",
    ]


class DroppedAnswer(Struct, array_like=True, tag="dropped", forbid_unknown_fields=True, gc=False, frozen=True):
    """The answer was DataDropped, wrapping this answer."""

    answer: FinishedAnswer | PlainAnswer | RearmedAnswer


class SpreadAnswer(Struct, array_like=True, tag="spread", forbid_unknown_fields=True, gc=False, frozen=True):
    queues: Counter


class BoundsAnswer(Struct, array_like=True, tag="bounds", forbid_unknown_fields=True, gc=False, frozen=True):
    most: Counter | None
    least: Counter | None
    state: WorkerState


class ElsewhereAnswer(Struct, array_like=True, tag="elsewhere", forbid_unknown_fields=True, gc=False, frozen=True):
    cluster: str | None


class AbortedAnswer(Struct, array_like=True, tag="aborted", forbid_unknown_fields=True, gc=False, frozen=True):
    position: Counter
    answer: SingleAnswer


class ResultsAnswer(Struct, array_like=True, tag="results", forbid_unknown_fields=True, gc=False, frozen=True):
    answers: tuple[SingleAnswer, ...]


SingleAnswer = (
    StoredAnswer | StoredNumberAnswer | IgnoredNumberAnswer | HandedAnswer | EmptyAnswer | FinishedAnswer | PlainAnswer
    | HandedManyAnswer | RearmedAnswer | LeasedAnswer | RemovedAnswer | MovedAnswer | BoundsAnswer | SpreadAnswer
    | TurnAnswer | ElsewhereAnswer
    | DroppedAnswer
)
AnswerRow = SingleAnswer | AbortedAnswer | ResultsAnswer


class RequestRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One request of a session."""

    number: Number
    digest: bytes
    answers: list[tuple[int, AnswerRow]]        # with their parts, in rising order


class SessionRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One session, with its remembered requests and bound jobs."""

    number: Counter
    secret: Number
    ttl_ms: Counter
    deadline_ms: Counter
    graced: bool
    ending: bool
    requests: list[RequestRow]                  # in rising number
    taken: list[Counter]                        # ids of the bound jobs, in rising order
    user: str                                   # the owner, "" if there is none
    address: str                                # from where it was opened, "" if unknown
    used_ms: Counter                            # its last use
    lapsed: bool = False                        # it has ended of itself


class SessionTable(Struct, array_like=True, tag="sessions", forbid_unknown_fields=True):
    """The counters of sessions, if there has ever been one."""

    next_session: Counter
    sessions: Counter                           # how many there are now


class SessionRows(Struct, array_like=True, tag="session", forbid_unknown_fields=True):
    """Some sessions, in the order of their numbers."""

    rows: list[SessionRow]


class BindingRows(Struct, array_like=True, tag="bindings", forbid_unknown_fields=True):
    """Some bindings: topic, queue, pattern."""

    rows: list[tuple[str, str, str | None]]


class WorkerRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One worker, which may have ended: the fields of sessions.workers.WorkerPool, in their order."""

    name: str
    session: Counter
    address: str
    slots: Counter
    busy: Counter
    beat_ms: Counter
    most: Counter | None
    least: Counter | None
    state: WorkerState
    unheard: bool = False


class WorkerRows(Struct, array_like=True, tag="workers", forbid_unknown_fields=True):
    """Some workers, in the order of their names."""

    rows: list[WorkerRow]


class UserRow(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """One user: the fields of ops.users.User, in their order."""

    name: str
    rights: str
    key: bytes


class UserRows(Struct, array_like=True, tag="users", forbid_unknown_fields=True):
    """Some users, in the order of their names."""

    rows: list[UserRow]


class CloneFrame(Struct, array_like=True, tag="clone", forbid_unknown_fields=True):
    """A CLONE is in progress."""

    clone: int
    total_bytes: int


class Chunk(Struct, array_like=True, tag="chunk", forbid_unknown_fields=True):
    """One chunk that the CLONE has received."""

    data: bytes


class MapFrame(Struct, array_like=True, tag="map", forbid_unknown_fields=True):
    """The map of clusters, with its version."""

    version: Counter
    text: bytes


class RegionFrame(Struct, array_like=True, tag="region", forbid_unknown_fields=True):
    """The part that the cluster played for another region: State.promoted and State.fenced."""

    promoted: bool
    fenced: str | None


class MirrorTable(Struct, array_like=True, tag="mirror", forbid_unknown_fields=True):
    """The cluster is a replica; the snapshot of its mirror follows.

    `part`: the index of a large frame of which some bytes have come. `arriving`: a snapshot of the origin of which some
    chunks have come: its index, the hash of the origin's chain there, its size.
    """

    part: Counter | None
    arriving: tuple[Counter, bytes, Counter] | None


class MirrorBytes(Struct, array_like=True, tag="mirrored", forbid_unknown_fields=True):
    """Bytes of the mirror's snapshot, which is whole by itself."""

    data: bytes


class PartBytes(Struct, array_like=True, tag="mirror part", forbid_unknown_fields=True):
    """Bytes of the large frame."""

    data: bytes


class ArrivingBytes(Struct, array_like=True, tag="mirror chunk", forbid_unknown_fields=True):
    """One chunk of the snapshot that is arriving."""

    data: bytes


class FragmentBytes(Struct, array_like=True, tag="fragments", forbid_unknown_fields=True):
    """Bytes of the large operation that is being collected."""

    number: int
    data: bytes


class EndFrame(Struct, array_like=True, tag="end", forbid_unknown_fields=True):
    """The sums of jobs; only the checksum follows."""

    waiting: Counter        # READY or DELAYED
    running: Counter
    delayed: Counter = 0
    buried: Counter = 0


Frame = (
    Head | Settings | MapFrame | PulseTable | PulseRow | OldestIndex | QueueRows | Waiting | NumberIndex | Paged
    | NumberedPaged | SeqRanks | GroupWaiting | GroupPaged
    | PageIndex | PagedDelayed | Delayed | Buried | Running | ItemRows | BodiesFrame | Released
    | ErrorRows
    | BindingRows | GroupRows | FairTable | FairRows | RateRows | UsedRows | CountedRows | KeptRows | RememberedRows
    | RecordIndex | RecordPages | RecordRows | SessionTable | SessionRows | WorkerRows | UserRows | CloneFrame
    | Chunk | FragmentBytes | RegionFrame | MirrorTable | MirrorBytes | PartBytes | ArrivingBytes | EndFrame
)
