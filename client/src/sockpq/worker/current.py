"""The job that a task is called for."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

CURRENT: ContextVar[Any] = ContextVar("sockpq_job")


def current_job() -> Any:
    """The job that the running task is called for: a sockpq.Job, in an async task a sockpq.aio.Job.

    The worker says DONE when the task returns. A task that finishes its job itself does so by this:
    `with app.client.transaction() as t: t.put(..); t.done(current_job())`. Raises LookupError outside of a task.
    """
    job = CURRENT.get(None)
    if job is None:
        raise LookupError("there is no job here: current_job() is for tasks while a worker runs them")
    return job
