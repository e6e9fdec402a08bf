"""Tasks that have failed for good: read, retried and removed, for the admin pages."""

from __future__ import annotations

from typing import NamedTuple

from sockpq import JobNotFound, Key, Number, PeekedJob, Place

from sockpq_django.backend import SockpqBackend
from sockpq_django.tasks.body import BadBody, FailedAttempt, TaskBody, parsed_body
from sockpq_django.tasks.names import TaskId, dead_queue_of, parsed_id

SHOWN_MAX = 200             # of each queue, the first that died


class FailedTask(NamedTuple):
    """A dead task. `body`: None if it cannot be read; `error`: the text that the server keeps with the job."""

    id: str
    backend: str
    queue: str
    priority: int
    attempts: int
    reason: str
    body: TaskBody | None
    error: str = ""

    @property
    def path(self) -> str:
        """The path of its function."""
        return self.body.path if self.body else "(the job is no call of a task)"

    @property
    def failed(self) -> tuple[FailedAttempt, ...]:
        """The attempts that have failed."""
        return self.body.failed if self.body else ()

    @property
    def message(self) -> str:
        """The last line of its last error."""
        lines = (self.failed[-1].traceback if self.failed else self.error).strip().splitlines()
        return lines[-1] if lines else self.reason


def failed_tasks(backend: SockpqBackend) -> list[FailedTask]:
    """Return the first dead tasks of each queue of the backend. Raises SockpqError."""
    found = []
    for queue in sorted(backend.queues):
        for job in backend.client.peek_queue(backend.queue(queue), "dead", SHOWN_MAX):
            if job.key is not None:
                found.append(_failed_task(backend, TaskId(queue, job.key), job))
    return found


def failed_task(backend: SockpqBackend, result_id: str) -> FailedTask | None:
    """Return a dead task with all its errors; None if there is none with this id. Raises SockpqError."""
    job = _dead_job(backend, result_id)
    if job is None:
        return None
    task_id = parsed_id(result_id)
    assert task_id is not None
    try:
        error = backend.client.job_error(Key(job.queue, task_id.key)) or ""
    except JobNotFound:
        return None
    return _failed_task(backend, task_id, job)._replace(error=error)


def retry_task(backend: SockpqBackend, result_id: str) -> bool:
    """Put a dead task back into its queue, with all its tries; returns whether there was one. Raises SockpqError."""
    job = _dead_job(backend, result_id)
    if job is None or job.number is None:
        return False
    try:
        backend.client.kick_job(Place(job.queue, job.number))       # a job with a number has it as its place
    except JobNotFound:
        return False
    return True


def remove_task(backend: SockpqBackend, result_id: str) -> bool:
    """Remove a dead task for good; returns whether there was one. Raises SockpqError."""
    job = _dead_job(backend, result_id)
    if job is None or job.number is None:
        return False
    try:
        backend.client.delete(Number(job.number), untaken=True)
    except JobNotFound:
        return False
    return True


def _dead_job(backend: SockpqBackend, result_id: str) -> PeekedJob | None:
    task_id = parsed_id(result_id)
    if task_id is None or task_id.queue not in backend.queues:
        return None
    return backend.client.peek(Key(dead_queue_of(task_id.queue, backend.settings.prefix), task_id.key))


def _failed_task(backend: SockpqBackend, task_id: TaskId, job: PeekedJob) -> FailedTask:
    try:
        body = parsed_body(job.data)
    except BadBody:
        body = None
    return FailedTask(
        str(task_id), backend.alias, task_id.queue, job.priority, job.attempt, job.reason or "", body
    )
