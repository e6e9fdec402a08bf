"""The jobs that a queue can hand out, and the hand-out itself; select.py chooses among several queues."""

from __future__ import annotations

from typing import Any

from sockpqd.core import limits
from sockpqd.core.fair.choice import FairChoice, take
from sockpqd.core.ops.jobs import Get, Then
from sockpqd.core.state import State
from sockpqd.core.store.items.item import ItemQueue
from sockpqd.core.store.job import Job, RunningJob
from sockpqd.core.store.queues import Queue


def can_hand_out(queue: Queue, item_queue: ItemQueue) -> bool:
    """Return whether a job of the item can be handed out from this queue."""
    settings = queue.settings
    if settings is None:
        return item_queue.ready.size > 0 and not queue.withheld
    return not queue.closed and (item_queue.eligible if settings.item_limit else item_queue.ready.size) > 0


def available_of_item(queue: Queue, item_queue: ItemQueue) -> int:
    """Return the number of jobs of the item that could be handed out now, one after another."""
    settings = queue.settings
    if settings is None:
        return 0 if queue.withheld else item_queue.ready.size
    return min(queue.available(), item_queue.eligible if settings.item_limit else item_queue.ready.size)


def unfinished(state: State, queues: tuple[str, ...] | None, item_name: str | None) -> bool:
    """Return whether one of the queues (None: any) has an unfinished job (of the item)."""
    # A queue without unfinished jobs does not exist, nor does an item in a queue.
    if item_name is None:
        existing: dict[str, Any] = state.queues.by_name
    else:
        item = state.items.by_name.get(item_name)
        existing = {} if item is None else item.by_queue
    return bool(existing) if queues is None else any(name in existing for name in queues)


def lease(state: State, queue: Queue, operation: Get, job: Job) -> tuple[int | None, Then]:
    """Return the length of a lease in ms (None: no limit) and its action on expiry, by operation, job or queue.

    A lease set by the job is only a length: the action is the queue's THEN, or the cluster's if the queue has no lease.
    """
    expire_ms, then = operation.expire_ms, operation.then
    if expire_ms is None:
        then = Then.DEFAULT
        if queue.settings is not None and queue.settings.expire_ms > 0:
            expire_ms, then = queue.settings.expire_ms, queue.settings.then
        if job.extras is not None and job.extras.lease_ms is not None:
            expire_ms = job.extras.lease_ms
    if expire_ms is None or expire_ms <= 0:
        return None, Then.LATER
    return min(expire_ms, limits.DURATION_MS_MAX), state.settings.expire_default if then is Then.DEFAULT else then


def hand_out(
    state: State, queue: Queue, item: str | None, operation: Get, found: FairChoice | None = None,
) -> RunningJob:
    """Hand out the next job of the queue (of the item), or the one `found` by FAIR."""
    if found is not None and state.fair is not None:
        state.spent += 4 * limits.STEP * found.account.moves
        take(state.fair, found)
        job = state.remove_exact(queue, found.job)
    else:
        job = state.take(queue, item)
    return state.hand_out(queue, job, *lease(state, queue, operation, job))
