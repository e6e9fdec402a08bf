"""A job that a worker has taken: its task is run, and the job ends according to the outcome."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from time import sleep
from typing import Protocol

from django.core.exceptions import SuspiciousOperation
from sockpq import Client, Job

from sockpq_django.api import InvalidTask, TaskResultStatus
from sockpq_django.configuration.options import TaskOptions
from sockpq_django.tasks.body import BadBody, TaskBody, parsed_body
from sockpq_django.tasks.names import TaskId
from sockpq_django.tasks.reading import SeenJob, result_of, shown_time
from sockpq_django.work.attempt import Outcome, PutBack, attempt
from sockpq_django.work.ending import Ending

LOG = logging.getLogger("sockpq_django")

UNKNOWN_PAUSE_S = 10.0      # a task that this worker does not have: one of the next release may
UNKNOWN_S = 3600.0          # for how long it is left to such a worker
OUTAGE_PAUSE_S = 1.0        # while a database cannot be reached: else thousands of tasks would be tried again and again


class Home(Protocol):
    """The part of a backend that the work on a job needs."""

    alias: str
    settings: TaskOptions


def process(home: Home, client: Client, job: Job, queue: str, worker: str) -> None:
    """Run the task of this job, which was taken from `queue` (as Django names it), and end the job accordingly.

    Whatever the task raises stays with its job; KeyboardInterrupt puts the job back and is raised.
    """
    ending = Ending(client, job, home.settings)
    try:
        body = parsed_body(job.data)
    except BadBody as error:
        ending.give_up("BadTask", str(error))
        return
    seen = SeenJob(TaskId(queue, job.key or ""), "running", body, job.priority, job.attempt)
    try:
        result = result_of(seen, home.alias)
    except (SuspiciousOperation, InvalidTask, ValueError) as error:
        ending.give_up(type(error).__name__, str(error))
        return
    except ImportError as error:
        _not_here(ending, body, error)
        return
    now = shown_time(time.time())
    for name, value in (
        ("status", TaskResultStatus.RUNNING), ("started_at", now), ("last_attempted_at", now),
    ):
        object.__setattr__(result, name, value)
    result.worker_ids[-1:] = [worker]

    def conclude(outcome: Outcome) -> bool:
        if isinstance(outcome, PutBack) and outcome.outage:
            sleep(OUTAGE_PAUSE_S)
        return ending.conclude(body, outcome)

    try:
        attempt(seen, result, worker, home.settings, type(home), conclude)
    except KeyboardInterrupt:
        ending.put_back_first()
        raise


def _not_here(ending: Ending, body: TaskBody, error: ImportError) -> None:
    """Leave a task that cannot be imported to a worker that has it, for an hour; then give it up."""
    since = max(_unix_time(body.enqueued_at), _unix_time(body.run_after))
    if time.time() - since > UNKNOWN_S:
        ending.give_up("TaskUnknown", str(error))
        return
    LOG.warning("this worker has no task %s, which is left to others for now: %s", body.path, error)
    ending.conclude(body, PutBack(UNKNOWN_PAUSE_S))


def _unix_time(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
