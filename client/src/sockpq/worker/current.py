"""The job of the running task, and its cancellation."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from sockpq.worker.errors import JobCancelled


class Cancellation:
    """The state of a call whose job may be cancelled: `wanted`: requested; `interrupted`: carried out."""

    def __init__(self) -> None:
        self.wanted = False
        self.interrupted = False

    def check(self) -> None:
        """Raise JobCancelled once, if the job is cancelled."""
        if self.wanted and not self.interrupted:
            self.interrupted = True
            raise JobCancelled("the job was cancelled")


CURRENT: ContextVar[Any] = ContextVar("sockpq_job")
CANCELLATION: ContextVar[Cancellation | None] = ContextVar("sockpq_cancellation", default=None)


def check_cancelled() -> None:
    """Raise JobCancelled in a task that runs in a thread, once, when its job is cancelled."""
    cancellation = CANCELLATION.get()
    if cancellation:
        cancellation.check()


def current_job() -> Any:
    """Return the job of the running task: a sockpq.Job, in an async task a sockpq.aio.Job.

    The worker says DONE when the task returns. A task that finishes its job itself does so like this:
    `with app.client.transaction() as t: t.put(..); t.done(current_job())`. Raises LookupError outside of a task.
    """
    job = CURRENT.get(None)
    if job is None:
        raise LookupError("there is no job here: current_job() is for tasks while a worker runs them")
    return job
