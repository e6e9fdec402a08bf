"""Replies without a content of their own, made once; and the reasons why a queue does not take a job."""

from __future__ import annotations

from core.ops.replies import (
    Accepted,
    DataTooLarge,
    Empty,
    Finished,
    InvalidSnapshot,
    JobExists,
    JobIgnored,
    JobReplaced,
    JobRunning,
    NotFound,
    QueueExists,
    QueueFull,
    QueueNotEmpty,
    QueueNotFound,
    QueuePaused,
    Reply,
    SessionNotFound,
    Stored,
    TooManyQueues,
)
from core.state import State

ACCEPTED = Accepted()
NOT_FOUND = NotFound()
SESSION_NOT_FOUND = SessionNotFound()
STORED = Stored()
INVALID_SNAPSHOT = InvalidSnapshot()
EMPTY = Empty(unfinished=False)
EMPTY_UNFINISHED = Empty(unfinished=True)
FINISHED = {(queue, item): Finished(queue, item) for queue in (False, True) for item in (False, True)}
DATA_TOO_LARGE = DataTooLarge()
JOB_EXISTS = JobExists()
JOB_IGNORED = JobIgnored()
JOB_REPLACED = JobReplaced()
JOB_RUNNING = JobRunning()
QUEUE_EXISTS = QueueExists()
QUEUE_FULL = QueueFull()
QUEUE_NOT_EMPTY = QueueNotEmpty()
QUEUE_NOT_FOUND = QueueNotFound()
QUEUE_PAUSED = QueuePaused()
TOO_MANY_QUEUES = TooManyQueues()


def shut(state: State, queue: str, data_bytes: int) -> Reply | None:
    """Why the queue takes no job with so much data, whoever's it is; None: it does."""
    settings = state.queues.settings.get(queue)
    if settings is None:
        unknown = not state.settings.autocreate and queue not in state.queues.by_name
        return QUEUE_NOT_FOUND if unknown else None
    if settings.paused_in:
        return QUEUE_PAUSED
    return too_large(state, queue, data_bytes)


def too_large(state: State, queue: str, data_bytes: int) -> Reply | None:
    """Are these more data than jobs of the queue may have (MAXDATA)?"""
    settings = state.queues.settings.get(queue)
    return DATA_TOO_LARGE if settings is not None and 0 < settings.data_bytes_max < data_bytes else None


def full(state: State, queue: str) -> Reply | None:
    """Has the queue as many jobs that do not run as it may have (CAPACITY)?"""
    one = state.queues.by_name.get(queue)
    if one is None or one.settings is None or not one.settings.capacity:
        return None
    return QUEUE_FULL if one.ready_count + one.deferred >= one.settings.capacity else None


def key_taken(state: State, queue: str, key: str) -> bool:
    """Has the queue an unfinished job with this key, or had one that is remembered (KEEP)?"""
    one = state.queues.by_name.get(queue)
    if one is not None and one.keys is not None and key in one.keys:
        return True
    return state.kept.until_ms(queue, key) > state.clock_ms
