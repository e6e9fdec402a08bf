"""What a queue has to give, and how it is handed out; among which queues is told in select.py."""

from __future__ import annotations

from typing import Any

from core import limits
from core.ops.jobs import Get, Then
from core.state import State
from core.store.items import Part
from core.store.job import RunningJob
from core.store.queues import Queue


def gives(queue: Queue, part: Part) -> bool:
    """Has the item a job to give in this queue?"""
    settings = queue.settings
    if settings is None:
        return part.ready.size > 0
    return not queue.closed and (part.given if settings.item_limit else part.ready.size) > 0


def available_of_item(queue: Queue, part: Part) -> int:
    """How many jobs of the item would be given now, one after the other."""
    settings = queue.settings
    if settings is None:
        return part.ready.size
    return min(queue.available(), part.given) if settings.item_limit else min(queue.available(), part.ready.size)


def unfinished(state: State, queues: tuple[str, ...] | None, item_name: str | None) -> bool:
    """Have the queues asked for an unfinished job (of the item)? A queue or part that has none does not exist."""
    if item_name is None:
        existing: dict[str, Any] = state.queues.by_name
    else:
        item = state.items.by_name.get(item_name)
        existing = {} if item is None else item.parts
    return bool(existing) if queues is None else any(name in existing for name in queues)


def lease(state: State, queue: Queue, operation: Get) -> tuple[int | None, Then]:
    """For how long a job of the queue runs, as the operation or the queue says, and what follows; None: no limit."""
    expire_ms, then = operation.expire_ms, operation.then
    if expire_ms is None and queue.settings is not None and queue.settings.expire_ms:
        expire_ms, then = queue.settings.expire_ms, queue.settings.then
    if expire_ms is None or expire_ms <= 0:
        return None, Then.LATER
    return min(expire_ms, limits.DURATION_MS_MAX), state.settings.expire_default if then is Then.DEFAULT else then


def hand_out(state: State, queue: Queue, item: str | None, operation: Get) -> RunningJob:
    """The next job of the queue (of the item) runs from now on."""
    lease_ms, then = lease(state, queue, operation)
    return state.hand_out(queue, state.take(queue, item), lease_ms, then)
