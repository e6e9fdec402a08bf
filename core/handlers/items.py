"""Handlers of the operations on whole items (spec/state-machine 5.2)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, JOB_WITH_EXTRAS, Cost, of_names
from sockpqd.core.ops.jobs import RetryItem
from sockpqd.core.ops.replies import ITEM_NOT_FOUND, Moved, Reply
from sockpqd.core.rules.complete import kick_buried, kick_dead
from sockpqd.core.rules.portion import Portion
from sockpqd.core.state import State


def retry_item(state: State, operation: RetryItem, seed: int) -> Reply:
    """Kick a portion of the DEAD and BURIED jobs of the item, each to the queue in which it died."""
    item = state.items.by_name.get(operation.item)
    if item is None:
        return ITEM_NOT_FOUND if operation.left is None else Moved(0)
    left = item.lost if operation.left is None else max(0, min(operation.left, item.lost))
    portion, kicked = Portion(limits.PORTION_MAX), 0
    while kicked < left:
        if item.dead is not None:
            dead = item.dead.first
            if not portion.take(len(dead.data)):
                break
            kick_dead(state, dead)
        else:
            assert item.buried is not None
            buried = item.buried.first
            if not portion.take(len(buried.data)):
                break
            kick_buried(state, buried)
        kicked += 1
    return Moved(kicked, left - kicked)


def retry_cost(operation: RetryItem) -> Cost:
    """Bytes and work of a RetryItem."""
    return BASE_BYTES + of_names(operation.item), JOB_WITH_EXTRAS * limits.PORTION_MAX
