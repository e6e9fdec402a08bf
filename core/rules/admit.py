"""Admission: the reasons why a queue does not take a job."""

from __future__ import annotations

from core.ops.replies import DATA_TOO_LARGE, QUEUE_FULL, QUEUE_NOT_FOUND, QUEUE_PAUSED, Reply
from core.state import State


def rejects_puts(state: State, queue: str, data_bytes: int) -> Reply | None:
    """Why the queue takes no job with this much data, whatever its load; None: it does."""
    settings = state.queues.settings.get(queue)
    if settings is None:
        unknown = not state.settings.autocreate and queue not in state.queues.by_name
        return QUEUE_NOT_FOUND if unknown else None
    if settings.paused_in:
        return QUEUE_PAUSED
    return too_large(state, queue, data_bytes)


def too_large(state: State, queue: str, data_bytes: int) -> Reply | None:
    """The refusal of data that are larger than jobs of the queue may have (MAXDATA); None: they are not."""
    settings = state.queues.settings.get(queue)
    return DATA_TOO_LARGE if settings is not None and 0 < settings.data_bytes_max < data_bytes else None


def at_capacity(state: State, queue: str) -> Reply | None:
    """The refusal of a queue with as many READY and DELAYED jobs as it may have (CAPACITY); None: it has fewer."""
    one = state.queues.by_name.get(queue)
    if one is None or one.settings is None or not one.settings.capacity:
        return None
    return QUEUE_FULL if one.ready_count + one.deferred >= one.settings.capacity else None


def key_taken(state: State, queue: str, key: str) -> bool:
    """Whether an unfinished job of the queue has this key, or a finished one had it whose key is retained (KEEP)."""
    one = state.queues.by_name.get(queue)
    if one is not None and one.keys is not None and key in one.keys:
        return True
    return state.retained_keys.until_ms(queue, key) > state.clock_ms
