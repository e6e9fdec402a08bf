"""Middleware that knows which task runs, and deals with tasks that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from taskiq import NoResultError, TaskiqMessage, TaskiqMiddleware, TaskiqResult
from taskiq.exceptions import TaskRejectedError

from sockpq_taskiq.held_task import HeldTask, current
from sockpq_taskiq.labels import is_true, label_number

STOPPED = asyncio.CancelledError, KeyboardInterrupt
UNFINISHED = (*STOPPED, NoResultError)          # no failures of a task


class RunningTask(TaskiqMiddleware):
    """Tracks the running task, for the broker and other middleware. Each SockpqBroker has one, before all others."""

    def __init__(self, begun: Callable[[str], HeldTask | None]) -> None:
        """`begun`: called with the id of a task that is about to run; returns the task if this worker took it."""
        super().__init__()
        self._begun = begun

    def pre_execute(self, message: TaskiqMessage) -> TaskiqMessage:
        """Remember the task's job, for calls of the task about itself; returns the message as it is."""
        current.set(self._begun(message.task_id))
        return message

    async def on_error(self, message: TaskiqMessage, result: TaskiqResult, exception: BaseException) -> None:
        """Give back a task that was cancelled, as when its worker is stopped: Taskiq would acknowledge it."""
        held = current.get()
        if held is not None and not held.ended and isinstance(exception, STOPPED):
            await held.give_back()
            result.error = NoResultError()


class SockpqMiddleware(TaskiqMiddleware):
    """Retries tasks that fail, and keeps those that fail for good as dead letters, each in one step."""

    def __init__(
        self, *, dead_letters: bool = True, retries: int = 0, backoff: tuple[float, float] = (2.0, 600.0),
    ) -> None:
        """`retries`: after the first attempt; the label `max_retries` of a task overrides it.

        `backoff`: the seconds before the first retry, which double with each further one, and their maximum.
        `dead_letters`: what fails for good goes to `<queue>_dead` with its traceback; otherwise it is acknowledged, as
        by Taskiq alone.
        """
        super().__init__()
        self._dead_letters = dead_letters
        self._retries = retries
        self._backoff = backoff

    async def on_error(self, message: TaskiqMessage, result: TaskiqResult, exception: BaseException) -> None:
        """Put the task back, or make it a dead letter."""
        held = current.get()
        if held is None or held.ended or isinstance(exception, UNFINISHED):
            return
        if not isinstance(exception, TaskRejectedError) and held.attempt <= self._retries_of(message):
            first, most = self._backoff
            await held.retry(min(first * 2 ** (held.attempt - 1), most), exception)
            result.error = NoResultError()
        elif self._dead_letters:
            await held.bury(exception)

    def _retries_of(self, message: TaskiqMessage) -> int:
        if not is_true(message.labels.get("retry_on_error", True)):
            return 0
        given = label_number(message.labels, "max_retries")
        return self._retries if given is None else given
