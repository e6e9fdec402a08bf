"""Put, plain and with options: for later, with a key, periodic, after items (spec/state-machine 6)."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.handlers.cost import AFTER, BASE_BYTES, JOB, JOB_WITH_EXTRAS, OPTIONS_BYTES, Cost, of_names
from sockpqd.core.ops import replies
from sockpqd.core.ops.jobs import OnDup, Put, PutGrouped, PutNumbered, PutWith
from sockpqd.core.ops.replies import STORED, Reply, Stored, StoredNumber
from sockpqd.core.ops.settings import QueueSettings
from sockpqd.core.rules import activate
from sockpqd.core.rules.admit import admitted, at_capacity, displaced, key_taken, rejects_puts, ttl_ms
from sockpqd.core.state import State
from sockpqd.core.store.body import Data
from sockpqd.core.store.job import (
    NEW_COUNTS,
    NO_EXTRAS,
    BuriedJob,
    DelayedJob,
    Extras,
    Job,
    JobCounts,
    RunningJob,
    extras_of_many,
)
from sockpqd.core.store.queues import PUT, Queue


class Marks(Struct, frozen=True, gc=False):
    """What a PutNumbered says besides."""

    number: bool = False
    lease_ms: int | None = None


PLAIN = Marks()


def put(state: State, operation: Put, seed: int) -> Reply:
    """A new job at the tail of its priority."""
    name = operation.queue
    queue = state.queues.by_name.get(name)
    if queue is None or queue.settings is not None:
        if name in state.queues.settings and _shapes_puts(state.queues.settings[name]):
            return put_with(state, PutWith(operation), seed)
        refusal = rejects_puts(state, name, len(operation.data)) or at_capacity(state, name)
        if refusal is not None:
            state.put_item = None
            return refusal
        queue = state.queues.get_or_create(name)
    item = state.items.new_name(seed) if operation.new_item else operation.item
    state.put_item = item
    if item is not None:
        item = state.items.open(item).name      # one string for all jobs of the item
    seq = state.next_seq
    state.next_seq = seq + 1
    data: Data = operation.data
    if len(data) >= state.body_bytes_min:
        data = state.held(operation.data)
    job = Job(-operation.priority, 0, seq, queue.name, data, item, 0, None, None)
    if queue.settings is not None:
        state.make_ready(queue, job)
    elif item is None:
        state.add_plain(queue, job)
    else:
        state.add(queue, job)
    queue.counters[PUT] += 1
    events = state.events
    events.seq += 1
    if events.recorded:
        events.record("PUT", queue.name, operation.priority)
    return Stored(item) if operation.new_item else STORED


def _shapes_puts(settings: QueueSettings) -> bool:
    """Whether a Put without options is more than a job at the tail."""
    return bool(settings.ttl_ms or settings.idle_ms or settings.overflow)


def put_cost(operation: Put) -> Cost:
    """Bytes and work of a Put."""
    item = operation.item
    if item is None:
        return BASE_BYTES + len(operation.data) + len(operation.queue), JOB
    return BASE_BYTES + len(operation.data) + len(operation.queue) + len(item), JOB


def put_with(state: State, operation: PutWith | PutGrouped, seed: int) -> Reply:
    """A new job; if its key is taken, what ONDUP says."""
    return _put(state, operation, seed, PLAIN)


def put_numbered(state: State, operation: PutNumbered, seed: int) -> Reply:
    """The same, with a number or a lease of its own."""
    lease_ms, job = operation.lease_ms, operation.job
    if lease_ms is not None:
        lease_ms = _bounded(lease_ms, limits.DURATION_MS_MAX)
    put = job.put
    queue = state.queues.by_name.get(put.queue)
    if (
        queue is not None and queue.settings is None and operation.number and put.item is None and not put.new_item
        and type(job) is PutWith and job.when is None and not job.after and job.key is None and job.every_ms is None
        and job.ttl_ms is None and job.tries is None
    ):
        return _put_numbered_at_once(state, queue, put, lease_ms)
    return _put(state, job, seed, Marks(operation.number, lease_ms))


def _put_numbered_at_once(state: State, queue: Queue, put: Put, lease_ms: int | None) -> Reply:
    """The part of `_put` that nearly all numbered jobs need: no options, and a queue without settings."""
    state.put_item = None
    seq = state.new_seq()
    extras = extras_of_many(None, None, None, None, lease_ms, NEW_COUNTS)
    state.add(queue, Job(-put.priority, 0, seq, queue.name, state.held(put.data), None, 0, None, extras))
    queue.counters[PUT] += 1
    state.events.tell("PUT", queue.name, put.priority)
    return StoredNumber(seq)


def _put(state: State, operation: PutWith | PutGrouped, seed: int, marks: Marks) -> Reply:
    put = operation.put
    name = put.queue
    state.put_item = None
    refusal = rejects_puts(state, name, len(put.data))
    if refusal is not None:
        return refusal
    if operation.key is not None and key_taken(state, name, operation.key):
        return _duplicate(state, operation, operation.key, seed, marks)
    refusal = at_capacity(state, name)
    if refusal is not None:
        return refusal
    queue = state.queues.get_or_create(name)
    leaving = None if queue.settings is None else displaced(queue)
    item = state.items.new_name(seed) if put.new_item else put.item
    state.put_item = item
    seq = state.new_seq()
    place(state, operation, queue, item, seq, marks=marks)
    queue.counters[PUT] += 1
    state.events.tell("PUT", queue.name, put.priority)
    if queue.settings is not None:
        admitted(state, queue, leaving)
    if marks.number:
        return StoredNumber(seq, item if put.new_item else None)
    return Stored(item) if put.new_item else STORED


def put_with_cost(operation: PutWith | PutGrouped) -> Cost:
    """Bytes and work of a PutWith."""
    size, _ = put_cost(operation.put)
    after = operation.after
    return size + OPTIONS_BYTES + of_names(*after) + of_names(operation.key), JOB_WITH_EXTRAS + AFTER * len(after)


def put_grouped_cost(operation: PutGrouped) -> Cost:
    """Bytes and work of a PutGrouped."""
    size, work = put_with_cost(operation)
    return size + of_names(operation.group), work


def put_numbered_cost(operation: PutNumbered) -> Cost:
    """Bytes and work of a PutNumbered."""
    job = operation.job
    if type(job) is PutWith and not job.after and job.key is None:
        size, _ = put_cost(job.put)
        return size + 2 * OPTIONS_BYTES, JOB_WITH_EXTRAS
    size, work = put_grouped_cost(job) if isinstance(job, PutGrouped) else put_with_cost(job)
    return size + OPTIONS_BYTES, work


def _duplicate(state: State, operation: PutWith | PutGrouped, key: str, seed: int, marks: Marks) -> Reply:
    """The key is taken."""
    if operation.on_dup is OnDup.IGNORE:
        return replies.JOB_IGNORED
    put = operation.put
    queue = state.queues.by_name.get(put.queue)
    job = None if queue is None or queue.keys is None else queue.keys.get(key)
    if operation.on_dup is OnDup.FAIL or job is None or isinstance(job, BuriedJob) or queue is None:
        return replies.JOB_EXISTS
    if isinstance(job, RunningJob):
        return replies.JOB_RUNNING
    if type(operation) is PutGrouped:
        state.use_fair()        # now, as the first use offers the group of the job that is replaced, too
    if isinstance(job, DelayedJob):
        state.undefer(queue, job)
    else:
        state.replace_ready(begins=True)
        state.remove(queue, job)
    item = state.items.new_name(seed) if put.new_item else put.item
    place(state, operation, queue, item, job.seq, replaced=job, marks=marks)
    state.replace_ready(begins=False)
    queue.used_ms = state.clock_ms
    if job.item is not None:
        state.close_item(job.item, job.queue)
    return replies.JOB_REPLACED


def place(
    state: State, operation: PutWith | PutGrouped, queue: Queue, item: str | None, seq: int,
    replaced: Job | DelayedJob | None = None, body: int | None = None, marks: Marks = PLAIN, data: Data | None = None,
) -> Job:
    """Put the job of this operation into the queue. `body`: the number of `data`, which it shares with other jobs.

    Returns it as it was before it was READY or DELAYED.
    """
    put = operation.put
    if type(operation) is PutGrouped:
        state.use_fair()
    at_ms = None if operation.when is None else activate.moment(state, operation.when)
    every_ms = None if operation.every_ms is None else _bounded(operation.every_ms, limits.DURATION_MS_MAX) or None
    if every_ms is not None and at_ms is None:
        at_ms = state.clock_ms
    extras = _extras(state, operation, queue, at_ms, every_ms, replaced, body, marks)
    job = Job(
        rank=-put.priority,
        when=0,
        seq=seq,
        queue=queue.name,
        data=state.held(put.data) if data is None else data,
        item=None if item is None else state.items.open(item).name,
        attempts=0 if replaced is None else replaced.attempts,
        at_ms=at_ms,
        extras=None if extras == NO_EXTRAS else extras,
    )
    activate.place(state, queue, job, active_ms=at_ms, replaces=isinstance(replaced, Job))
    return job


def _extras(
    state: State, operation: PutWith | PutGrouped, queue: Queue, at_ms: int | None, every_ms: int | None,
    replaced: Job | DelayedJob | None, body: int | None, marks: Marks,
) -> Extras:
    """The rare attributes of the job of this operation, which is put for `at_ms` if that is given."""
    counts = NEW_COUNTS if marks.number and replaced is None else None
    if counts is not None and at_ms is not None and at_ms > state.clock_ms:
        counts = JobCounts(delay_ms=at_ms - state.clock_ms)
    if replaced is not None and replaced.extras is not None:
        counts = replaced.extras.counts
    group = operation.group if type(operation) is PutGrouped else None
    extras = extras_of_many(
        None if operation.tries is None else _bounded(operation.tries, limits.NUMBER_MAX),
        ttl_ms(queue, operation.ttl_ms), every_ms, group, marks.lease_ms,
    )
    if operation.key is not None or operation.after or body is not None or counts is not None:
        extras = replace(
            extras,
            key=operation.key,
            origin=None if replaced is None or replaced.extras is None else replaced.extras.origin,
            after=activate.unfinished_items(state, operation.after) if operation.after else (),
            ready_ms=state.clock_ms if isinstance(replaced, DelayedJob) else _ready_ms(replaced),
            body=body,
            counts=counts,
        )
    return extras


def _ready_ms(replaced: Job | None) -> int | None:
    """A READY job that is replaced has been READY for as long as before."""
    return None if replaced is None or replaced.extras is None else replaced.extras.ready_ms


def _bounded(value: int, most: int) -> int:
    """A number that a snapshot can hold, whatever the client sent."""
    return min(max(value, 0), most)
