"""One attempt to run a task: its function is called, and what happened is returned as a value. No IO of our own."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from traceback import format_exception
from typing import Any, NamedTuple

from sockpq import DataTooLarge
from sockpq.worker import GiveUp, JobCancelled, Retry, Sleep, SlowDown

from sockpq_django.api import TaskContext, TaskError, TaskResultStatus, normalize_json, signals
from sockpq_django.configuration.options import TaskOptions
from sockpq_django.tasks.body import FailedAttempt, in_json
from sockpq_django.tasks.reading import SeenJob, shown_time
from sockpq_django.work.current import CURRENT, CurrentTask
from sockpq_django.work.outage import is_outage

LOG = logging.getLogger("sockpq_django")

LOSSES_MAX = 4              # of workers during a task, besides the tries: a task may be what kills them
JITTER = 0.5                # a pause is shorter by up to this share, so that tasks that failed together come back apart


class Succeeded(NamedTuple):
    """The function has returned. `returned`: the part of its value that is kept."""

    returned: bytes


class Failed(NamedTuple):
    """The function has raised. `pause`: seconds until the next attempt, None: there is none, the task has failed."""

    failure: FailedAttempt
    pause: float | None


class PutBack(NamedTuple):
    """The attempt does not count. `pause`: seconds until the next one; `slow`, `sleep`: for the pulse of the queue.

    `outage`: because a database cannot be reached, so that this worker need not hurry to try another task.
    """

    pause: float
    slow: bool = False
    sleep: float | None = None
    outage: bool = False


Outcome = Succeeded | Failed | PutBack


def attempt(
    job: SeenJob, result: Any, worker: str, options: TaskOptions, sender: type, conclude: Callable[[Outcome], bool],
) -> None:
    """Run the task once. `result` is its TaskResult, which this brings up to date.

    `conclude`: called with the outcome, it reports that to the cluster and returns whether it counts. It does not if
    the job belongs to another worker by then, which sends the signal task_finished instead. KeyboardInterrupt, the
    cancellation of the job, and what `conclude` raises are raised; a value that is too large is a failure.
    """
    token = CURRENT.set(CurrentTask(str(job.id), options.outbox))
    try:
        try:
            signals.task_started.send(sender, task_result=result)
            task = result.task
            given = (TaskContext(task_result=result),) if task.takes_context else ()
            value = normalize_json(task.call(*given, *result.args, **result.kwargs))
            now = time.time()
            returned = in_json({"value": value, "worker": worker, "at": now})
        except (KeyboardInterrupt, JobCancelled, asyncio.CancelledError):
            raise
        except SlowDown:
            conclude(PutBack(pause_after(1, options.backoff), slow=True))
            return
        except Sleep as error:
            conclude(PutBack(error.seconds, sleep=error.seconds))
            return
        except BaseException as error:      # SystemExit as well: a task must not end its worker
            if is_outage(error):
                LOG.warning("Task id=%s path=%s waits for a database: %s", result.id, task.module_path, error)
                conclude(PutBack(pause_after(1, options.backoff), outage=True))
                return
            _fail(job, result, worker, options, sender, conclude, error)
            return
        try:
            if not conclude(Succeeded(returned)):
                return
        except DataTooLarge as error:
            _fail(job, result, worker, options, sender, conclude, error)
            return
        _update(result, status=TaskResultStatus.SUCCESSFUL, finished_at=shown_time(now), _return_value=value)
        signals.task_finished.send(sender, task_result=result)
    finally:
        CURRENT.reset(token)


def _fail(
    job: SeenJob, result: Any, worker: str, options: TaskOptions, sender: type, conclude: Callable[[Outcome], bool],
    error: BaseException,
) -> None:
    path = f"{type(error).__module__}.{type(error).__qualname__}"
    trace = "".join(format_exception(error))
    now = time.time()
    failures = len(job.body.failures_before(job.attempt)) + 1
    pause = None if job.attempt >= options.tries + LOSSES_MAX else _pause(error, failures, options)
    if not conclude(Failed(FailedAttempt(job.attempt, worker, now, path, trace), pause)):
        return
    result.errors.append(TaskError(exception_class_path=path, traceback=trace))
    if pause is not None:
        _update(result, status=TaskResultStatus.READY)
        LOG.warning(
            "Task id=%s path=%s failed in attempt %d, the next one is in %.1f s", result.id, result.task.module_path,
            job.attempt, pause, exc_info=error,
        )
        return
    _update(result, status=TaskResultStatus.FAILED, finished_at=shown_time(now))
    signals.task_finished.send(sender, task_result=result)


def _pause(error: BaseException, failures: int, options: TaskOptions) -> float | None:
    """Return the seconds until the next attempt after this number of failures; None if this was the last one."""
    if isinstance(error, GiveUp) or failures >= options.tries:
        return None
    if isinstance(error, Retry) and error.delay is not None:
        return error.delay
    return pause_after(failures, options.backoff)


def pause_after(failures: int, backoff: tuple[float, float], draw: Callable[[], float] = random.random) -> float:
    """Return the pause after this number of failures, in seconds. `draw` gives numbers from 0 to 1."""
    first, longest = backoff
    whole = min(first * 2.0 ** (min(failures, 64) - 1), longest)
    return whole * (1 - JITTER * draw())


def _update(result: Any, **fields: Any) -> None:
    """Set fields of a TaskResult, which is frozen."""
    for name, value in fields.items():
        object.__setattr__(result, name, value)
