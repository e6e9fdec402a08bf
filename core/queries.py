"""Read access to jobs and queues (PEEK, QUEUE LIST, QUEUE STAT, TOTAL), and the views that it returns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.fair.group_settings import NO_SETTINGS, GroupSettings
from sockpqd.core.fair.levels import FairSettings
from sockpqd.core.fair.rates import ANY_QUEUE
from sockpqd.core.ops.jobs import AnySelector, Number, Place, Until
from sockpqd.core.ops.queues import EndState, JobState
from sockpqd.core.ops.replies import Life
from sockpqd.core.pages.paging_counts import PagingCounts, paging_counts
from sockpqd.core.records.record import JobRecord
from sockpqd.core.rules.expire import is_released
from sockpqd.core.rules.fair_choice import available
from sockpqd.core.rules.hand_out import unfinished as any_unfinished
from sockpqd.core.rules.life import life_of, life_of_counts
from sockpqd.core.state import State
from sockpqd.core.store.body import Data, bytes_of
from sockpqd.core.store.items.counts import ItemCounts, ItemSummary, counts_of, summary_of
from sockpqd.core.store.items.item import Item
from sockpqd.core.store.job import (
    NEVER_MS,
    AnyJob,
    BuriedJob,
    DelayedJob,
    Job,
    JobCounts,
    RunningJob,
    first_taken,
    number_of,
)


class JobView(Struct, gc=False, frozen=True):
    """One job as PEEK shows it."""

    queue: str
    id: int | None              # of a running job
    priority: int
    data: Data
    state: JobState | EndState
    item: str | None
    key: str | None
    attempts: int               # hand-outs so far
    at_ms: int | None           # the time it was put for, if any
    deadline_ms: int | None     # of a running job with a lease
    reason: str | None = None   # why it was put back or buried last, if its worker gave a reason
    seq: int = 0                # the number of its place; for a running job of its old place
    group: str | None = None    # for fair shares
    number: int | None = None   # of a numbered job,
    counts: JobCounts | None = None     # and what it has gone through
    created_ms: int = 0         # of a numbered job: when it was put, as its number tells
    own_lease_ms: int | None = None     # of hand-outs that name none
    head: int = 0               # bytes of its headers, with which the data begin
    due_ms: int | None = None   # of a DELAYED job: when it becomes READY, if a time decides that
    error_bytes: int = 0        # of the text that its worker left
    progress: int | None = None     # of a running job: the percentage of its work that its worker reported as done
    life: Life | None = None    # of a numbered job
    ended_ms: int | None = None     # of a job that has ended
    origin: str | None = None       # of a dead job that does not run: the queue in which it died

    @property
    def body_bytes(self) -> int:
        """The length of the data without the headers."""
        return len(self.data) - self.head

    def headers(self) -> bytes:
        """Return the headers, from memory or disk. Raises PageLost."""
        return bytes_of(self.data)[:self.head] if self.head else b""

    def body(self) -> bytes:
        """Return the data without the headers, from memory or disk. Raises PageLost."""
        return bytes_of(self.data)[self.head:]


class ItemJob(Struct, gc=False, frozen=True):
    """An unfinished job of an item, or one that waits for items.

    `after`: these items; `head`: the length of its headers in bytes.
    """

    queue: str
    state: JobState
    item: str | None
    id: int | None
    seq: int
    number: int | None
    key: str | None
    after: tuple[str, ...]
    data: Data
    head: int

    def body(self) -> bytes:
        """The data without the headers, from memory or disk. Raises PageLost."""
        return bytes_of(self.data)[self.head:]


class FairLevel(Struct, gc=False, frozen=True):
    """One level of the FAIR scheduler (spec/fair 1)."""

    level: int
    time_us: int
    waiting: int        # groups that are offered
    selected: int


class FairGroup(Struct, gc=False, frozen=True):
    """One group of the FAIR scheduler."""

    level: int
    used_us: int
    priority_us: int
    waiting: int        # READY and DELAYED jobs
    running: int


class GroupCounts(Struct, gc=False, frozen=True):
    """The jobs of a group in all queues, and its settings."""

    ready: int
    delayed: int
    running: int
    settings: GroupSettings


class QueueCounts(Struct, gc=False, frozen=True):
    """The number of jobs of a queue in each state; dead jobs count in the queue in which they died."""

    ready: int
    delayed: int
    running: int
    dead: int
    buried: int = 0


class QueueHistory(Struct, gc=False, frozen=True):
    """The counters of a queue, which are deleted with it."""

    put: int            # jobs that came, by Put, Move and Kick
    taken: int          # hand-outs, including undone ones
    done: int           # hand-outs that ended with Done, Move, or a lease that ended THEN DONE
    later: int          # hand-outs that ended with Later or with their session
    expired: int        # hand-outs that ended with their lease
    dead: int           # jobs that were moved to the dead queue
    expired_ttl: int          # jobs whose TTL ended
    oldest_ms: int      # how long the oldest READY job has been waiting; 0: there is none
    deleted: int = 0    # jobs that were removed by Delete
    pauses: int = 0     # that began or were ended by a time of 0


class QueueFlow(Struct, gc=False, frozen=True):
    """The counters from which a queue's rates are computed: jobs added, hand-outs, and the outcomes of hand-outs."""

    put: int
    taken: int
    done: int
    failed: int         # put back by Later, or by the end of a lease
    died: int


class StateSums(Struct, gc=False, frozen=True):
    """The number of jobs of all queues in each state, dead ones counted in their dead-letter queues."""

    ready: int
    delayed: int
    running: int
    buried: int
    urgent: int         # of the READY ones
    queues: int         # that have an unfinished job


RUNNING_LOOKED = 1000
QUEUES_LOOKED = 500         # of those in which an item has jobs: each may have only DELAYED ones

NOTHING = QueueHistory(0, 0, 0, 0, 0, 0, 0, 0)


def unfinished(state: State, queues: tuple[str, ...] | None, item: str | None) -> bool:
    """Return whether one of these queues has an unfinished job (of the item)."""
    return any_unfinished(state, queues, item)


def names(state: State, prefix: str) -> list[str]:
    """Return the names with this prefix of all queues that have unfinished jobs, settings or dead jobs."""
    known = dict.fromkeys((*state.queues.by_name, *state.queues.idle, *state.dead))
    return [name for name in known if name.startswith(prefix)] if prefix else list(known)


def all_names(state: State) -> Iterator[str]:
    """Return the names of all queues as of now, some perhaps twice.

    The iterator stays valid while the state changes.
    """
    return chain(list(state.queues.by_name), list(state.queues.idle), list(state.dead))


def counts(state: State, name: str) -> QueueCounts | None:
    """Return the number of jobs of the queue in each state; None if there is no such queue."""
    queue, dead = state.queues.find(name), state.dead.get(name)
    if dead is None and queue is None:
        return None
    dead_jobs = 0 if dead is None else dead.size
    return QueueCounts(0, 0, 0, dead_jobs) if queue is None else QueueCounts(
        queue.ready_count, queue.deferred, queue.running, dead_jobs, 0 if queue.buried is None else queue.buried.size,
    )


def history(state: State, name: str, now_ms: int) -> QueueHistory:
    """Return the counters of the queue, and the waiting time of its oldest READY job as of `now_ms`."""
    queue = state.queues.find(name)
    if queue is None:
        return NOTHING
    seq = queue.oldest_seq()
    oldest_ms = 0 if seq is None else max(0, now_ms - max(seq >> limits.SEQ_BITS, state.seqs_since_ms))
    put, taken, done, later, expired, dead, expired_ttl, deleted, pauses = queue.counters
    return QueueHistory(put, taken, done, later, expired, dead, expired_ttl, oldest_ms, deleted, pauses)


def flows(state: State, names: Iterable[str]) -> list[QueueFlow | None]:
    """Return the flow of each of these queues; None where there is no such queue."""
    return [None if queue is None else flow_of(queue.counters) for queue in map(state.queues.find, names)]


def flow_of(counters: Sequence[int]) -> QueueFlow:
    """Return the flow according to a queue's counters."""
    put, taken, done, later, expired, dead, *_ = counters
    return QueueFlow(put, taken, done, later + expired, dead)


def sums(state: State) -> StateSums:
    """Return the number of jobs of all queues in each state."""
    queues = state.queues
    ready = queues.waiting - queues.delayed
    return StateSums(
        ready, queues.delayed, len(state.running), queues.buried, ready - queues.others, len(queues.by_name),
    )


def stat(state: State, name: str, now_ms: int, *, awaited: bool = False) -> list[tuple[str, int]] | None:
    """Return the figures of QUEUE STAT in their order; None if there is no such queue and it is not `awaited`."""
    known = counts(state, name)
    if known is None and awaited:
        known = QueueCounts(0, 0, 0, 0)
    if known is None:
        return None
    past = history(state, name, now_ms)
    queue = state.queues.by_name.get(name)
    settings = state.queues.settings.get(name)
    pause_ms, ends_ms = (0, 0) if settings is None else (settings.pause_ms, settings.pause_ends_ms)
    retained, retained_bytes = state.records.counts(name, state.clock_ms)
    return [
        ("READY", known.ready),
        ("DELAYED", known.delayed),
        ("RUNNING", known.running),
        ("DEAD", known.dead),
        ("BURIED", known.buried),
        ("WITHHELD", 0 if queue is None else known.ready - available(state, queue)),
        ("PRIORITIES", 0 if queue is None else len(queue.ranks)),
        ("KEYS", 0 if queue is None or queue.keys is None else len(queue.keys)),
        ("PAUSED_IN", int(settings is not None and settings.paused_in)),
        ("PAUSED_OUT", int(settings is not None and settings.paused_out)),
        ("TOTAL_PUT", past.put),
        ("TOTAL_TAKEN", past.taken),
        ("TOTAL_DONE", past.done),
        ("TOTAL_LATER", past.later),
        ("TOTAL_EXPIRED", past.expired),
        ("TOTAL_DEAD", past.dead),
        ("TOTAL_TTL", past.expired_ttl),
        ("OLDEST_S", past.oldest_ms // 1000),
        ("URGENT", 0 if queue is None else queue.urgent),
        ("TOTAL_DELETED", past.deleted),
        ("TOTAL_PAUSES", past.pauses),
        ("PAUSE_S", -(-pause_ms // 1000)),
        ("PAUSE_LEFT_S", max(0, -((now_ms - ends_ms) // 1000)) if ends_ms else 0),
        ("RETAINED", retained),
        ("RETAINED_BYTES", retained_bytes),
    ]


def item_counts(state: State, name: str) -> ItemCounts | None:
    """Return the figures of ITEM STAT; None if there is no such item."""
    item = state.items.by_name.get(name)
    return None if item is None else counts_of(item, state.delays.dependents.count(name))


def item_summary(state: State, name: str) -> ItemSummary | None:
    """Return the line of ITEM LIST for an item; None if there is none."""
    item = state.items.by_name.get(name)
    return None if item is None else summary_of(item)


def jobs_of_item(state: State, name: str, count: int) -> list[ItemJob]:
    """Return up to `count` unfinished jobs of the item: DEAD, BURIED, running, READY, then DELAYED ones.

    Running and READY ones are looked for in QUEUES_LOOKED of its queues, and of the running ones of a queue only the
    first RUNNING_LOOKED are inspected.
    """
    item = state.items.by_name.get(name)
    return [] if item is None else list(islice(_jobs_of_item(state, item), max(count, 0)))


def _jobs_of_item(state: State, item: Item) -> Iterator[ItemJob]:
    for dead in item.dead or ():
        yield _item_job(dead, JobState.DEAD)
    for buried in item.buried or ():
        yield _item_job(buried, JobState.BURIED)
    for queue_name, found in islice(item.by_queue.items(), QUEUES_LOOKED):
        queue = state.queues.find(queue_name)
        for number in first_taken(queue, RUNNING_LOOKED) if queue is not None and found.running else ():
            if state.running[number].item == item.name:
                yield _item_job(state.running[number], JobState.RUNNING)
        for ready in found.ready:
            if ready.extras is None or ready.extras.origin is None:
                yield _item_job(ready, JobState.READY)
    for delayed in item.delayed or ():
        yield _item_job(delayed, JobState.DELAYED)


def jobs_behind_item(state: State, name: str, count: int) -> list[ItemJob]:
    """Return up to `count` jobs that wait for the item (AFTER)."""
    waiting = chain.from_iterable(state.delays.dependents.waiting.get((name, until), ()) for until in Until)
    jobs = (state.delays.find(seq) for seq in islice(waiting, max(count, 0)))
    return [_item_job(job, JobState.DELAYED) for job in jobs if job is not None]


def _item_job(job: AnyJob, which: JobState) -> ItemJob:
    extras = job.extras
    return ItemJob(
        job.queue, which, job.item, job.id if isinstance(job, RunningJob) else None, job.seq,
        number_of(job), None if extras is None else extras.key,
        extras.after if extras is not None and isinstance(job, DelayedJob) else (),
        job.data, 0 if extras is None else extras.head,
    )


def queue_on_disk(state: State, name: str) -> PagingCounts:
    """Return the numbers of the queue's jobs on this node's disk."""
    queue, pager = state.queues.by_name.get(name), state.pager
    return PagingCounts(0, 0) if queue is None or pager is None else paging_counts(queue, pager.pages)


def fair_settings(state: State) -> FairSettings:
    """Return the settings of the FAIR scheduler."""
    return FairSettings() if state.fair is None else state.fair.levels.settings


def fair_levels(state: State) -> list[FairLevel]:
    """Return the levels that have a group."""
    scheduler = state.fair
    if scheduler is None:
        return [FairLevel(level, 0, 0, 0) for level in range(len(FairSettings().thresholds_s))]
    levels = scheduler.levels
    return [
        FairLevel(level, levels.time_ns[level] // 1000, scheduler.offered.count(level), levels.selected[level])
        for level in levels.in_use()
    ]


def fair_group(state: State, group: str, now_ms: int = 0) -> FairGroup | None:
    """Return one group as of the replicated time `now_ms`; None if it has no unfinished job and no account.

    An account may have expired by then even though no Tick has removed it.
    """
    scheduler = state.fair
    if scheduler is None:
        queue = state.queues.by_name.get(group)     # without PUT .. GROUP all groups are queues
        return None if queue is None else FairGroup(0, 0, 0, queue.ready_count + queue.deferred, queue.running)
    account, (waiting, running) = scheduler.accounts.get(group), scheduler.counts(group)
    if account is None or scheduler.is_over(account, now_ms):
        return None if (waiting, running) == (0, 0) else FairGroup(0, 0, 0, waiting, running)
    return FairGroup(account.level, account.used_us, account.priority_ns // 1000, waiting, running)


def fair_names(state: State) -> list[str]:
    """Return the groups that have an account.

    Before the first use of groups: the names of all queues, which are their groups.
    """
    return list(state.queues.by_name if state.fair is None else state.fair.accounts)


def group_counts(state: State, group: str) -> GroupCounts | None:
    """Return the jobs and settings of a group.

    None if it has no settings, and no unfinished job except in the queue of its name.
    """
    scheduler, settings = state.fair, state.groups.by_name.get(group)
    if settings is None and (scheduler is None or not scheduler.is_named(group)):
        return None
    settings = settings or NO_SETTINGS
    if scheduler is not None:
        return GroupCounts(*scheduler.counts_by_state(group), settings)
    queue = state.queues.by_name.get(group)
    if queue is None:
        return GroupCounts(0, 0, 0, settings)
    return GroupCounts(queue.ready_count, queue.deferred, queue.running, settings)


def group_rate_opens_ms(state: State, group: str) -> int | None:
    """Return the time from which the RATE of the group allows another hand-out; None if it does."""
    window = None if state.fair is None else state.fair.open.gates.windows.find(ANY_QUEUE, group)
    return window.due_ms if window is not None and window.closed else None


def group_names(state: State) -> Iterator[str]:
    """Return the groups that have settings or an account, some perhaps twice. The iterator stays valid. """
    return chain(list(state.groups.by_name), [] if state.fair is None else list(state.fair.accounts))


def queues_of_group(state: State, group: str) -> Collection[str]:
    """Return the queues in which the group has READY jobs, and the queue of its name."""
    account = None if state.fair is None else state.fair.accounts.get(group)
    names = {} if account is None else account.queues
    return {**names, group: None} if group in state.queues.by_name else names


def unfinished_groups(state: State) -> int:
    """Return the number of groups that have both an account and an unfinished job; 0 before the first use."""
    return 0 if state.fair is None else state.fair.unfinished


def peek(state: State, selector: AnySelector) -> JobView | None:
    """Return the selected job; None if there is none."""
    job = _selected(state, selector)
    if isinstance(selector, Number) and isinstance(job, RunningJob) and is_released(state, job):
        return replace(seen(state, job), id=None, state=JobState.READY, deadline_ms=None, progress=None)
    return None if job is None else seen(state, job)


def error(state: State, selector: AnySelector) -> Data | None:
    """Return the error text that a worker left with the selected job, empty without one; None if there is no such job.

    A number also finds the record of a job that has ended.
    """
    job = _selected(state, selector)
    if job is None and isinstance(selector, Number):
        found = state.records.find(selector.number, state.clock_ms)
        return None if found is None else found.record.error
    if job is None:
        return None
    text = None if job.extras is None else state.errors.find(job.extras.error)
    return b"" if text is None else text


def selected_running(state: State, selector: AnySelector) -> RunningJob | None:
    """Return the selected job if it is running; None if it is not, or there is none."""
    job = _selected(state, selector)
    return job if isinstance(job, RunningJob) else None


def _selected(state: State, selector: AnySelector) -> AnyJob | None:
    if isinstance(selector, Place):
        return state.waiting_at(selector.queue, selector.seq)
    if isinstance(selector, Number):
        return state.numbered(selector.number)
    if selector.id:
        return state.running.get(selector.id)
    queue = state.queues.by_name.get(selector.queue)
    return None if queue is None or queue.keys is None else queue.keys.get(selector.key)


def ended(state: State, number: int) -> JobView | None:
    """Return the ended job of this number; None if it has not ended, or there is no record. Raises PageLost."""
    found = None if state.numbered(number) is not None else state.records.find(number, state.clock_ms)
    return None if found is None else seen_record(state, found.queue, found.record)


def result(state: State, number: int) -> bytes | None:
    """Return the result of a job that has ended; None if there is no record of it. Raises PageLost."""
    found = None if state.numbered(number) is not None else state.records.find(number, state.clock_ms)
    return None if found is None else found.record.result


def ended_jobs(state: State, queue: str, count: int, before: int | None) -> tuple[list[JobView], int | None]:
    """Return up to `count` ended jobs of the queue, the newest first, and the position at which to continue.

    `before`: the position returned by the previous call; None for the first call. The returned position is None if
    there are no others. Raises PageLost.
    """
    records, position = state.records.newest(queue, state.clock_ms, count, before)
    return [seen_record(state, queue, record) for record in records], position


def seen_record(state: State, queue: str, record: JobRecord) -> JobView:
    """Return the view of a job that has ended."""
    extras = record.extras
    created_ms = max(record.number >> limits.SEQ_BITS, state.seqs_since_ms)
    counts = None if extras.counts is None else replace(extras.counts, first_ms=None, last_ms=None, number=None)
    return JobView(
        queue=queue, id=None, priority=record.priority, data=record.data, state=record.state, item=record.item,
        key=extras.key, attempts=record.attempts, at_ms=None, deadline_ms=None, reason=extras.reason,
        seq=record.number, group=extras.group, number=record.number, counts=counts,
        created_ms=created_ms, own_lease_ms=extras.lease_ms,
        head=extras.head, error_bytes=len(record.error), ended_ms=record.ended_ms,
        life=life_of_counts(created_ms, extras),
    )


def next_jobs(state: State, name: str, which: JobState, count: int, behind: AnyJob | None) -> list[AnyJob]:
    """Return up to `count` jobs of the queue in this state that come after `behind`, the last job of the previous call.

    READY and DELAYED jobs may have to be read from disk, so a call returns at most PORTION_MAX of them, and stops at
    LOOKED_BYTES_MAX. Jobs in other states are returned all at once. Raises PageLost.
    """
    count = max(count, 0)
    jobs = _jobs(state, name, which, count, behind)
    if which not in (JobState.READY, JobState.DELAYED):
        return list(islice(jobs, count))
    found: list[AnyJob] = []
    left = limits.LOOKED_BYTES_MAX
    for job in islice(jobs, min(count, limits.PORTION_MAX)):
        found.append(job)
        left -= len(job.data)
        if left < 0:
            break
    return found


def _jobs(state: State, name: str, which: JobState, count: int, behind: AnyJob | None) -> Iterable[AnyJob]:
    queue = state.queues.find(name)
    if queue is not None and which is JobState.READY:
        return queue.ready_behind(behind) if isinstance(behind, Job) else queue.all_ready()
    if queue is not None and which is JobState.DELAYED:
        delayed = queue.delayed or ()
        return queue.delayed.behind(behind, due_place) if queue.delayed and isinstance(behind, DelayedJob) else delayed
    if behind is not None:
        return ()
    if which is JobState.DEAD:
        return state.dead.get(name, ())
    if queue is not None and which is JobState.BURIED:
        return queue.buried or ()
    if which is JobState.RUNNING and queue is not None and queue.running:
        return (state.running[number] for number in first_taken(queue, count))
    return ()


def due_place(job: DelayedJob) -> tuple[int, int]:
    """Return the place of a job among the DELAYED jobs of its queue."""
    return job.due_ms, job.seq


def views(state: State, jobs: Iterable[AnyJob], which: JobState) -> list[JobView]:
    """Return the views of jobs that were found in this state."""
    ready = JobState.DEAD if which is JobState.DEAD else JobState.READY
    return [seen(state, job, ready) for job in jobs]


def seen(state: State, job: AnyJob, ready: JobState = JobState.READY) -> JobView:
    """Return the view of a job. `ready`: the state to show for a READY one, which may also be DEAD."""
    extras = job.extras
    key, reason, group = (None, None, None) if extras is None else (extras.key, extras.reason, extras.group)
    counts, lease_ms, head = (None, None, 0) if extras is None else (extras.counts, extras.lease_ms, extras.head)
    text = None if extras is None else state.errors.find(extras.error)
    error_bytes = 0 if text is None else len(text)
    number, created_ms = None, 0
    if counts is not None:
        number = counts.number or job.seq
        created_ms = max(number >> limits.SEQ_BITS, state.seqs_since_ms)
        if counts.last_ms is not None or counts.number is not None:     # its times are shown as its life
            counts = replace(counts, first_ms=None, last_ms=None, number=None)
    life = life_of(state, job)
    if isinstance(job, RunningJob):
        return JobView(
            job.queue, job.id, job.priority, job.data, JobState.RUNNING, job.item, key, job.attempts, job.at_ms,
            job.deadline_ms, reason, job.seq, group, number, counts, created_ms, lease_ms, head, None, error_bytes,
            job.progress, life,
        )
    due_ms = None
    if isinstance(job, DelayedJob):
        ready = JobState.DELAYED
        due_ms = None if job.due_ms == NEVER_MS else job.due_ms
    elif isinstance(job, BuriedJob):
        ready = JobState.BURIED
    return JobView(
        job.queue, None, -job.rank, job.data, ready, job.item, key, job.attempts, job.at_ms, None, reason, job.seq,
        group, number, counts, created_ms, lease_ms, head, due_ms, error_bytes, None, life,
        origin=None if extras is None else extras.origin,
    )
