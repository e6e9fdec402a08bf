"""Admission: the reasons why a queue refuses a job, and the effects of a new job on others."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.ops.jobs import PutWith
from sockpqd.core.ops.queues import EndState, GroupBy, Overflow
from sockpqd.core.ops.replies import DATA_TOO_LARGE, GROUP_DECIDED, QUEUE_FULL, QUEUE_NOT_FOUND, QUEUE_PAUSED, Reply
from sockpqd.core.rules.job_end import note_end
from sockpqd.core.rules.remove_queue import drop
from sockpqd.core.state import State
from sockpqd.core.store.job import FLOATING, NEW_COUNTS, DelayedJob, Job, JobCounts, number_of
from sockpqd.core.store.queues import Queue


def rejects_puts(state: State, queue: str, data_bytes: int) -> Reply | None:
    """Return the refusal if the queue does not take jobs with this much data; otherwise None."""
    settings = state.queues.settings.get(queue)
    if settings is None:
        unknown = not state.settings.autocreate and state.queues.find(queue) is None
        return QUEUE_NOT_FOUND if unknown else None
    if settings.paused_in:
        return QUEUE_PAUSED
    return too_large(state, queue, data_bytes)


def names_group_in_vain(state: State, operation: PutWith) -> Reply | None:
    """Return the refusal of a Put with a GROUP into a queue that decides the groups of its jobs itself (GROUPBY)."""
    settings = None if operation.group is None else state.queues.settings.get(operation.put.queue)
    return None if settings is None or settings.group_by is GroupBy.PUT else GROUP_DECIDED


def too_large(state: State, queue: str, data_bytes: int) -> Reply | None:
    """Return the refusal of data larger than MAXDATA; None if they are not."""
    settings = state.queues.settings.get(queue)
    return DATA_TOO_LARGE if settings is not None and 0 < settings.data_bytes_max < data_bytes else None


def at_capacity(state: State, queue: str) -> Reply | None:
    """Return the refusal if the queue has reached its CAPACITY of READY and DELAYED jobs; otherwise None."""
    one = state.queues.by_name.get(queue)
    return QUEUE_FULL if one is not None and _full(one) and not _drops_oldest(one) else None


def _full(queue: Queue) -> bool:
    settings = queue.settings
    return settings is not None and 0 < settings.capacity <= queue.ready_count + queue.deferred


def _drops_oldest(queue: Queue) -> bool:
    return queue.settings is not None and queue.settings.overflow is Overflow.DROPOLDEST


def displaced(queue: Queue) -> Job | DelayedJob | None:
    """Return the job that must leave to make room for another one (OVERFLOW DROPOLDEST); None if there is room.

    It is the first READY job of the lowest priority or, without any, the DELAYED one that is due last.
    """
    if not (_drops_oldest(queue) and _full(queue)):
        return None
    found: list[Job] = []
    if queue.ready.size:
        found.append(queue.ready.first_of_least_priority)
    if queue.blocked is not None and queue.blocked.size:
        before = replace(queue.blocked.last, when=-1, seq=-1)       # stands before all of its priority
        found.append(queue.blocked[queue.blocked.position(before)])
    if found:
        return min(found, key=lambda job: (-job.rank, job))
    return None if queue.delayed is None else queue.delayed.last


def admitted(state: State, queue: Queue, leaving: Job | DelayedJob | None) -> None:
    """Record that a job was put into the queue (which has settings), a use of it; `leaving` is dropped to make room."""
    queue.used_ms = state.clock_ms
    if leaving is not None:
        if leaving.extras is not None:      # it may wait for many items
            state.spent += limits.STEP * len(leaving.extras.after)
        drop(state, leaving)
        note_end(state, leaving, queue.settings, EndState.CANCELLED)
        state.events.tell("DROP", queue.name)


def ttl_ms(queue: Queue, asked_ms: int | None) -> int | None:
    """Return how long a job put into the queue may be READY, by its Put or by the queue; None: without limit."""
    if asked_ms is None:
        return None if queue.settings is None else queue.settings.ttl_ms or None
    return None if asked_ms >= limits.DURATION_MS_MAX else max(asked_ms, 0)


def new_counts(queue: Queue, *, number: bool) -> JobCounts | None:
    """Return the counts of a job without a number that enters the queue; None if it gets none there.

    `number`: it is put with NUMBER, so it keeps its place.
    """
    if number:
        return NEW_COUNTS
    return FLOATING if queue.settings is not None and queue.settings.numbered else None


def key_taken(state: State, queue: str, key: str) -> bool:
    """Return whether an unfinished job of the queue has this key, or a finished one whose key is retained (KEEP)."""
    one = state.queues.by_name.get(queue)
    if one is not None and one.keys is not None and key in one.keys:
        return True
    return state.retained_keys.until_ms(queue, key) > state.clock_ms


def cannot_remember(state: State, operation: PutWith, queue: str) -> Reply | None:
    """Return the refusal if the queue would have to remember more keys than it may (DEDUPMAX); otherwise None."""
    if operation.dedup is None:
        return None
    settings = state.queues.settings.get(queue)
    most = limits.REMEMBERED_OF_PLAIN if settings is None else settings.dedup_max
    return QUEUE_FULL if state.remembered_keys.full(queue, most, state.clock_ms) else None


def remember(state: State, operation: PutWith, job: Job) -> None:
    """Remember that this job was put, for as long as the operation says (DEDUP)."""
    dedup, keys = operation.dedup, state.remembered_keys
    assert dedup is not None
    key = dedup.key
    if state.undo is not None:
        state.undo.remembered(job.queue, key, keys.entry(job.queue, key))
    until_ms = state.clock_ms + min(max(dedup.duration_ms, 1), limits.DEDUP_MS_MAX)
    keys.set(job.queue, key, until_ms, number_of(job) or 0)
