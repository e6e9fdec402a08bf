"""Builds the job of a Put with options and places it in its queue (spec/state-machine 6)."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.fair.group_by import group_of_put
from sockpqd.core.ops.jobs import PutWith, Until
from sockpqd.core.rules import activate
from sockpqd.core.rules.admit import new_counts, ttl_ms
from sockpqd.core.state import State
from sockpqd.core.store.body import Data
from sockpqd.core.store.job import (
    FLOATING,
    NEW_COUNTS,
    NO_EXTRAS,
    DelayedJob,
    Extras,
    Job,
    extras_of_many,
)
from sockpqd.core.store.queues import Queue


def place(
    state: State, operation: PutWith, queue: Queue, item: str | None, seq: int,
    replaced: Job | DelayedJob | None = None, body: int | None = None, data: Data | None = None,
    after: tuple[str, ...] = (),
) -> Job:
    """Put the job of this operation into the queue. `body`: the number of `data` if other jobs share it.
    `after`: the items for which it waits (activate.awaited_items).

    Returns the job in its form before it became READY or DELAYED.
    """
    put = operation.put
    group = group_of_put(queue.settings, operation, item)
    if group is not None:
        state.use_fair()
    at_ms = None if operation.when is None else activate.moment(state, operation.when)
    every_ms = None if operation.every_ms is None else _bounded(operation.every_ms, limits.DURATION_MS_MAX) or None
    if every_ms is not None and at_ms is None:
        at_ms = state.clock_ms
    extras = _extras(state, operation, queue, group, at_ms, every_ms, replaced, body, after)
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
    state: State, operation: PutWith, queue: Queue, group: str | None, at_ms: int | None, every_ms: int | None,
    replaced: Job | DelayedJob | None, body: int | None, after: tuple[str, ...],
) -> Extras:
    """Return the rare attributes of the job of this operation, which becomes active at `at_ms` if that is given."""
    counts = None if replaced is None or replaced.extras is None else replaced.extras.counts
    if counts is None:
        counts = new_counts(queue, number=operation.number and replaced is None)
        if counts is not None and at_ms is not None and at_ms > state.clock_ms:
            counts = replace(counts, delay_ms=at_ms - state.clock_ms)
    shared = counts if counts is NEW_COUNTS or counts is FLOATING else None
    extras = extras_of_many(
        None if operation.tries is None else _bounded(operation.tries, limits.NUMBER_MAX),
        ttl_ms(queue, operation.ttl_ms), every_ms, group, lease_of(operation), shared,
        head=_bounded(operation.head, len(operation.put.data)),
    )
    if operation.key is not None or after or body is not None or counts is not shared:
        extras = replace(
            extras,
            key=operation.key,
            origin=None if replaced is None or replaced.extras is None else replaced.extras.origin,
            after=after,
            until=operation.until if after else Until.DONE,
            ready_ms=state.clock_ms if isinstance(replaced, DelayedJob) else _ready_ms(replaced),
            body=body,
            counts=counts,
        )
    return extras


def lease_of(operation: PutWith) -> int | None:
    """Return the lease that the Put itself sets; None if the queue decides."""
    return None if operation.lease_ms is None else _bounded(operation.lease_ms, limits.DURATION_MS_MAX)


def _ready_ms(replaced: Job | None) -> int | None:
    """Return the time from which the replaced job has been READY, which the new one inherits.

    None if it was not READY.
    """
    return None if replaced is None or replaced.extras is None else replaced.extras.ready_ms


def _bounded(value: int, most: int) -> int:
    """Return the value, limited so that a snapshot can hold it, whatever the client sent."""
    return min(max(value, 0), most)
