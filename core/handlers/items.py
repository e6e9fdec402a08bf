"""Handlers of the operations on whole items (spec/state-machine 5.2)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, JOB_WITH_EXTRAS, Cost, of_names
from sockpqd.core.ops.jobs import CancelItem, HoldItem, RetryItem
from sockpqd.core.ops.replies import (
    ACCEPTED,
    FINISHED,
    ITEM_NOT_FOUND,
    ITEM_NOT_HELD,
    TOO_MANY_HOLDS,
    Moved,
    Removed,
    Reply,
    Stored,
)
from sockpqd.core.rules.complete import kick_lost
from sockpqd.core.rules.items.cancel import cancel, refused
from sockpqd.core.rules.portion import Portion
from sockpqd.core.state import State
from sockpqd.core.store.items.holds import Hold
from sockpqd.core.store.job import BuriedJob, Job


def hold_item(state: State, operation: HoldItem, seed: int) -> Reply:
    """Hold an item, which may be new, so that it cannot end before its hold does; or end its hold."""
    if operation.expire_ms is None:
        return _release(state, operation.item or "")
    items = state.items
    name = state.new_item_name(seed) if operation.item is None else operation.item
    refusal = refused(state, name)
    if refusal is not None:
        return refusal
    item = items.by_name.get(name)
    if (item is None or item.hold is None) and len(items.holds) >= limits.HOLDS_MAX:
        return TOO_MANY_HOLDS
    length_ms = min(max(operation.expire_ms, 1), limits.HOLD_MS_MAX)
    if item is None:
        item = items.open(name)
        item.owner = operation.user or None if operation.item is None else None
    state.hold_item(item, Hold(state.clock_ms + length_ms, length_ms, operation.then))
    return ACCEPTED if operation.item is not None else Stored(name)


def hold_cost(operation: HoldItem) -> Cost:
    """Return the bytes and work of a HoldItem."""
    return BASE_BYTES + of_names(operation.item, operation.user), JOB_WITH_EXTRAS


def _release(state: State, name: str) -> Reply:
    """End the hold of an item, and the item itself if it has no jobs."""
    item = state.items.by_name.get(name)
    if item is None or item.hold is None:
        return ITEM_NOT_HELD
    state.hold_item(item, None)
    return FINISHED[False, state.end_item(name)]


def retry_item(state: State, operation: RetryItem, seed: int) -> Reply:
    """Kick a portion of the DEAD and BURIED jobs of the item, each to the queue in which it died."""
    item = state.items.by_name.get(operation.item)
    if item is None:
        return ITEM_NOT_FOUND if operation.left is None else Moved(0)
    refusal = refused(state, operation.item)
    if refusal is not None:
        return refusal if operation.left is None else Moved(0)
    left = item.lost if operation.left is None else max(0, min(operation.left, item.lost))
    portion, kicked = Portion(limits.PORTION_MAX), 0
    while kicked < left:
        lost = item.dead or item.buried
        assert lost is not None
        job: Job | BuriedJob = lost.first
        if not portion.take(len(job.data)):
            break
        kick_lost(state, job)
        kicked += 1
        if state.events.endings:
            state.end_operation()
    return Moved(kicked, left - kicked)


def retry_cost(operation: RetryItem) -> Cost:
    """Return the bytes and work of a RetryItem."""
    return BASE_BYTES + of_names(operation.item), JOB_WITH_EXTRAS * limits.PORTION_MAX


def cancel_item(state: State, operation: CancelItem, seed: int) -> Reply:
    """Cancel the item; its jobs, except running ones, are removed from the next entry on."""
    item = state.items.by_name.get(operation.item)
    if item is None:
        return ITEM_NOT_FOUND
    cancel(state, item, operation.reason)
    return Removed(item.unfinished)


def cancel_cost(operation: CancelItem) -> Cost:
    """Return the bytes and work of a CancelItem."""
    return BASE_BYTES + of_names(operation.item, operation.reason), JOB_WITH_EXTRAS
