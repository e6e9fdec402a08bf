"""Which queues have a job to give, and how one is handed out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.items import Part
from core.job import Job, RunningJob
from core.job_operations import Get, Then
from core.queues import Queue
from core.state import EXPIRE_MS_MAX, State


def candidates(state: State, queues: tuple[str, ...] | None, item_name: str | None) -> Sequence[str]:
    """Sorted names of the queues asked for that have a job to give."""
    if item_name is None:
        if queues is None:
            names: Sequence[str] = state.queues.nonempty
            return names
        by_name = state.queues.by_name
        return sorted(
            name for name in dict.fromkeys(queues)
            if name in by_name and by_name[name].ready.size and not by_name[name].closed
        )
    item = state.items.by_name.get(item_name)
    if item is None:
        return ()
    if queues is None:
        return [name for name in item.nonempty if _gives(state.queues.by_name[name], item.parts[name])]
    return sorted(
        name for name in dict.fromkeys(queues)
        if name in item.parts and _gives(state.queues.by_name[name], item.parts[name])
    )


def _gives(queue: Queue, part: Part) -> bool:
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


def first_job(state: State, queue: str, item: str | None) -> Job:
    """The job that the queue would give next; it must have one to give."""
    one = state.queues.by_name[queue]
    return one.ready.first if item is None else state.items.by_name[item].parts[queue].ready[0]


def first_of(
    state: State, names: Sequence[str], queues: tuple[str, ...] | None, item: str | None,
) -> Sequence[str]:
    """Those of the names whose next job has the highest priority; only the first in the order of `queues`, if given."""
    ranks = {name: first_job(state, name, item).rank for name in names}
    best = min(ranks.values())
    if queues is not None:
        return [next(name for name in queues if ranks.get(name) == best)]
    return [name for name in names if ranks[name] == best]


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
    return min(expire_ms, EXPIRE_MS_MAX), state.settings.expire_default if then is Then.DEFAULT else then


def hand_out(state: State, queue: Queue, item: str | None, operation: Get) -> RunningJob:
    """The next job of the queue (of the item) runs from now on."""
    lease_ms, then = lease(state, queue, operation)
    return state.hand_out(queue, state.take(queue, item), lease_ms, then)
