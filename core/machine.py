"""The interface between the queue and its replication: `apply`, `snapshot`, `restore`; the rest only reads.

The queue is a function of the log. Only `apply` changes it, and the outcome of `apply` depends only on the state and
its arguments: time comes as `now_ms`, randomness as `seed`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from sockpqd.core import levels, limits, queries
from sockpqd.core.clusters.cluster_map import ClusterMap
from sockpqd.core.fair.group_settings import GroupSettings
from sockpqd.core.fair.levels import FairSettings
from sockpqd.core.find import FindPlace, FindStep, Search, find
from sockpqd.core.handlers.cluster.elsewhere import elsewhere
from sockpqd.core.handlers.jobs.watch import awaited_job, death_of
from sockpqd.core.handlers.known_work import known_work
from sockpqd.core.handlers.table import EXECUTE, OWNED
from sockpqd.core.members.membership import Membership
from sockpqd.core.ops.cluster import Lead, Resume
from sockpqd.core.ops.effects import Effects
from sockpqd.core.ops.entry import Operation, continues, decode_entry
from sockpqd.core.ops.events import GAP, Event
from sockpqd.core.ops.jobs import AnySelector, AwaitSelector
from sockpqd.core.ops.queues import JobState
from sockpqd.core.ops.replies import Elsewhere, Reply
from sockpqd.core.ops.settings import ClusterSettings, QueueSettings
from sockpqd.core.ops.users import User
from sockpqd.core.pages.pager import Pager
from sockpqd.core.pages.pages import Pages
from sockpqd.core.pages.paging_counts import PagingCounts
from sockpqd.core.pulse.pulse import Pulse
from sockpqd.core.queries import (
    FairGroup,
    FairLevel,
    GroupCounts,
    ItemJob,
    JobView,
    QueueCounts,
    QueueFlow,
    QueueHistory,
    StateSums,
)
from sockpqd.core.rules.activate import pass_time, release
from sockpqd.core.rules.expire import end_due
from sockpqd.core.rules.fair_choice import available, charge_relisted, has_open, open_to_fair
from sockpqd.core.rules.hand_out import available_of_item
from sockpqd.core.rules.items.cancel import any_to_remove
from sockpqd.core.rules.pulses import time_out_results
from sockpqd.core.rules.select import offering
from sockpqd.core.sessions.session import Session
from sockpqd.core.sessions.workers import WorkerPool
from sockpqd.core.snapshot import upload, write
from sockpqd.core.state import State
from sockpqd.core.store.body import Data
from sockpqd.core.store.items.counts import ItemCounts, ItemSummary
from sockpqd.core.store.job import AnyJob, RunningJob, first_taken
from sockpqd.core.store.latencies import Latencies

GRACIOUS = (Lead, Resume)       # no lease, session or TTL ends in an entry that begins with one of these


class FromOrigin(Struct, frozen=True):
    """An entry of the origin that was executed on the mirror, with its replies; or a snapshot that is the mirror now.

    `data`: the entry `index`; b"": a snapshot taken there. `hash`: of the origin's chain, in a snapshot. `mirrored`:
    what the entry has executed on a mirror of the origin, which was a replica itself then.
    """

    index: int
    data: bytes
    hash: bytes
    replies: list[Reply]
    mirrored: list[FromOrigin] | None = None


class Applied(Struct):
    """The replies to the operations of an entry, in order, and its effects.

    There are fewer replies than operations when the entry was cut short: see Machine.apply.
    """

    replies: list[Reply]
    effects: Effects
    events: list[Event] = []            # of the recorded types: see Machine.record
    mirrored: list[FromOrigin] | None = None        # what the entry of a replica has executed on its mirror


class JobTotals(Struct, frozen=True):
    """The sums that TOTAL reports (spec/state-machine 5.4)."""

    queues: int         # with an unfinished job or settings
    priorities: int     # pairs (queue, priority) with a READY or DELAYED job
    jobs: int           # READY or DELAYED
    running: int


class Machine:
    """The queue state machine of one node."""

    def __init__(self, known_level: int | None = None, paging: Callable[[], Pager] | None = None) -> None:
        """Create an empty state.

        `known_level`: the highest feature level that this node knows, by default the program's. `paging`: returns an
        empty pager for a state, if jobs may be outside memory.
        """
        self.known_level = levels.FEATURE_LEVEL if known_level is None else known_level
        self._paging = paging
        self._own = State()                     # of this cluster
        self._own.keep_in(self._new_pager())
        self._state = self._own                 # what is read: of a replica the mirror, else the same
        self.replaced = 0                       # how often another state than before was read after an entry
        self.failed: Operation | None = None    # the operation that made apply() raise

    def apply(self, index: int, now_ms: int, seed: int, operations: Sequence[Operation]) -> Applied:
        """Execute one log entry; returns the replies and the effects.

        `index`: its position in the log, greater than the last one. `now_ms`: the leader's clock, Unix time in
        milliseconds; replicated time follows it but never goes back. `seed`: 64 random bits. Everything that is due is
        executed first (while the service is online), then the operations are executed in order. An exception is a bug,
        never a client's mistake, and leaves the state undefined: the node must stop.

        If the entry would take too long, because the operations cost more than could be foreseen, the rest of them is
        not executed on any node: they get no reply and are proposed again. The first one is always executed, and so is
        a hand-out directly after its Put.
        """
        own = self._own
        applied = self._execute(own, index, now_ms, seed, operations)
        if own.mirror is None and self._state is own:
            return applied                      # it is no replica
        self._follow_origin(own, applied)
        self._show_if_replaced()
        return applied

    def _read_state(self) -> State:
        """Return the state to read: the mirror or, early in a promoted cluster's log, the mirror of that mirror."""
        state = self._own
        while state.mirror is not None:
            state = state.mirror.state
        return state

    def _show_if_replaced(self) -> None:
        """Switch readers to the state that is to be read, if that has changed."""
        state = self._read_state()
        if self._state is not state:
            self.replaced += 1
            self._show(state)

    def _show(self, state: State) -> None:
        """Make this the state that is read, and carry over what is local to this node."""
        before, self._state = self._state, state
        recorded = before.events.recorded
        before.events.recorded, before.events.of_entry = frozenset(), []
        state.events.recorded = recorded        # the same events, where a mirror was promoted
        state.queues.gone = None if before.queues.gone is None else {}
        state.latencies.mask = before.latencies.mask

    def _follow_origin(self, state: State, applied: Applied) -> None:
        """Execute the entries of the origin that this entry of a replica has queued."""
        mirror = state.mirror
        if mirror is None or not mirror.steps:
            return
        steps, mirror.steps = mirror.steps, []
        self._show_if_replaced()
        applied.mirrored, applied.events = [], []
        for step in steps:
            done: Applied | None = None
            if step.data:
                entry = decode_entry(step.data)
                done = self._execute(mirror.state, step.index, entry.now_ms, entry.seed, entry.operations)
                self._follow_origin(mirror.state, done)
                applied.events += done.events
            replies, mirrored = ([], None) if done is None else (done.replies, done.mirrored)
            applied.mirrored.append(FromOrigin(step.index, step.data, step.hash, replies, mirrored))

    def _execute(
        self, state: State, index: int, now_ms: int, seed: int, operations: Sequence[Operation],
    ) -> Applied:
        _begin_entry(state, index, now_ms, seed)
        effects, events = state.effects, state.events
        if state.watches.asked:
            state.watches.forget_unkept()
        if state.records.due.first_ms <= state.clock_ms:
            state.records.expire(state.clock_ms)
        if state.records.total_bytes > state.settings.retained_bytes:
            state.records.limit(state.settings.retained_bytes)
        # A new leader, or one that can log again, grants a grace period before anything may end; what has used up its
        # grace ends with the next entry.
        if state.online and not (operations and type(operations[0]) in GRACIOUS):
            time_out_results(state, pass_time(state, end_due(state)))
            if events.endings:
                state.end_operation()
                release(state)
        replies: list[Reply] = []
        add, turned_items, endings = replies.append, state.turned_items, events.endings
        execute = EXECUTE if state.cluster_map is None else OWNED
        enough = limits.SPENT_MAX
        try:
            for bits, operation in enumerate(operations, seed):
                if state.spent >= enough and replies and not continues(operation, operations[len(replies) - 1]):
                    break
                add(execute[type(operation)](state, operation, bits))
                if endings:
                    state.end_operation()
                if turned_items:
                    release(state)
                if state.fair is not None:
                    charge_relisted(state, state.fair)
            state.retained_keys.expire(state.clock_ms)
            if state.errors.pending:
                state.errors.settle(state.queues.settings)
            state.remembered_keys.expire(state.clock_ms)
            if state.records.unsettled:
                state.records.settle(state.clock_ms)
            if state.fair is not None:
                state.fair.end_entry(state.effects)
        except BaseException:
            self.failed = operation
            raise
        return Applied(replies, effects, state.events.of_entry)

    def known_work(self, operation: Operation) -> int:
        """Return the work of the operation beyond its `cost` in the current state."""
        return known_work(self._own, operation)

    def snapshot(self, *, by_reference: bool = False) -> Iterator[bytes]:
        """Return the state in chunks of 64 KiB to 1 MiB (the last may be smaller).

        `by_reference`: for this node only; pages are named (`references`) instead of read.
        The snapshot is created while it is read: `apply` must not be called before the last chunk, unless
        a forked child reads it.
        """
        return write.write(self._own, users=True, by_reference=by_reference)

    def export(self, *, users: bool = False) -> Iterator[bytes]:
        """Return a snapshot for a client, by default without the users, whose keys it must not learn.

        Of a replica it is one of the origin.
        """
        return write.write(self._state, users=users)

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Replace the state with the one in a snapshot, given in pieces of any size.

        Raises SnapshotError, or PageLost if a page that it names is missing, and then changes nothing.
        """
        old, pager = self._own, self._new_pager()
        read = self._state
        try:
            self._own = upload.restore(chunks, self.known_level, pager)
        except BaseException:
            if pager is not None:
                pager.pages.drop()
            raise
        self._show(self._read_state())
        old.drop_clone()
        read.drop_clone()
        if old.mirror is not None and old.mirror.arriving is not None:
            old.mirror.arriving.upload.drop()
        if read.pager is not None:
            read.pager.pages.drop()

    def _new_pager(self) -> Pager | None:
        return None if self._paging is None else self._paging()

    def page_out(self) -> bool:
        """Page out some jobs if too many are in memory; returns whether there may be more to do.

        Local to this node: no reply and no snapshot depends on it. Call it only between entries. Raises PageLost, as
        any call that reads a page may: then the state is incomplete, and the node must stop.
        """
        state, pager = self._state, self._state.pager
        if state.records.page_out():
            return True
        return pager is not None and pager.page_out_some(state.queues, state.delays)

    def ended(self, number: int) -> JobView | None:
        """Return the ended job of this number, if there is a record of it. Raises PageLost."""
        return queries.ended(self._state, number)

    def queue_of_ended(self, number: int) -> str | None:
        """Return the queue of the ended job of this number, if there is a record, even an expired one.

        Reads no page.
        """
        return self._state.records.queue_of(number)

    def result(self, number: int) -> bytes | None:
        """Return the result of a job that has ended; None if there is no record of it. Raises PageLost."""
        return queries.result(self._state, number)

    def retained(self, queue: str) -> tuple[int, int]:
        """Return the number of records of ended jobs of the queue, and their bytes."""
        return self._state.records.counts(queue, self._state.clock_ms)

    def ended_jobs(
        self, queue: str, count: int, before: int | None = None,
    ) -> tuple[list[JobView], int | None]:
        """Up to `count` ended jobs of the queue: see queries.ended_jobs. Raises PageLost."""
        return queries.ended_jobs(self._state, queue, count, before)

    @property
    def crowded(self) -> bool:
        """True if the memory budget is exceeded by so much that page_out() should be called at once."""
        state, pager = self._state, self._state.pager
        return state.records.crowded or (pager is not None and pager.crowded(state.queues))

    @property
    def hot_bytes(self) -> int:
        """The approximate memory of the waiting jobs that are not in pages, in bytes."""
        queues, pager = self._state.queues, self._state.pager
        return queues.waiting_bytes + limits.JOB_BYTES * queues.waiting if pager is None else pager.hot_bytes(queues)

    @property
    def pages(self) -> Pages | None:
        """The pages of jobs outside memory, for their statistics; None if all jobs are in memory."""
        pager = self._state.pager
        return None if pager is None else pager.pages

    def record(self, types: Iterable[str]) -> None:
        """Make `apply` return the events of these types from now on. Local to this node, not part of the state.

        The end of a CLONE (GAP) is recorded with any type.
        """
        recorded = frozenset(types)
        self._state.events.recorded = recorded | {GAP} if recorded else recorded
        self._state.events.of_entry = []

    def watch(self, selector: AwaitSelector) -> tuple[int, str] | None:
        """Watch the selected job from now on, if there is one that has not ended.

        Returns its handle in `Effects.outcomes`, and its queue. Call `keep_watch` for a watch that lasts beyond the
        next entry. Local to this node, not part of the state.
        """
        job = awaited_job(self._state, selector)
        return None if job is None or death_of(job) is not None else (self._state.watches.ask(job.seq), job.queue)

    def keep_watch(self, job: int) -> None:
        """Keep watching the job with this handle, from `watch` or the reply to an Await, unless it has ended."""
        self._state.watches.keep(job)

    def unwatch(self, job: int) -> None:
        """Stop watching this job, if it has not ended."""
        self._state.watches.forget(job)

    def unwatch_all(self) -> None:
        """Stop watching all jobs, as a node does that no longer serves."""
        self._state.watches.clear()

    @property
    def watched(self) -> int:
        """The number of jobs that are watched."""
        return len(self._state.watches)

    @property
    def event_seq(self) -> int:
        """The number of the newest event: the count of events since the cluster began."""
        return self._state.events.seq

    @property
    def index(self) -> int:
        """Index of the last applied entry."""
        return self._own.index

    @property
    def term(self) -> int:
        """Term of the last Lead."""
        return self._own.term

    @property
    def leader(self) -> str | None:
        """Node of the last Lead."""
        return self._own.leader

    @property
    def clock_ms(self) -> int:
        """Replicated time: Unix time in milliseconds."""
        return self._own.clock_ms

    @property
    def cluster_id(self) -> bytes | None:
        """The id of the cluster, from the first Lead."""
        return self._own.cluster_id

    @property
    def origin_id(self) -> bytes | None:
        """Of a replica: the id of the cluster that it is a copy of, once something has come from it."""
        return None if self._own.mirror is None else self._own.mirror.state.cluster_id

    @property
    def cluster_map(self) -> ClusterMap | None:
        """The map of clusters; a new object after each change. None: this cluster owns all names."""
        return self._state.cluster_map

    def elsewhere(self, name: str) -> Elsewhere | None:
        """Return the refusal of additions to this name if this cluster does not accept them; otherwise None."""
        return elsewhere(self._state, (name,))

    @property
    def membership(self) -> Membership:
        """The members of the cluster; a new object after each change."""
        return self._own.membership

    @property
    def online(self) -> bool:
        """True if the service as a whole is online: see SwitchService."""
        return self._own.online

    @property
    def level(self) -> int:
        """The feature level of the cluster (levels.py). Above `known_level` this node must stop."""
        return self._own.level

    @property
    def mirrored(self) -> int | None:
        """Of a replica: the index of the origin's last entry that its mirror has executed. None: not a replica."""
        return None if self._own.mirror is None else self._own.mirror.reached

    @property
    def promoted(self) -> bool:
        """True if the cluster was a replica."""
        return self._own.promoted

    @property
    def fenced(self) -> str | None:
        """The id of the replica for which the service was switched off for good; None: it was not."""
        return self._own.fenced

    @property
    def server_ids(self) -> dict[str, int]:
        """The server id of each member (spec/cluster 5). For reading."""
        return self._own.servers.ids

    @property
    def max_id(self) -> int:
        """The greatest server id assigned so far."""
        return self._own.servers.max_id

    def total(self, queue: str | None) -> JobTotals:
        """Return the totals of one queue, or of all if `queue` is None."""
        queues = self._state.queues
        if queue is None:
            existing = len(queues.by_name) + len(queues.idle)
            return JobTotals(existing, queues.priorities, queues.waiting, len(self._state.running))
        one = queues.find(queue)
        if one is None:
            return JobTotals(0, 0, 0, 0)
        return JobTotals(1, len(one.ranks), one.ready_count + one.deferred, one.running)

    def sums(self) -> StateSums:
        """Return the number of jobs of all queues in each state."""
        return queries.sums(self._state)

    def names_with_buried(self) -> list[str]:
        """Return the names of the queues with BURIED jobs."""
        return list(self._state.queues.with_buried)

    def all_queue_names(self) -> Iterator[str]:
        """Return the names of all queues as of now, some perhaps twice: safe to iterate while entries are applied."""
        return queries.all_names(self._state)

    def queue_names(self, prefix: str) -> list[str]:
        """Return the names with this prefix of queues that have unfinished jobs, settings or dead jobs, each once."""
        return queries.names(self._state, prefix)

    @property
    def settings(self) -> ClusterSettings:
        """The settings of the cluster; a new object after each change."""
        return self._state.settings

    def queue_settings(self, queue: str) -> QueueSettings | None:
        """Return the settings of `queue`; None if it has none. A new object after each change."""
        return self._state.queues.settings.get(queue)

    def counts(self, queue: str) -> QueueCounts | None:
        """Return the number of jobs of `queue` in each state; None if there is no such queue."""
        return queries.counts(self._state, queue)

    def stat(self, queue: str, now_ms: int, *, awaited: bool = False) -> list[tuple[str, int]] | None:
        """Return the statistics of QUEUE STAT as pairs of name and value, in a fixed order.

        None if there is no such queue and it is not `awaited`.

        `now_ms`: the replicated time now, because the clock of the state stands still while nothing is applied.
        `awaited`: clients wait for its jobs, so it has figures even when it has no jobs.
        """
        return queries.stat(self._state, queue, now_ms, awaited=awaited)

    def on_disk(self, queue: str) -> PagingCounts:
        """Return the numbers of jobs of `queue` on this node's disk. They may differ from node to node."""
        return queries.queue_on_disk(self._state, queue)

    @property
    def expiring(self) -> Collection[str]:
        """The names of the queues with an IDLE time: a view, valid until the next entry."""
        return self._state.queues.expiring.keys()

    def used_ms(self, queue: str) -> int | None:
        """Return the last logged use of a queue with IDLE, in ms; None if it is in use or has no IDLE."""
        one = self._state.queues.expiring.get(queue)
        return None if one is None or one.taken else one.used_ms

    def urgent(self, queue: str) -> int:
        """Return the number of READY jobs of `queue` that beanstalkd calls urgent."""
        one = self._state.queues.by_name.get(queue)
        return 0 if one is None else one.urgent

    def history(self, queue: str, now_ms: int) -> QueueHistory:
        """Return the counters of `queue` and the age of its oldest READY job, as of the replicated time `now_ms`."""
        return queries.history(self._state, queue, now_ms)

    def flows(self, queues: Iterable[str]) -> list[QueueFlow | None]:
        """Return the flow of each of these queues, None where there is no such queue; cheaper than `history`."""
        return queries.flows(self._state, queues)

    def take_gone(self) -> dict[str, list[int]]:
        """Return the counters of the queues that are gone since the last call, by name, for `flow_of`.

        Counters of queues with the same name are added up. The first call returns nothing. Local to this node, not part
        of the state.
        """
        gone, self._state.queues.gone = self._state.queues.gone, {}
        return {} if gone is None else gone

    def take_latencies(self, mask: int) -> tuple[Latencies, Latencies]:
        """Return histograms of the waiting times of jobs, and of the durations of hand-outs, since the last call.

        From now on, hand-outs whose ids have none of the bits of `mask` are measured; before the first call, none are.
        Local to this node, not part of the state.
        """
        return self._state.latencies.take(mask)

    def jobs_of_item(self, item: str, count: int) -> list[ItemJob]:
        """Return up to `count` unfinished jobs of the item: see queries.jobs_of_item."""
        return queries.jobs_of_item(self._state, item, count)

    def jobs_behind_item(self, item: str, count: int) -> list[ItemJob]:
        """Return up to `count` jobs that wait for the item (AFTER)."""
        return queries.jobs_behind_item(self._state, item, count)

    def names_with_dead(self) -> list[str]:
        """Return the names of the queues in which the dead jobs died."""
        return list(self._state.dead)

    def peek(self, selector: AnySelector) -> JobView | None:
        """Return the selected job in any state, or the READY or DELAYED one at a place; None if there is none."""
        return queries.peek(self._state, selector)

    def error(self, selector: AnySelector) -> Data | None:
        """Return the error text that a worker left with this job, empty if none; None: there is no such job."""
        return queries.error(self._state, selector)

    def selected_running(self, selector: AnySelector) -> RunningJob | None:
        """Return the selected job if it is running, read-only; None if it is not, or there is none."""
        return queries.selected_running(self._state, selector)

    def error_bytes(self, queue: str) -> int:
        """Return the total bytes of the error texts of the jobs in the queue."""
        return self._state.errors.bytes_of(queue)

    def peek_queue(self, queue: str, state: JobState, count: int) -> list[JobView]:
        """Return the first `count` jobs of `queue` in this state; for DEAD, jobs that died in it."""
        jobs: list[AnyJob] = []
        while some := self.next_jobs(queue, state, count, jobs):
            jobs += some
        return self.views(jobs, state)

    def next_jobs(self, queue: str, state: JobState, count: int, jobs: Sequence[AnyJob]) -> list[AnyJob]:
        """Return some of the first `count` jobs of a queue in this state, as stored: those after `jobs`.

        Returns an empty list if there are no more.

        Turn them into views in portions (`views`). Entries may be applied between these calls.
        """
        if len(jobs) >= count:
            return []
        return queries.next_jobs(self._state, queue, state, count - len(jobs), jobs[-1] if jobs else None)

    def views(self, jobs: Iterable[AnyJob], state: JobState) -> list[JobView]:
        """Return the views of these jobs, all found in this state."""
        return queries.views(self._state, jobs, state)

    def find(self, search: Search, place: FindPlace, count: int, jobs_max: int, bytes_max: int) -> FindStep:
        """Search one section of a queue: see find.find. Raises PageLost.

        Entries may be applied between the steps.
        """
        return find(self._state, search, place, count, jobs_max, bytes_max)

    def unfinished(self, queue: str | None, item: str | None = None) -> bool:
        """Return whether `queue` (None: any) has an unfinished job (of `item`, if given)."""
        return queries.unfinished(self._state, None if queue is None else (queue,), item)

    def item(self, name: str) -> ItemCounts | None:
        """Return the figures of an item; None if there is none. Looks up each queue in which the item has jobs."""
        return queries.item_counts(self._state, name)

    def queues_of_item(self, name: str) -> int:
        """Return the number of queues in which the item has READY, DELAYED or RUNNING jobs."""
        item = self._state.items.by_name.get(name)
        return 0 if item is None else len(item.by_queue)

    def owner_of_item(self, name: str) -> str | None:
        """Return the user whose HOLD NEW created the item; None if it was not created by one."""
        item = self._state.items.by_name.get(name)
        return None if item is None else item.owner

    def is_cancelled(self, item: str | None) -> bool:
        """Return whether an item of this name exists and is cancelled."""
        return item in self._state.items.cancelled

    def held_items(self) -> Sequence[str]:
        """Return the names of the items that are held as of now."""
        return self._state.items.holds.items

    def item_summary(self, name: str) -> ItemSummary | None:
        """Return the line of ITEM LIST for an item; None if there is none."""
        return queries.item_summary(self._state, name)

    @property
    def item_totals(self) -> tuple[int, int]:
        """The number of items, and of those that are held."""
        return len(self._state.items.by_name), len(self._state.items.holds.items)

    def item_names(self) -> Sequence[str]:
        """Return the names of all items as of now."""
        return list(self._state.items.by_name)

    @property
    def next_seq(self) -> int:
        """The seq of the next job: see PurgeQueue."""
        return self._state.next_seq

    @property
    def users(self) -> Mapping[str, User]:
        """The users by name; a new object after each change."""
        return self._state.users

    @property
    def next_id(self) -> int:
        """The next hand-out id: greater than all ids assigned so far."""
        return self._state.next_id

    def queue_of(self, number: int) -> str | None:
        """Return the queue of the running job of this id; None if there is no such job."""
        job = self._state.running.get(number)
        return None if job is None else job.queue

    def running_job(self, number: int) -> RunningJob | None:
        """Return the running job of this id, read-only; None if there is no such job."""
        return self._state.running.get(number)

    def still_running(self, numbers: list[int]) -> list[int]:
        """Return the ids among these under which a job is running, in the given order."""
        running = self._state.running
        return [number for number in numbers if number in running]

    def running(self) -> list[RunningJob]:
        """Return all running jobs in rising id, read-only."""
        return list(self._state.in_order().values())

    @property
    def session_count(self) -> int:
        """The number of sessions that have not ended."""
        return len(self._state.sessions.by_number)

    def sessions(self) -> list[Session]:
        """Return all sessions by ascending number, read-only; do not show their secrets."""
        return list(self._state.sessions.by_number.values())

    def session(self, number: int) -> Session | None:
        """Return the session of this number, read-only; None if it has ended. Do not show its secret."""
        return self._state.sessions.get(number)

    def sessions_beside(self, session: int) -> int:
        """Return the number of sessions of this session's owner, itself included; 0 if there is no such session."""
        found = self._state.sessions.get(session)
        return 0 if found is None else self._state.sessions.owners.count(*found.owner)

    def topic_names(self) -> list[str]:
        """Return the names of all topics, sorted."""
        return list(self._state.topics.by_name)

    @property
    def topics(self) -> Mapping[str, Collection[tuple[str, str | None]]]:
        """The bindings of each topic, a queue with its pattern (None: all messages). Read-only."""
        return self._state.topics.by_name

    def worker(self, name: str) -> WorkerPool | None:
        """Return the worker of this name, read-only; None if there is none."""
        return self._state.workers.by_name.get(name)

    def workers(self) -> list[WorkerPool]:
        """Return all workers in name order, read-only."""
        by_name = self._state.workers.by_name
        return list(map(by_name.__getitem__, by_name))

    def taken(self, session: int) -> list[int]:
        """Return the ids of the running jobs bound to this session, rising; none if there is no such session."""
        bound = self._state.sessions.get(session)
        return [] if bound is None else sorted(bound.taken)

    def first_taken(self, session: int, count: int) -> tuple[list[int], int]:
        """Return the `count` smallest ids of the running jobs bound to this session, and how many are bound to it."""
        bound = self._state.sessions.get(session)
        return ([], 0) if bound is None else (first_taken(bound, count), len(bound.taken))

    def ready(self, queue: str) -> int:
        """Return the number of jobs of `queue` that could be handed out now."""
        one = self._state.queues.by_name.get(queue)
        return 0 if one is None else available(self._state, one)

    def ready_of_item(self, queue: str, item: str) -> int:
        """Return the number of jobs of `item` in `queue` that could be handed out now."""
        item_queue, one = self._state.items.in_queue(item, queue), self._state.queues.by_name.get(queue)
        if item_queue is None or one is None or not has_open(self._state, one, item):
            return 0
        return available_of_item(one, item_queue)

    def offering(self, queues: tuple[str, ...] | None, item: str | None) -> Iterator[str | None]:
        """Yield the names of these queues (None: of all) that could hand out a job now (of `item`, if given).

        None stands for a queue with jobs of closed groups only, or for some closed groups of the item. A view, valid
        until the next entry.
        """
        return offering(self._state, queues, item)

    def open_to_fair(self, queue: str, item: str | None) -> bool:
        """Return whether an open group has a job in the queue (of `item`), as BY FAIR requires."""
        one = self._state.queues.by_name.get(queue)
        return one is not None and open_to_fair(self._state, one, item)

    def queues_of_group(self, group: str) -> Collection[str]:
        """Return the names of the queues in which the group has READY jobs, or had when last checked."""
        return queries.queues_of_group(self._state, group)

    def nonempty(self) -> Sequence[str]:
        """Return the sorted names of queues that have jobs to hand out, perhaps only of closed groups (see `offering`).

        A view, valid until the next entry.
        """
        names: Sequence[str] = self._state.queues.nonempty
        return names

    @property
    def pulses(self) -> Mapping[str, Pulse]:
        """The pulses by name. Read-only."""
        return self._state.pulses.by_name

    @property
    def rate_limited_queues(self) -> Mapping[str, Mapping[str, None]]:
        """The names of the queues with a rate, by their pulse. Read-only."""
        return self._state.queues.of_pulse

    @property
    def groups_by_user(self) -> bool:
        """True if any queue groups its jobs by user, so that Puts have to name the user."""
        return self._state.queues.by_user > 0

    @property
    def ready_of_pulse(self) -> Mapping[str, Sequence[str]]:
        """Like `rate_limited_queues`, but only queues that need nothing but a grant to hand out a job. Read-only."""
        return self._state.queues.ready_of_pulse

    def with_rate(self, queues: Iterable[str]) -> list[tuple[str, str]]:
        """Return the queues among these that are in `ready_of_pulse`, as pairs of pulse and queue."""
        return self._state.queues.with_rate(queues)

    def with_rate_of_item(self, item: str) -> list[tuple[str, str]]:
        """Return the same pairs for all queues with READY jobs of the item."""
        found = self._state.items.by_name.get(item)
        return [] if found is None else self._state.queues.with_rate(found.nonempty)

    def with_rate_behind(self, pulse: str, queue: str, most: int) -> list[str]:
        """Return the first `most` queues of the pulse after `queue` in `ready_of_pulse`."""
        return self._state.queues.of_pulse_behind(pulse, queue, most)

    def pulse_of_job(self, number: int) -> str | None:
        """Return the pulse that granted the running job of this id, if any."""
        job = self._state.running.get(number)
        return None if job is None else job.pulse

    def pulse_of_ticket(self, ticket: int) -> str | None:
        """Return the name of the pulse that issued this ticket; None if the ticket is not open."""
        return self._state.pulses.tickets.get(ticket)

    @property
    def next_ticket(self) -> int:
        """The number of the next ticket."""
        return self._state.pulses.next_ticket

    @property
    def fair_settings(self) -> FairSettings:
        """The settings of the FAIR scheduler."""
        return queries.fair_settings(self._state)

    def fair_levels(self) -> list[FairLevel]:
        """Return the levels of the FAIR scheduler."""
        return queries.fair_levels(self._state)

    def fair_group(self, group: str, now_ms: int = 0) -> FairGroup | None:
        """Return one group of FAIR at the replicated time `now_ms`; None if it has no unfinished job and no account."""
        return queries.fair_group(self._state, group, now_ms)

    def fair_names(self) -> list[str]:
        """Return the groups that FAIR knows, in any order: those with an unfinished job and those not yet forgotten."""
        return queries.fair_names(self._state)

    def group_settings(self, group: str) -> GroupSettings:
        """Return the settings of the group."""
        return self._state.groups.of(group)

    def group_counts(self, group: str) -> GroupCounts | None:
        """Return the job counts and settings of a group; None if GROUP LIST does not have it."""
        return queries.group_counts(self._state, group)

    def group_rate_opens_ms(self, group: str) -> int | None:
        """Return the replicated time from which the group's RATE allows another hand-out; None if it does already."""
        return queries.group_rate_opens_ms(self._state, group)

    def groups_with_settings(self) -> Sequence[str]:
        """Return the names of the groups that have settings or a pause, as of now."""
        return list(self._state.groups.by_name)

    def group_names(self) -> Iterator[str]:
        """Return the names of all groups that GROUP LIST may show now, some perhaps twice."""
        return queries.group_names(self._state)

    @property
    def fair_used(self) -> bool:
        """True if groups are in use."""
        return self._state.fair is not None

    def unfinished_groups(self) -> int:
        """Return the number of groups that have both an account and an unfinished job.

        0 before the first use of groups.
        """
        return queries.unfinished_groups(self._state)

    def next_due_ms(self) -> int | None:
        """Return the replicated time at which a Tick should be applied as something may be due; None: never.

        It may be too early, for example if a session has been used in the meantime.
        """
        state = self._own
        times = (
            state.leases.next_due_ms(),
            state.sessions.next_due_ms(),
            state.items.holds.next_due_ms(),
            state.ttls.next_due_ms(),
            state.delays.next_due_ms(state.clock_ms),
            state.retained_keys.next_due_ms(state.clock_ms),
            state.remembered_keys.next_due_ms(state.clock_ms),
            state.records.next_due_ms(),
            state.clock_ms if state.records.total_bytes > state.settings.retained_bytes else None,
            state.pulses.periods.next_due_ms(),
            state.clock_ms if state.queues.indexing else None,
            state.clock_ms if state.errors.pending else None,
            state.clock_ms if any_to_remove(state) else None,
            None if state.fair is None else state.fair.next_due_ms(state.clock_ms),
            state.groups.pauses.next_due_ms(),
        )
        return min((time_ms for time_ms in times if time_ms is not None), default=None)


def _begin_entry(state: State, index: int, now_ms: int, seed: int) -> None:
    """Advance replicated time to the entry's timestamp and reset the state kept per entry."""
    assert index > state.index, f"entry {index} after entry {state.index}"
    state.index = index
    state.seed = seed
    state.put_item = None
    state.spent = 0
    state.before_ms = state.clock_ms
    if now_ms > state.clock_ms:
        state.clock_ms = now_ms
    seq = state.clock_ms << limits.SEQ_BITS
    if state.next_seq < seq <= limits.SEQ_MAX:
        state.next_seq = seq
    state.retained_keys.added = state.remembered_keys.added = 0
    state.records.evictions_left = limits.RECORDS_EVICTED
    if state.fair is not None:
        state.fair.begin_entry(state.clock_ms)
    state.effects = Effects()
    if state.events.recorded:
        state.events.of_entry = []
