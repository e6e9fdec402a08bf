"""A Put with options: for later, with a key, periodic, after items (spec/state-machine 6)."""

from __future__ import annotations

from core import limits
from core.ops.jobs import OnDup, PutWith
from core.ops.replies import Reply, Stored
from core.rules import activate
from core.rules.admit import JOB_EXISTS, JOB_IGNORED, JOB_REPLACED, JOB_RUNNING, STORED, full, key_taken, shut
from core.state import State
from core.store.job import DelayedJob, More, RunningJob
from core.store.queues import PUT, Queue


def put_with(state: State, operation: PutWith, seed: int) -> Reply:
    """A new job; or, with a key that is taken, what ONDUP says."""
    put = operation.put
    name = put.queue
    state.put_item = None
    refusal = shut(state, name, len(put.data))
    if refusal is not None:
        return refusal
    if operation.key is not None and key_taken(state, name, operation.key):
        return _duplicate(state, operation, operation.key, seed)
    refusal = full(state, name)
    if refusal is not None:
        return refusal
    queue = state.queues.open(name)
    item = state.items.new_name(seed) if put.new_item else put.item
    state.put_item = item
    _place(state, operation, queue, item, state.new_seq(), 0, None)
    queue.counters[PUT] += 1
    return Stored(item) if put.new_item else STORED


def _duplicate(state: State, operation: PutWith, key: str, seed: int) -> Reply:
    """The key is taken."""
    if operation.on_dup is OnDup.IGNORE:
        return JOB_IGNORED
    put = operation.put
    queue = state.queues.by_name.get(put.queue)
    job = None if queue is None or queue.keys is None else queue.keys.get(key)
    if operation.on_dup is OnDup.FAIL or job is None or queue is None:
        return JOB_EXISTS
    if isinstance(job, RunningJob):
        return JOB_RUNNING
    if isinstance(job, DelayedJob):
        state.undefer(queue, job)
    else:
        state.remove(queue, job)
    item = state.items.new_name(seed) if put.new_item else put.item
    _place(state, operation, queue, item, job.seq, job.attempts, None if job.more is None else job.more.origin)
    if job.item is not None:
        state.close_item(job.item, job.queue)
    return JOB_REPLACED


def _place(
    state: State, operation: PutWith, queue: Queue, item: str | None, seq: int, attempts: int, origin: str | None,
) -> None:
    put = operation.put
    at_ms = None if operation.when is None else activate.moment(state, operation.when)
    every_ms = _bounded(operation.every_ms, 0, limits.DURATION_MS_MAX) or None
    if every_ms is not None and at_ms is None:
        at_ms = state.clock_ms
    more = More(
        key=operation.key,
        tries=_bounded(operation.tries, 0, limits.NUMBER_MAX),
        ttl_ms=_bounded(operation.ttl_ms, 0, limits.DURATION_MS_MAX),
        every_ms=every_ms,
        origin=origin,
        after=activate.after(state, operation.after),
    )
    activate.place(state, queue, -put.priority, seq, put.data, item, attempts, at_ms, None if more == More() else more,
                at_ms)


def _bounded(value: int | None, least: int, most: int) -> int | None:
    """A number that a snapshot can hold, whatever a client said."""
    return None if value is None else min(max(value, least), most)
