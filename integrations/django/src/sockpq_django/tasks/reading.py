"""The result of a task, as Django shows it, from the job that the server shows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.utils import timezone
from django.utils.module_loading import import_string
from sockpq import PeekedJob

from sockpq_django.api import Task, TaskError, TaskResult, TaskResultStatus
from sockpq_django.errors import TaskCancelled, TaskExpired, TaskRefused, WorkerLost
from sockpq_django.tasks.body import TaskBody, parsed_body
from sockpq_django.tasks.names import TaskId

UNKNOWN_WORKER = "unknown"      # one that was killed, or that runs the task now
ENDS = {"cancelled": TaskCancelled("the task was cancelled"), "expired": TaskExpired("the TTL of the task is over")}


class SeenJob(NamedTuple):
    """A job as the server shows it.

    `state`: "ready", "delayed", "running", "dead", "done", "cancelled" or "expired"; "refused" if it is in an outbox
    and the cluster does not take it. `attempt`: the number of hand-outs since it was put or kicked. `first`, `last`,
    `ended`: the Unix times of its first and last hand-out, and of its end. `returned`: the result that its worker left.
    `error`: the text that the server keeps with a dead job.
    """

    id: TaskId
    state: str
    body: TaskBody
    priority: int
    attempt: int
    first: float | None = None
    last: float | None = None
    ended: float | None = None
    returned: bytes = b""
    error: str = ""


def seen(task_id: TaskId, job: PeekedJob, state: str | None = None, returned: bytes = b"", error: str = "") -> SeenJob:
    """Return the job as the server shows it; `state`: replaces its own. Raises BadBody."""
    life = job.life
    return SeenJob(
        task_id, state or job.state, parsed_body(job.data), job.priority, job.attempt, life and life.first,
        life and life.started, job.ended, returned, error,
    )


def task_of(body: TaskBody, priority: int, queue: str, backend: str) -> Any:
    """Return the task of this call. Raises ImportError, and SuspiciousOperation if the path names no task."""
    found = import_string(body.path)
    if not isinstance(found, Task):
        raise SuspiciousOperation(f"{body.path} is not a task")
    return found.using(
        priority=priority, queue_name=queue, run_after=body.run_after and datetime.fromisoformat(body.run_after),
        backend=backend,
    )


def result_of(job: SeenJob, backend: str) -> Any:
    """Return the TaskResult of this job. Raises ImportError, SuspiciousOperation."""
    left = _left(job.returned)
    enqueued = datetime.fromisoformat(job.body.enqueued_at).timestamp()
    started, last = _not_before(enqueued, job.first), _not_before(enqueued, job.last)
    over = job.state not in ("ready", "delayed", "running")
    failed = job.body.failed[-1].at if job.body.failed else None
    finished = left.get("at") or (failed if job.state == "dead" else None) or job.ended or last
    result = TaskResult(
        task=task_of(job.body, job.priority, job.id.queue, backend), id=str(job.id), status=_status(job.state),
        enqueued_at=shown_time(enqueued), started_at=shown_time(started), last_attempted_at=shown_time(last),
        finished_at=shown_time(_not_before(last or enqueued, finished)) if over else None,
        args=job.body.args, kwargs=job.body.kwargs, backend=backend, errors=_errors(job),
        worker_ids=_workers(job, left.get("worker")),
    )
    if job.state == "done":
        object.__setattr__(result, "_return_value", left.get("value"))
    return result


def shown_time(at: float | None) -> datetime | None:
    """Return a Unix time as Django shows times: aware with USE_TZ, else naive in the current time zone."""
    if at is None:
        return None
    shown = datetime.fromtimestamp(at, UTC)
    return shown if settings.USE_TZ else timezone.make_naive(shown)


def _status(state: str) -> Any:
    if state in ("ready", "delayed"):
        return TaskResultStatus.READY
    if state == "running":
        return TaskResultStatus.RUNNING
    return TaskResultStatus.SUCCESSFUL if state == "done" else TaskResultStatus.FAILED


def _errors(job: SeenJob) -> list[Any]:
    errors = [TaskError(exception_class_path=one.error, traceback=one.traceback) for one in job.body.failed]
    if job.state in ENDS:
        errors.append(_error_of(ENDS[job.state]))
    elif job.state == "refused":
        errors.append(_error_of(TaskRefused(job.error)))
    elif job.state == "dead" and (not job.body.failed or job.body.failed[-1].number < job.attempt):
        errors.append(_error_of(WorkerLost(job.error or "the attempts were used up")))     # no task has left this text
    return errors


def _error_of(error: Exception) -> Any:
    path = f"{type(error).__module__}.{type(error).__qualname__}"
    return TaskError(exception_class_path=path, traceback=f"{path}: {error}\n")


def _workers(job: SeenJob, last: str | None) -> list[str]:
    """Return the names of the workers, one for each attempt."""
    recent = job.body.failures_before(job.attempt + 1)
    older = job.body.failed[: len(job.body.failed) - len(recent)]
    names = [one.worker for one in older]
    by_number = {one.number: one.worker for one in recent}
    if last is not None:
        by_number[job.attempt] = last
    return names + [by_number.get(number, UNKNOWN_WORKER) for number in range(1, job.attempt + 1)]


def _left(returned: bytes) -> dict[str, Any]:
    """Return what the worker left with a job that is done; nothing if somebody else ended it."""
    try:
        left = json.loads(returned) if returned else {}
    except ValueError:
        return {}
    return left if isinstance(left, dict) else {}


def _not_before(earliest: float, at: float | None) -> float | None:
    """Return the time, or the earliest possible one: the clocks of web server, cluster and worker differ a little."""
    return at if at is None else max(earliest, at)


def ready_result(task: Any, task_id: TaskId, body: TaskBody, backend: str) -> Any:
    """Return the TaskResult of a task that is enqueued now."""
    return TaskResult(
        task=task, id=str(task_id), status=TaskResultStatus.READY,
        enqueued_at=shown_time(datetime.fromisoformat(body.enqueued_at).timestamp()), started_at=None,
        last_attempted_at=None, finished_at=None, args=body.args, kwargs=body.kwargs, backend=backend, errors=[],
        worker_ids=[],
    )
