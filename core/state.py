"""The replicated state, and the transitions of a job in it (store/job.py has them as a table).

The state of a job changes only through a few pairs of methods that undo each other: `add` and `remove` (READY), `defer`
and `undefer` (DELAYED), `start` and `stop` (RUNNING), `bury` and `unbury` (BURIED), and `swap`. They update all
counters and lists, so that none can drift from the jobs. A caller that takes a job away without putting it back into
the same queue and item must call `close`, which returns whether these are finished.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.clusters.cluster_map import ClusterMap
from sockpqd.core.fair.group_settings import GroupTable
from sockpqd.core.fair.ranked_again import RANKED_STEPS
from sockpqd.core.fair.scheduler import FairScheduler
from sockpqd.core.levels import FIRST_LEVEL
from sockpqd.core.members.membership import Membership
from sockpqd.core.members.server_ids import ServerIds
from sockpqd.core.ops.effects import Effects
from sockpqd.core.ops.jobs import Then
from sockpqd.core.ops.queues import JobState, Order
from sockpqd.core.ops.replies import NOT_FOUND, JobEnded, NotFound
from sockpqd.core.ops.settings import ClusterSettings, QueueSettings
from sockpqd.core.ops.users import User
from sockpqd.core.pages.clone_buffer import CloneBuffer
from sockpqd.core.pages.paged_run import PagedRun
from sockpqd.core.pages.pager import Pager
from sockpqd.core.pages.pages import Page
from sockpqd.core.pulse.pulse import Pulse
from sockpqd.core.pulse.pulses import Pulses
from sockpqd.core.records.records import RecordPlace, Records
from sockpqd.core.sessions.table import Sessions
from sockpqd.core.sessions.workers import Workers
from sockpqd.core.store.body import Data, bytes_of
from sockpqd.core.store.delayed import Delays
from sockpqd.core.store.errors import ErrorTexts
from sockpqd.core.store.events import ENDED_ITEM, ENDED_QUEUE, FAILED_ITEM, WATCHED_QUEUE, EventLog
from sockpqd.core.store.item_limit import apply_item_limit
from sockpqd.core.store.items.dependents import ItemRelease, ItemTurn
from sockpqd.core.store.items.holds import Hold
from sockpqd.core.store.items.item import Fate, Item, ItemQueue
from sockpqd.core.store.items.items import Items
from sockpqd.core.store.job import (
    AnyJob,
    BuriedJob,
    DelayedJob,
    Extras,
    Job,
    RunningJob,
    expiring,
    group_of,
    handed_out,
    keeps_place,
    number_of,
    time_in_order,
)
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.keys.remembered_keys import RememberedKeys
from sockpqd.core.store.keys.retained_keys import RetainedKeys
from sockpqd.core.store.latencies import LatencyMeter
from sockpqd.core.store.leases import Leases
from sockpqd.core.store.queues import TAKEN, Queue, Queues
from sockpqd.core.store.topics import Topics
from sockpqd.core.store.watches import Handles, Watches


class CloneUpload(Protocol):
    """The CLONE in progress: a snapshot that arrives in chunks (snapshot/upload.py)."""

    clone: int
    total_bytes: int
    chunks: CloneBuffer

    def add(self, data: bytes, level: int) -> None:
        """Add the next chunk, for a cluster of this feature level."""

    def finish(self) -> State:
        """Return the state in the complete snapshot. Raises SnapshotError."""

    def drop(self) -> None:
        """Abandon the upload and release its pages."""


class Collected(Struct):
    """The collected bytes of a large operation (ops/fragments.py)."""

    number: int
    data: bytearray


class MirrorUpload(Protocol):
    """The snapshot of the origin that is arriving in chunks (snapshot/upload.py)."""

    chunks: CloneBuffer
    received_bytes: int
    total_bytes: int

    def add(self, data: bytes, level: int) -> None:
        """Add the next chunk, for a cluster of this feature level."""

    def finish(self) -> State:
        """Return the state in the complete snapshot. Raises SnapshotError."""

    def drop(self) -> None:
        """Abandon the upload and release its pages."""


class Arriving(Struct):
    """A snapshot of the origin that is arriving: its index, and the hash of the origin's chain there."""

    index: int
    hash: bytes
    upload: MirrorUpload


class ToMirror(Struct, frozen=True):
    """A step that an operation on the mirror has completed, in the order of the origin's log.

    `data`: the entry `index`; b"": a snapshot taken there, which is the mirror now. `hash`: of the origin's chain, in a
    snapshot.
    """

    index: int
    data: bytes
    hash: bytes = b""


class MirrorState(Struct):
    """The origin's state, which a replica keeps in addition to its own (spec/region 1)."""

    state: State
    part: Collected | None = None           # the bytes of a large frame, with its index as their number
    arriving: Arriving | None = None
    steps: list[ToMirror] = []              # of the present entry; frames are executed after its operations
    reached: int = 0                        # the index after these steps


class UndoLog(Protocol):
    """Records each step of a batch, so that it can be undone (undo.py)."""

    def added(self, job: Job) -> None:
        """Record that `job` became READY."""

    def removed(self, job: Job) -> None:
        """Record that `job` is no longer READY."""

    def deferred(self, job: DelayedJob) -> None:
        """Record that `job` became DELAYED."""

    def undeferred(self, job: DelayedJob, releases: list[ItemRelease]) -> None:
        """Record that `job` is no longer DELAYED; it was in these releases."""

    def buried(self, job: BuriedJob) -> None:
        """Record that `job` became BURIED."""

    def unburied(self, job: BuriedJob) -> None:
        """Record that `job` is no longer BURIED."""

    def stopped(self, job: RunningJob) -> None:
        """Record that `job` is no longer RUNNING; it is still bound to its session."""

    def swapped(self, old: RunningJob, new: RunningJob) -> None:
        """Record that `new` took the place of `old`."""

    def noted(self, pulse: Pulse) -> None:
        """Record that a result of one of the pulse's grants is about to be recorded."""

    def slept(self, queue: str, group: str) -> None:
        """Record that the group is about to sleep in this queue."""

    def alarmed(self, queue: str, alarmed: bool) -> None:
        """Record that the next DEPTH event of the queue is for its other depth."""

    def used_fair(self) -> None:
        """Record that groups are in use from here on."""

    def remembered(self, queue: str, key: str, before: tuple[int, int]) -> None:
        """Record that the key of a Put is remembered; `before`: its earlier entry (RememberedKeys.entry)."""

    def retained(self, queue: str, key: str, before_ms: int, forgotten: tuple[int, str] | None) -> None:
        """Record that the key is retained, until `before_ms` so far (0: not at all).

        `forgotten`: dropped to make room.
        """

    def recorded(self, queue: str) -> None:
        """Record that the queue has one more record of an ended job."""

    def passed(self, queue: str, over: int, count: int, total_bytes: int) -> None:
        """Record that records of the queue have expired; the arguments are the numbers before that."""

    def forgot(self, number: int, place: RecordPlace) -> None:
        """Record that the record of this number was removed from this place."""

    def ended_item(self, item: Item) -> None:
        """Record that the item has ended."""

    def held(self, item: Item, before: Hold | None) -> None:
        """Record that the hold of the item, so far `before`, changes."""

    def counted_done(self, item: Item) -> None:
        """Record that the item has one more job that is done."""

    def counted_cancelled(self, item: Item) -> None:
        """Record that the item has one more job that ITEM CANCEL has removed."""

    def failed_item(self, item: Item) -> None:
        """Record that an operation gave the item its first DEAD or BURIED job, or removed its last one."""

    def carried(self, old: int, new: int) -> None:
        """Record that the seq of a watched job has changed from `old` to `new`."""

    def unwatched(self, seq: int, handles: Handles) -> None:
        """Record that the watched job with this seq has ended."""


class State:
    """All data that the log determines. Two states are equal iff their snapshots are the same bytes."""

    __slots__ = (
        "allowed",
        "before_ms",
        "body_bytes_min",
        "clock_ms",
        "clone",
        "cluster_id",
        "cluster_map",
        "dead",
        "delays",
        "disordered",
        "effects",
        "errors",
        "events",
        "fair",
        "fenced",
        "fragments",
        "groups",
        "index",
        "items",
        "latencies",
        "leader",
        "leases",
        "level",
        "membership",
        "mirror",
        "next_id",
        "next_seq",
        "numbers",
        "online",
        "opened",
        "pager",
        "promoted",
        "pulses",
        "put_item",
        "queues",
        "records",
        "remembered_keys",
        "retained_keys",
        "route_steps_left",
        "running",
        "seed",
        "seqs_since_ms",
        "servers",
        "sessions",
        "settings",
        "spent",
        "spread_left",
        "term",
        "topics",
        "ttls",
        "turned_items",
        "undo",
        "users",
        "watches",
        "workers",
    )

    def __init__(self) -> None:
        self.index = 0                              # of the last applied log entry
        self.term = 0                               # of the last Lead
        self.leader: str | None = None              # of the last Lead
        self.clock_ms = 0                           # replicated time, never goes back
        self.before_ms = 0                          # what it was before the present entry; not part of a snapshot
        self.cluster_id: bytes | None = None        # of the first Lead
        self.cluster_map: ClusterMap | None = None  # which cluster owns which names; None: this one owns all
        self.settings = ClusterSettings()           # never altered: a change makes a new one
        self.membership = Membership()              # none before the first Lead
        self.servers = ServerIds()                    # the same names as in the membership
        self.online = True                          # the service as a whole, see SwitchService
        self.level = FIRST_LEVEL                    # of features, see levels.py
        self.mirror: MirrorState | None = None           # of a replica; then nothing below has anything
        self.promoted = False                       # it was a replica
        self.fenced: str | None = None              # the id of the replica for which the service is off
        self.next_id = 1
        self.next_seq = 1
        self.seqs_since_ms = 0                      # older seqs carry no time: their jobs count as waiting since then
        self.queues = Queues()
        self.items = Items(self.queues)
        self.pager: Pager | None = None             # if jobs may be outside memory; not part of the state,
        self.body_bytes_min = 1 << 63               # nor is from what size on bodies may be without their jobs
        self.fair: FairScheduler | None = None           # groups and their shares, from the first use of them on
        self.groups = GroupTable()                  # the settings of groups
        self.running: dict[int, RunningJob] = {}    # in rising id (ids only grow), unless
        self.disordered = False                     # an undone batch brought some back: see in_order()
        self.leases = Leases()
        self.delays = Delays()
        self.ttls = self.queues.ends                # the same list: TTLs of READY jobs, and pauses of queues
        self.dead: dict[str, JobList[Job]] = {}     # the READY dead jobs, by the queue they came from
        self.numbers: dict[int, AnyJob] = {}        # the numbered jobs in memory
        self.retained_keys = RetainedKeys()
        self.errors = ErrorTexts()
        self.remembered_keys = RememberedKeys()
        self.records = Records(self.queues.settings)
        self.sessions = Sessions()
        self.workers = Workers(self.sessions.by_number)
        self.topics = Topics()
        self.pulses = Pulses()
        self.users: dict[str, User] = {}            # never altered: a change makes a new one
        self.events = EventLog()                    # of which the count is state
        self.watches = Watches()                    # not part of the state,
        self.latencies = LatencyMeter()             # nor are these
        self.clone: CloneUpload | None = None
        self.fragments: Collected | None = None
        # Only meaningful while an entry is applied: its random bits; the item of its last Put; its work so far
        # (limits.SPENT_MAX) and its effects; the items finished by the current operation; the steps of the current
        # batch.
        self.seed = 0
        self.put_item: str | None = None
        self.spread_left: int | None = None         # jobs that the present batch may still put into several queues
        self.route_steps_left: int | None = None    # words that it may still compare with patterns
        self.spent = 0
        self.effects = Effects()
        self.turned_items: list[tuple[str, ItemTurn]] = []
        self.undo: UndoLog | None = None
        # Of the current GetWith, by pulse: the number of free grants, and the queues opened for them.
        self.allowed: dict[str, int] = {}
        self.opened: dict[str, list[Queue]] = {}

    def keep_in(self, pager: Pager | None) -> None:
        """Use this pager from now on to decide which jobs are in memory; None: all jobs are."""
        self.pager = pager
        if pager is None:
            return
        pager.pages.numbers = self.numbers
        self.records.store = pager.pages
        if not pager.resident:
            self.body_bytes_min = pager.pages.bodies.bytes_min

    def held(self, data: bytes) -> Data:
        """Return the data of a new job, in a form that can leave memory if they are large."""
        if len(data) < self.body_bytes_min:
            return data
        assert self.pager is not None
        return self.pager.pages.bodies.hold(data)

    def numbered(self, number: int) -> AnyJob | None:
        """Return the numbered job of this number; None if there is none."""
        job = self.numbers.get(number)
        if job is not None or self.pager is None:
            return job
        delayed = self.delays.find(number)
        if delayed is not None:
            return delayed if number_of(delayed) == number else None
        return self.pager.pages.find(number)

    def new_seq(self) -> int:
        """Return a new seq, for a place after all others."""
        seq = self.next_seq
        self.next_seq = seq + 1
        return seq

    def next_place(self, job: AnyJob) -> int:
        """Return the seq of a job that goes to the tail of its priority; it may keep the place of its number."""
        if keeps_place(job.extras):
            return job.seq
        seq = self.new_seq()
        if job.seq in self.watches:
            self.watches.carry(job.seq, seq, self.undo)
        return seq

    def waiting_at(self, queue_name: str, seq: int) -> Job | DelayedJob | None:
        """Return the READY or DELAYED job of the queue whose place has this number; None if there is none."""
        delayed = self.delays.find(seq)
        if delayed is not None:
            return delayed if delayed.queue == queue_name else None
        queue = self.queues.by_name.get(queue_name)
        return None if queue is None else queue.find_ready(seq)

    # ---- READY

    def make_ready(
        self, queue: Queue, job: Job, active_ms: int | None = None, *, replaces: bool = False,
    ) -> None:
        """Make `job` READY at its rank and seq; `when` and the end of its TTL are determined here.

        `active_ms`: the time from which it counts as active in a queue with ORDER TIME; None: now. `replaces`: a job
        that has been READY at this place.
        """
        if queue.settings is not None and queue.settings.order is Order.TIME:
            job = replace(job, when=time_in_order(job, self.clock_ms if active_ms is None else active_ms))
        if job.extras is not None:
            extras = expiring(job.extras, self.clock_ms)
            if extras is not None and keeps_place(extras) and not replaces and self._came_before(job):
                extras = replace(extras, ready_ms=self.clock_ms)
            if extras is not job.extras:
                job = replace(job, extras=extras)
        self.add(queue, job)

    def _came_before(self, job: Job) -> bool:
        return job.seq >> limits.SEQ_BITS < self.clock_ms

    def add(self, queue: Queue, job: Job) -> None:
        """Make `job` READY at its place in the queue."""
        effects, name = self.effects, job.queue
        effects.ready[name] = None
        if job.item is None:
            self.queues.add(queue, job)
        else:
            effects.ready_items[name, job.item] = None
            item_queue = self.items.add(self.items.open(job.item), job)
            if queue.settings is None or not queue.settings.item_limit:
                self.queues.add(queue, job)
            else:
                withheld = item_queue.ready.position(job) >= item_queue.eligible
                item_queue.eligible += not withheld
                self.queues.add(queue, job, withheld)
                apply_item_limit(self.queues, self.effects, queue, item_queue)
        if job.extras is not None:
            self._index(queue, job, job.extras)
        if queue.shaped:
            self.watch(name, queue.settings)
        if self.undo is not None:
            self.undo.added(job)

    def add_plain(self, queue: Queue, job: Job) -> None:
        """Add a job without item or extras to a queue without settings: the frequent case of `add`."""
        self.effects.ready[queue.name] = None
        self.queues.add(queue, job)
        if self.undo is not None:
            self.undo.added(job)

    def remove(self, queue: Queue, job: Job) -> None:
        """Remove `job` from the READY jobs; it may come back changed."""
        self._take_out(queue, job)
        if self.items.cancelled:
            self.effects.reopened[queue.name] = None        # if it was the last one of a cancelled item
        if job.extras is not None:
            self._unindex(queue, job, job.extras)
        if queue.shaped:
            self.watch(queue.name, queue.settings)
        if self.undo is not None:
            self.undo.removed(job)

    def drop_pages(self, queue: Queue, pages: list[tuple[PagedRun, Page]]) -> None:
        """End the READY jobs of these pages without reading them; no page may be the first of its run."""
        assert self.undo is None        # what drops many jobs is not part of a batch
        if self.watches:
            self._end_in_pages([page for _, page in pages])
        for run, page in pages:
            rank = run.first.rank
            run.drop_page(page)
            self.queues.uncount_page(queue, rank, page.count, page.data_bytes)
        if self.fair is not None:
            self.fair.dropped(queue)
        self.watch(queue.name, queue.settings)

    def _take_out(self, queue: Queue, job: Job) -> None:
        if job.item is None:
            self.queues.remove(queue, job)
            return
        item_queue = self.items.in_queue(job.item, job.queue)
        assert item_queue is not None
        if queue.settings is None or not queue.settings.item_limit:
            self.items.remove(job)
            self.queues.remove(queue, job)
            return
        withheld = item_queue.ready.position(job) >= item_queue.eligible
        item_queue.eligible -= not withheld
        self.items.remove(job)
        self.queues.remove(queue, job, withheld)
        apply_item_limit(self.queues, self.effects, queue, item_queue)

    def remove_exact(self, queue: Queue, job: Job) -> Job:
        """Remove this READY job, which will be handed out; its key and number stay indexed for `hand_out`."""
        self._take_out(queue, job)
        if queue.shaped:
            self.watch(queue.name, queue.settings)
        if job.extras is not None:
            self._unlist(job, job.extras)
        return job

    def take(self, queue: Queue, item_name: str | None) -> Job:
        """Remove and return the next job of `queue` (of this item, if given), as `remove_exact`; there must be one."""
        if item_name is not None:
            job = self.items.by_name[item_name].by_queue[queue.name].ready[0]
            self._take_out(queue, job)
        elif queue.settings is not None and queue.settings.item_limit:
            job = queue.ready.first
            self._take_out(queue, job)
        else:
            job = queue.ready.take_first()
            self.queues.removed(queue, job)
            if job.item is not None:
                self.items.remove(job)
        if queue.shaped:
            self.watch(queue.name, queue.settings)
        if job.extras is not None:
            self._unlist(job, job.extras)
        return job

    # ---- DELAYED

    def defer(self, queue: Queue, job: DelayedJob) -> None:
        """Make `job` DELAYED in the queue."""
        if job.item is not None:
            self.items.defer(self.items.open(job.item), job)
        self.delays.add(queue, job)
        self.queues.delayed += 1
        self.queues.count(queue, job)
        if job.extras is not None:
            self._index(queue, job, job.extras)
        self.watch(queue.name, queue.settings)
        if self.fair is not None:
            self.fair.deferred(job)
        if self.undo is not None:
            self.undo.deferred(job)

    def undefer(self, queue: Queue, job: DelayedJob) -> None:
        """Remove `job` from the DELAYED jobs; it may come back changed."""
        releases = self.delays.remove(queue, job)
        self.queues.delayed -= 1
        self.queues.uncount(queue, job)
        if job.item is not None:
            self.items.undefer(job.item, job)
        if job.extras is not None:
            self._unindex(queue, job, job.extras)
        self.watch(queue.name, queue.settings)
        if self.fair is not None:
            self.fair.undeferred(job)
        if self.undo is not None:
            self.undo.undeferred(job, releases)

    # ---- BURIED

    def bury(self, job: BuriedJob) -> None:
        """Make `job` BURIED in its queue."""
        queue = self.queues.get_any(job.queue)
        if queue.buried is None:
            queue.buried = JobList()
            self.queues.with_buried[job.queue] = None
        queue.buried.add(job)
        self.queues.buried += 1
        if job.item is not None:
            self.items.bury(self.items.open(job.item), job)
            self.events.endings.append((FAILED_ITEM, job.item))
        if job.extras is not None:
            self._index_number(job, job.extras)
        if job.seq in self.watches:
            self._tell_death(job, JobState.BURIED)
        if self.undo is not None:
            self.undo.buried(job)

    def unbury(self, job: BuriedJob) -> None:
        """Remove `job` from the BURIED jobs; it may come back changed."""
        queue = self.queues.find(job.queue)
        assert queue is not None
        assert queue.buried is not None
        queue.buried.remove(job)
        self.queues.buried -= 1
        if not queue.buried.size:
            queue.buried = None
            del self.queues.with_buried[job.queue]
        if job.item is not None:
            self.items.by_name[job.item].unbury(job)
            self.events.endings.append((FAILED_ITEM, job.item))
        if job.extras is not None:
            self._unindex_number(job, job.extras)
        if self.undo is not None:
            self.undo.unburied(job)

    # ---- RUNNING

    def hand_out(self, queue: Queue, job: Job, lease_ms: int | None, then: Then) -> RunningJob:
        """Make the job just taken RUNNING under a new id, with a lease of `lease_ms` or without limit.

        In a queue with a rate it uses up one of the free grants (GetWith.free).
        """
        number = self.next_id
        self.next_id = number + 1
        self.spent += len(job.data)
        deadline_ms = None if lease_ms is None else self.clock_ms + lease_ms
        extras = job.extras
        if extras is not None:
            extras = handed_out(extras)
        running = RunningJob(
            number, job.queue, -job.rank, job.data, job.item, deadline_ms, then, job.when, job.seq, job.attempts + 1,
            job.at_ms, extras, lease_ms,
        )
        queue.counters[TAKEN] += 1
        events = self.events
        events.seq += 1
        if events.recorded:
            events.record("TAKE", running.queue, running.priority, number)
        if not number & self.latencies.mask:
            self.latencies.taken(number, queue.name, self.clock_ms, max(job.seq >> limits.SEQ_BITS, self.seqs_since_ms))
        if (
            not queue.shaped and job.item is None and self.fair is None
            and (extras is None or (extras.key is None and extras.error is None))
        ):
            queue.taken[number] = None          # the part of `start` that nearly all need
            self.running[number] = running
            if deadline_ms is not None:
                self.leases.add(running)
            if extras is not None and extras.counts is not None:
                running.started_ms = self.clock_ms
                self.numbers[extras.counts.number or job.seq] = running
        else:
            if extras is not None and extras.counts is not None:        # no call, as every hand-out passes here
                running.started_ms = self.clock_ms
            if self.fair is not None:
                running.since_ms = self.clock_ms
            if queue.settings is not None and queue.settings.pulse in self.allowed:
                self._take_grant(running, queue.settings.pulse)
            self.start(queue, running)
        return running

    def _take_grant(self, job: RunningJob, pulse: str) -> None:
        """Use up one of the free grants; after the last one the queues of the pulse are closed."""
        job.pulse = pulse
        self.pulses.count(self.pulses.by_name[pulse], 1, self.clock_ms)
        self.allowed[pulse] -= 1
        if not self.allowed[pulse]:
            self.disallow(pulse)

    def allow(self, pulse: str, count: int, queues: Iterable[Queue]) -> None:
        """Let these queues of this pulse hand out `count` jobs together, until `disallow`."""
        self.allowed[pulse] = count
        opened = self.opened.setdefault(pulse, [])
        for queue in queues:
            queue.granted = True
            self.queues.reindex(queue)
            opened.append(queue)

    def disallow(self, pulse: str) -> None:
        """Close the queues that `allow` opened."""
        for queue in self.opened.pop(pulse, ()):
            queue.granted = False
            self.queues.reindex(queue)

    def start(self, queue: Queue, job: RunningJob) -> None:
        """Make `job` RUNNING; its id must be greater than the ids of all other running jobs (but see undo.py)."""
        queue.taken[job.id] = None
        if self.fair is not None:           # before anything looks at the groups of the queue
            self.fair.started(job)
        if queue.shaped and queue.settings is not None:
            queue.used_ms = self.clock_ms
            if queue.settings.limit:
                self.queues.reindex(queue)
        if job.item is not None:
            item_queue = self.items.start(self.items.open(job.item), job.queue)
            if queue.settings is not None and queue.settings.item_limit:
                apply_item_limit(self.queues, self.effects, queue, item_queue)
        self.running[job.id] = job
        if job.deadline_ms is not None:
            self.leases.add(job)
        if job.extras is not None:
            self._index_key(queue, job, job.extras)

    def stop(self, number: int, ran_ms: int | None = None, *, charged: bool = True) -> RunningJob | None:
        """End the hand-out with the id `number`, which becomes void; None if there is none. The caller must place its
        job.

        Its group is `charged` for `ran_ms`, or for the time since its hand-out or last charge.
        """
        job = self.running.pop(number, None)
        if job is None:
            return None
        if number in self.latencies.started:
            self.latencies.ended(number, job.queue, self.clock_ms)
        if (self.fair is not None or ran_ms is not None) and charged:
            self.charge(job, ran_ms)
        queue = self.queues.by_name[job.queue]
        del queue.taken[number]
        if self.undo is not None:
            self.undo.stopped(job)
        if self.fair is not None:
            self.fair.stopped(job)
        if queue.shaped and queue.settings is not None:
            queue.used_ms = self.clock_ms
            if queue.settings.limit:
                self.queues.reindex(queue)
                if queue.ready.size:
                    self.effects.reopened[job.queue] = None
        if job.item is not None:
            item_queue = self.items.stop(job.item, job.queue)
            if queue.settings is not None and queue.settings.item_limit:
                apply_item_limit(self.queues, self.effects, queue, item_queue)
        if job.deadline_ms is not None:
            self.leases.remove(job)
        if job.session is not None:
            self.sessions.unbind(job)
        if job.extras is not None:
            self._unindex_key(queue, job, job.extras)
        return job

    def drop_clone(self) -> None:
        """Abandon the CLONE in progress, if there is one."""
        if self.clone is not None:
            self.clone.drop()
            self.clone = None

    def use_fair(self) -> FairScheduler:
        """Turn groups on, if they are not in use yet, and return their scheduler."""
        scheduler = self.fair
        if scheduler is None:
            if self.undo is not None:
                self.undo.used_fair()
            scheduler = self.fair = self.queues.fair = FairScheduler(self.queues, self.clock_ms, self.groups)
            scheduler.offers.begin()
        return scheduler

    def charge(self, job: RunningJob, ran_ms: int | None) -> None:
        """Charge the group of a running job for `ran_ms`, or for the time since its hand-out or last charge."""
        scheduler = self.use_fair()
        if ran_ms is None:
            ran_ms = max(0, self.clock_ms - max(job.since_ms, scheduler.started_ms))
        self.spent += RANKED_STEPS * limits.STEP * scheduler.charge(group_of(job), ran_ms * 1000)

    def replace_ready(self, *, begins: bool) -> None:
        """Mark the time in which READY jobs are removed and put back changed, so that groups keep their places."""
        if self.fair is not None:
            if begins:
                self.fair.hold()
            else:
                self.fair.release()

    def in_order(self) -> dict[int, RunningJob]:
        """Return the running jobs in the order of their ids."""
        if self.disordered:
            self.running = dict(sorted(self.running.items()))
            self.disordered = False
        return self.running

    def swap(self, old: RunningJob, new: RunningJob) -> None:
        """Replace a running job with a changed one that has the same id, queue and key."""
        queue = self.queues.by_name[old.queue]
        if self.undo is not None:
            self.undo.swapped(old, new)
        if old.item != new.item:
            if new.item is not None:
                item_queue = self.items.start(self.items.open(new.item), new.queue)
                self._apply_item_limit(queue, item_queue)
            if old.item is not None:
                self._apply_item_limit(queue, self.items.stop(old.item, old.queue))
        if old.priority != new.priority and new.session is not None:
            self.sessions.by_number[new.session].release = None
        self.running[new.id] = new
        if self.fair is not None and old.priority != new.priority:
            self.fair.open.swapped(queue, group_of(new), old, new)
        if old.deadline_ms is not None:
            self.leases.remove(old)
        if new.deadline_ms is not None:
            self.leases.add(new)
        if new.extras is not None:
            self._index_key(queue, new, new.extras)

    def _apply_item_limit(self, queue: Queue, item_queue: ItemQueue) -> None:
        if queue.settings is not None and queue.settings.item_limit:
            apply_item_limit(self.queues, self.effects, queue, item_queue)

    # ---- extras

    def _index_key(self, queue: Queue, job: AnyJob, extras: Extras) -> None:
        """Index the job by its key and its number, and its error by its queue."""
        if extras.key is not None:
            _keys(queue)[extras.key] = job
        self._index_number(job, extras)

    def _unindex_key(self, queue: Queue, job: AnyJob, extras: Extras) -> None:
        if extras.key is not None:
            _drop_key(queue, extras.key)
        self._unindex_number(job, extras)

    def _index_number(self, job: AnyJob, extras: Extras) -> None:
        if extras.counts is not None:
            self.numbers[extras.counts.number or job.seq] = job
        if extras.error is not None:
            self.errors.attach(extras.error, job.queue)

    def _unindex_number(self, job: AnyJob, extras: Extras) -> None:
        if extras.counts is not None:
            del self.numbers[extras.counts.number or job.seq]
        if extras.error is not None:
            self.errors.detach(extras.error)

    def dependency_met(self, queue: Queue, before: DelayedJob, job: DelayedJob) -> None:
        """Record that `job`, which replaced `before` in the DELAYED list, waits for one item fewer."""
        if job.item is not None:
            self.items.undefer(job.item, before)
            self.items.defer(self.items.by_name[job.item], job)
        if job.extras is not None:
            self._index_key(queue, job, job.extras)

    def _index(self, queue: Queue, job: Job | DelayedJob, extras: Extras) -> None:
        self._index_key(queue, job, extras)
        if isinstance(job, Job):
            if extras.expires_at_ms is not None:
                self.ttls.add((extras.expires_at_ms, job.seq, job))
            if extras.origin is not None:
                self.dead.setdefault(extras.origin, JobList()).add(job)
                if job.item is not None:
                    self.items.by_name[job.item].add_dead(job)
                    self.events.endings.append((FAILED_ITEM, job.item))
                if job.seq in self.watches:
                    self._tell_death(job, JobState.DEAD)

    def _unindex(self, queue: Queue, job: Job | DelayedJob, extras: Extras) -> None:
        self._unindex_key(queue, job, extras)
        if isinstance(job, Job):
            self._unlist(job, extras)

    def _unlist(self, job: Job, extras: Extras) -> None:
        """Remove a READY job from the lists of expiring and of dead jobs."""
        if extras.expires_at_ms is not None:
            self.ttls.remove((extras.expires_at_ms, job.seq, job))
        if extras.origin is not None:
            jobs = self.dead[extras.origin]
            jobs.remove(job)
            if not jobs.size:
                del self.dead[extras.origin]
            if job.item is not None:
                self.items.by_name[job.item].remove_dead(job)
                self.events.endings.append((FAILED_ITEM, job.item))

    # ---- clients that wait for the end of a job

    def tell_end(self, seq: int, end: JobEnded | NotFound) -> None:
        """Notify the clients that wait for the watched job with this seq that it ends now."""
        outcomes = self.effects.outcomes
        if outcomes is None:
            outcomes = self.effects.outcomes = {}
        for handle in self.watches.end(seq, self.undo):
            outcomes[handle] = end

    def _tell_death(self, job: Job | BuriedJob, state: JobState) -> None:
        self.tell_end(job.seq, JobEnded(job.queue, state, self.error_of(job)))

    def error_of(self, job: AnyJob) -> bytes:
        """Return the error text that a worker left with the job; b"" if there is none. Raises PageLost."""
        text = None if job.extras is None else self.errors.find(job.extras.error)
        return b"" if text is None else bytes_of(text)

    def _end_in_pages(self, pages: list[Page]) -> None:
        """End the watched jobs of these pages, which are dropped unread; only numbered jobs can be watched in pages."""
        assert self.pager is not None
        last, numbers = max([page.seq for page in pages]), {page.number for page in pages}
        for seq in [seq for seq in self.watches if seq <= last]:
            if seq not in self.numbers and self.pager.pages.page_of(seq) in numbers:
                self.tell_end(seq, NOT_FOUND)

    # ---- the end

    def close(self, queue_name: str, item_name: str | None) -> tuple[bool, bool]:
        """Close the queue and item that a job has left; returns whether each is finished (FINQ, FINI)."""
        item_done = item_name is not None and self.close_item(item_name, queue_name)
        queue = self.queues.by_name.get(queue_name)
        if queue is None:
            self.queues.drop_unused(queue_name)
            return True, item_done
        if queue.taken or queue.ready.size or not self.queues.close(queue):
            return False, item_done
        self.effects.ended[queue_name] = None
        events = self.events
        if events.recorded:
            events.endings.append((ENDED_QUEUE, queue_name))
        else:
            events.seq += 1             # nobody can tell in which order
        return True, item_done

    def close_item(self, item_name: str, queue_name: str) -> bool:
        """Close the item that a job has left in the queue; returns whether the item is finished (FINI)."""
        item = self.items.by_name.get(item_name)
        if item is None:
            return True
        item_queue = item.by_queue.get(queue_name)
        if item_queue is not None and item_queue.finished:
            del item.by_queue[queue_name]
            self.effects.ended_items[queue_name, item_name] = None
        return self.end_item(item_name)

    def new_item_name(self, seed: int) -> str:
        """Return a name for a new item (spec/state-machine 5.3).

        It ends with the name of this cluster, if the cluster is in the map, so that clients find the item.
        """
        known = self.cluster_map
        return self.items.new_name(seed, f".{known.own}" if known is not None and known.own is not None else "")

    def hold_item(self, item: Item, hold: Hold | None) -> None:
        """Set the hold of the item; None: remove it, and the caller must call `end_item`."""
        if self.undo is not None:
            self.undo.held(item, item.hold)
        item.hold = hold
        self.items.holds.set(item.name, hold)

    def end_item(self, item_name: str) -> bool:
        """End the item that has lost a job or its hold, if nothing is left; returns whether it is finished (FINI)."""
        item = self.items.by_name.get(item_name)
        if item is None:
            return True
        if item.unfinished or item.hold is not None:
            if item.settled and self.delays.dependents.waiting:
                self.turned_items.append((item_name, ItemTurn.ENDED))
            return False
        self.items.forget(item)
        if self.undo is not None:
            self.undo.ended_item(item)
        if self.delays.dependents.waiting:
            cancelled = item.fate is not None and (item.fate.cancelling or item.fate.tainted)
            self.turned_items.append((item_name, ItemTurn.CANCELLED if cancelled else ItemTurn.ENDED))
        events = self.events
        if events.recorded:
            events.endings.append((ENDED_ITEM, item_name))
        else:
            events.seq += 1
        return True

    def count_done(self, item_name: str) -> None:
        """Count a job of this item that ends with DONE; the item is not closed yet."""
        item = self.items.by_name[item_name]
        item.done += 1
        if self.undo is not None:
            self.undo.counted_done(item)

    def count_cancelled(self, item: Item) -> None:
        """Count a job of this item that ITEM CANCEL removes."""
        if item.fate is None:
            item.fate = Fate()
        item.fate.cancelled += 1
        if self.undo is not None:
            self.undo.counted_cancelled(item)

    def end_operation(self) -> None:
        """Report the queues and items finished by the operation as events (spec/events 2.2).

        Also reports items of which a job has died, and depths that were crossed.
        """
        events = self.events
        endings = sorted(events.endings, key=lambda ending: ending[0])
        events.endings.clear()
        for what, name in endings:
            if what == WATCHED_QUEUE:
                self._look_at_depth(name)
            elif what == FAILED_ITEM:
                self._look_at_failures(name)
            else:
                events.tell("FINQ" if what == ENDED_QUEUE else "FINI", name)

    def _look_at_failures(self, item_name: str) -> None:
        """Report FAILI when the item has its first DEAD or BURIED job, and decide for the jobs that wait for it."""
        item = self.items.by_name.get(item_name)
        if item is None:
            return
        waits = bool(self.delays.dependents.waiting)
        if waits and item.settled:
            self.turned_items.append((item_name, ItemTurn.ENDED))
        if (item.lost > 0) == item.failed:
            return
        item.failed = not item.failed
        if self.undo is not None:
            self.undo.failed_item(item)
        if item.failed:
            self.events.tell("FAILI", item_name)
            if waits:
                self.turned_items.append((item_name, ItemTurn.FAILED))

    def watch(self, queue_name: str, settings: QueueSettings | None) -> None:
        """Check the depth of this queue at the end of the operation, as its number of waiting jobs may change."""
        if settings is not None and settings.alarm:
            self.events.endings.append((WATCHED_QUEUE, queue_name))

    def _look_at_depth(self, queue_name: str) -> None:
        """Report DEPTH alternately when the queue reaches its ALARM and when it falls to half of it."""
        queue = self.queues.find(queue_name)
        if queue is None or queue.settings is None or not queue.settings.alarm:
            return
        alarm, alarmed = queue.settings.alarm, queue.settings.alarmed
        waiting = queue.ready_count + queue.deferred
        if waiting <= alarm // 2 if alarmed else waiting >= alarm:
            self.set_alarmed(queue_name, not alarmed)
            self.events.tell("DEPTH", queue_name, alarm // 2 if alarmed else alarm)

    def set_alarmed(self, queue_name: str, alarmed: bool) -> None:
        """Set which of the two depths of a queue with ALARM is reported next."""
        queue = self.queues.find(queue_name)
        assert queue is not None
        queue.settings = replace(self.queues.settings[queue_name], alarmed=alarmed)
        self.queues.settings[queue_name] = queue.settings
        if self.undo is not None:
            self.undo.alarmed(queue_name, alarmed)

    def grant_grace(self, grace_ms: int, *, once: bool = True) -> None:
        """Extend leases and sessions that would end sooner to `grace_ms` from now, as clients could not use them.

        `once`: skip those that were already extended and not used since.
        """
        if grace_ms > 0:
            self.leases.extend(self.clock_ms, grace_ms, once=once)
            self.items.holds.extend(self.clock_ms, grace_ms, once=once)
            self.sessions.extend(self.clock_ms + grace_ms, once=once)

    def grant_failover_grace(self, grace_ms: int, silence_ms: int) -> None:
        """Extend leases and sessions because there was no leader for `silence_ms`, a lease at most by its own length.

        A cluster may have been without a leader for hours, which no lease should last: `grace_ms` limits that part too.
        """
        if grace_ms > 0:
            from_ms = self.clock_ms + max(0, min(silence_ms, grace_ms))
            self.leases.extend(from_ms, grace_ms, by_length=True)
            self.items.holds.extend(from_ms, grace_ms, by_length=True)
            self.sessions.extend(from_ms + grace_ms)


def _keys(queue: Queue) -> dict[str, AnyJob]:
    if queue.keys is None:
        queue.keys = {}
    return queue.keys


def _drop_key(queue: Queue, key: str) -> None:
    assert queue.keys is not None
    del queue.keys[key]
    if not queue.keys:
        queue.keys = None
