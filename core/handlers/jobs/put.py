"""Put, plain and with options: for later, with a key, periodic, after items (spec/state-machine 6)."""

from __future__ import annotations

from collections.abc import Iterable

from sockpqd.core.handlers.cost import AFTER, BASE_BYTES, JOB, JOB_WITH_EXTRAS, OPTIONS_BYTES, Cost, of_names
from sockpqd.core.handlers.jobs.place import lease_of, place
from sockpqd.core.handlers.jobs.spread import spread, targets_cost
from sockpqd.core.ops import replies
from sockpqd.core.ops.jobs import OnDup, Put, PutWith, ToTopic
from sockpqd.core.ops.replies import ITEM_CANCELLED, STORED, Reply, Stored, StoredNumber
from sockpqd.core.ops.settings import QueueSettings
from sockpqd.core.rules.activate import awaited_items, never_comes
from sockpqd.core.rules.admit import (
    admitted,
    at_capacity,
    cannot_remember,
    displaced,
    key_taken,
    names_group_in_vain,
    rejects_puts,
    remember,
)
from sockpqd.core.rules.items.cancel import refused, refused_put
from sockpqd.core.state import State
from sockpqd.core.store.body import Data
from sockpqd.core.store.job import (
    FLOATING,
    NEW_COUNTS,
    BuriedJob,
    DelayedJob,
    Job,
    RunningJob,
    extras_of_many,
    number_of,
)
from sockpqd.core.store.queues import PUT, Queue


def put(state: State, operation: Put, seed: int) -> Reply:
    """Add a new job at the tail of its priority."""
    name = operation.queue
    queue, extras = state.queues.by_name.get(name), None
    if queue is None or queue.shaped:
        if name in state.queues.settings and _shapes_puts(state.queues.settings[name]):
            return put_with(state, PutWith(operation), seed)
        refusal = rejects_puts(state, name, len(operation.data))
        if refusal is None and operation.item is not None:
            refusal = refused_put(state, operation)
        refusal = refusal or at_capacity(state, name)
        if refusal is not None:
            state.put_item = None
            return refusal
        queue = state.queues.get_or_create(name)
        if queue.settings is not None and queue.settings.numbered:
            extras = extras_of_many(None, None, None, None, None, FLOATING)
    item = state.new_item_name(seed) if operation.new_item else operation.item
    state.put_item = item
    if item is not None:
        if item in state.items.cancelled:
            state.put_item = None
            return ITEM_CANCELLED
        item = state.items.open(item).name      # one string for all jobs of the item
    seq = state.next_seq
    state.next_seq = seq + 1
    data: Data = operation.data
    if len(data) >= state.body_bytes_min:
        data = state.held(operation.data)
    job = Job(-operation.priority, 0, seq, queue.name, data, item, 0, None, extras)
    if queue.shaped:
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
    """Return whether the settings require more than adding a plain job at the tail."""
    return bool(settings.ttl_ms or settings.idle_ms or settings.overflow or settings.group_by)


def put_cost(operation: Put) -> Cost:
    """Return the bytes and work of a Put."""
    item = operation.item
    if item is None:
        return BASE_BYTES + len(operation.data) + len(operation.queue), JOB
    return BASE_BYTES + len(operation.data) + len(operation.queue) + len(item), JOB


def put_brings(state: State, operation: Put) -> tuple[str, ...]:
    """Return the queue of a Put."""
    return (operation.queue,)


def put_with(state: State, operation: PutWith, seed: int) -> Reply:
    """Add a new job, or one to each of several queues. If the key is taken, ONDUP decides."""
    if operation.targets is not None:
        return spread(state, operation, operation.targets)
    put = operation.put
    name = put.queue
    if operation.number and _nothing_but_numbered(operation):
        queue = state.queues.by_name.get(name)
        if queue is not None and not (queue.shaped and queue.settings is not None and _shapes_puts(queue.settings)):
            return _put_numbered_at_once(state, queue, put, lease_of(operation))
    state.put_item = None
    dedup = operation.dedup
    if dedup is not None and (number := state.remembered_keys.find(name, dedup.key, state.clock_ms)) is not None:
        return _exists(operation, number)
    refusal = (
        names_group_in_vain(state, operation) or rejects_puts(state, name, len(put.data)) or refused_put(state, put)
    )
    if refusal is not None:
        return refusal
    if operation.key is not None and key_taken(state, name, operation.key):
        return _duplicate(state, operation, operation.key, seed)
    refusal = at_capacity(state, name) or cannot_remember(state, operation, name)
    if refusal is not None:
        return refusal
    if operation.after and never_comes(state, operation.after, operation.until):
        return replies.JOB_DROPPED
    queue = state.queues.get_or_create(name)
    leaving = None if queue.settings is None else displaced(queue)
    item = state.new_item_name(seed) if put.new_item else put.item
    state.put_item = item
    seq = state.new_seq()
    job = place(state, operation, queue, item, seq, after=awaited_items(state, operation))
    if dedup is not None:
        remember(state, operation, job)
    queue.counters[PUT] += 1
    state.events.tell("PUT", queue.name, put.priority)
    if queue.settings is not None:
        admitted(state, queue, leaving)
    if operation.number:
        return StoredNumber(seq, item if put.new_item else None)
    return Stored(item) if put.new_item else STORED


def _nothing_but_numbered(operation: PutWith) -> bool:
    put = operation.put
    return (
        put.item is None and not put.new_item and operation.when is None and not operation.after
        and operation.key is None and operation.every_ms is None and operation.ttl_ms is None
        and operation.tries is None and operation.group is None and not operation.head
        and operation.dedup is None
    )


def _put_numbered_at_once(state: State, queue: Queue, put: Put, lease_ms: int | None) -> Reply:
    """Return the case of `put_with` for most numbered jobs: no options, and a queue that adds them at the tail."""
    state.put_item = None
    if queue.shaped:
        refusal = rejects_puts(state, queue.name, len(put.data)) or at_capacity(state, queue.name)
        if refusal is not None:
            return refusal
    seq = state.new_seq()
    extras = extras_of_many(None, None, None, None, lease_ms, NEW_COUNTS)
    job = Job(-put.priority, 0, seq, queue.name, state.held(put.data), None, 0, None, extras)
    if queue.shaped:
        state.make_ready(queue, job)
    else:
        state.add(queue, job)
    queue.counters[PUT] += 1
    state.events.tell("PUT", queue.name, put.priority)
    return StoredNumber(seq)


def put_with_cost(operation: PutWith) -> Cost:
    """Return the bytes and work of a PutWith."""
    size, _ = put_cost(operation.put)
    size, work, after = size + OPTIONS_BYTES, JOB_WITH_EXTRAS, operation.after
    dedup = operation.dedup
    named = operation.key, operation.group, operation.user, None if dedup is None else dedup.key
    if after or any(named):
        size += of_names(*after, *named)
        work += AFTER * len(after)
    if operation.targets is not None:
        more_bytes, more_work = targets_cost(operation, operation.targets)
        size, work = size + more_bytes, work + more_work
    return size, work


def put_with_brings(state: State, operation: PutWith) -> Iterable[str]:
    """Return the queue or queues of a PutWith, or its topic; spread.py checks the queues that a topic reaches."""
    targets = operation.targets
    if isinstance(targets, ToTopic):
        return (targets.topic,)
    return (operation.put.queue,) if targets is None else targets.queues


def _exists(operation: PutWith, number: int) -> Reply:
    """Return the successful reply for a job that exists already. `number`: its number, 0 without one."""
    return replies.IgnoredNumber(number) if operation.number and number else replies.JOB_IGNORED


def _duplicate(state: State, operation: PutWith, key: str, seed: int) -> Reply:
    """Handle a Put whose key is taken, as its ONDUP says."""
    put = operation.put
    queue = state.queues.by_name.get(put.queue)
    job = None if queue is None or queue.keys is None else queue.keys.get(key)
    if operation.on_dup is OnDup.IGNORE:
        return _exists(operation, (None if job is None else number_of(job)) or 0)
    if operation.on_dup is OnDup.FAIL or job is None or isinstance(job, BuriedJob) or queue is None:
        return replies.JOB_EXISTS
    if isinstance(job, RunningJob):
        return replies.JOB_RUNNING
    refusal = refused(state, job.item)
    if refusal is not None:
        return refusal
    refusal = cannot_remember(state, operation, put.queue)
    if refusal is not None:
        return refusal
    if operation.group is not None:
        state.use_fair()        # now, as the first use offers the group of the job that is replaced, too
    after = awaited_items(state, operation)         # also for the job itself, while it is there
    if isinstance(job, DelayedJob):
        state.undefer(queue, job)
    else:
        state.replace_ready(begins=True)
        state.remove(queue, job)
    item = state.new_item_name(seed) if put.new_item else put.item
    placed = place(state, operation, queue, item, job.seq, replaced=job, after=after)
    if operation.dedup is not None:
        remember(state, operation, placed)
    state.replace_ready(begins=False)
    queue.used_ms = state.clock_ms
    if job.item is not None:
        state.close_item(job.item, job.queue)
    return replies.JOB_REPLACED
