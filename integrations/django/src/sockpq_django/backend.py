"""The backend for the setting TASKS: tasks become jobs, and results are read from jobs and their records."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from math import ceil, floor
from typing import Any

from django.core import checks
from django.core.exceptions import SuspiciousOperation
from django.utils import timezone
from sockpq import Aborted, Client, JobNotFound, Key, Number

from sockpq_django.api import (
    BaseTaskBackend,
    InvalidTask,
    TaskResultDoesNotExist,
    normalize_json,
    signals,
)
from sockpq_django.configuration.checking import messages_of
from sockpq_django.configuration.clients import shared_client
from sockpq_django.configuration.options import task_options
from sockpq_django.configuration.queues import set_up_queues
from sockpq_django.database.rows import delete_row, fetch_rows, row_of, write_row
from sockpq_django.database.transactions import warn_of_transactions
from sockpq_django.tasks.body import BadBody, TaskBody
from sockpq_django.tasks.names import (
    QUEUE_MAX,
    TaskId,
    dead_queue_of,
    new_id,
    parsed_id,
    queue_of,
    results_queue,
)
from sockpq_django.tasks.reading import SeenJob, ready_result, result_of, seen
from sockpq_django.work.processing import process

LEASE_S = 3600.0            # of run(), which does not renew it
LOOKS = 2                   # at each place, because a job may go from one to another between two looks
RELAYED_S, RELAY_PAUSE_S = 5.0, 0.05    # how long cancel() waits for a row that the relay has, and between two looks


class SockpqBackend(BaseTaskBackend):
    """Tasks as jobs of a cluster of sockpqd. Its OPTIONS are described in docs/DJANGO.md.

    enqueue() returns when the job is on the disks of a majority, or with OUTBOX, when its row is written. The results
    of tasks are found from any process, by their ids.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        """Read the settings of the backend; nothing is sent. Raises ImproperlyConfigured."""
        super().__init__(alias, params)
        self.settings = task_options(self.options)

    @property
    def client(self) -> Client:
        """The client of this process for these servers."""
        return shared_client(self.settings.client)

    def queue(self, name: str) -> str:
        """Return the name that a queue of Django has in the cluster."""
        return queue_of(name, self.settings.prefix)

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        """Yield what is wrong with the settings, for `manage.py check`."""
        return messages_of(self.alias, self.queues, self.settings)

    def validate_task(self, task: Any) -> None:
        """Raise InvalidTask if this backend cannot run the task."""
        super().validate_task(task)
        if len(task.queue_name) > QUEUE_MAX:
            raise InvalidTask(f"The name of a queue has up to {QUEUE_MAX} characters, not {len(task.queue_name)}.")

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Queue a call of the task, and return its TaskResult. Raises InvalidTask, TypeError, SockpqError."""
        self.validate_task(task)
        now = datetime.fromtimestamp(floor(time.time() * 1000) / 1000, UTC)
        body = TaskBody(
            task.module_path, normalize_json(args), normalize_json(kwargs), now.isoformat(),
            task.run_after and task.run_after.isoformat(),
        )
        task_id = new_id(task.queue_name)
        result = ready_result(task, task_id, body, self.alias)
        warn_of_transactions(self.settings.outbox)
        self._store(task_id, body, task.priority, _due(task.run_after))
        signals.task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """Return the TaskResult with this id, in its current state.

        Raises TaskResultDoesNotExist; ImportError or SuspiciousOperation when its job names no task of this project.
        """
        try:
            job = self._look(result_id)
        except BadBody as error:
            raise SuspiciousOperation(str(error)) from error
        if job is None:
            raise TaskResultDoesNotExist(result_id)
        return result_of(job, self.alias)

    def cancel(self, result_id: str) -> bool:
        """Remove a task that has not ended; one that runs is interrupted. Returns whether there was one.

        One that waits in the outbox is removed by the transaction in progress.
        """
        task_id = self._known(result_id)
        if task_id is None:
            return False
        outbox, until = self.settings.outbox, time.monotonic() + RELAYED_S
        while True:
            if outbox is not None and delete_row(outbox, self.settings, task_id):
                return True
            if any(self._cancel_in_cluster(task_id) for _ in range(LOOKS)):
                return True
            row = None if outbox is None else row_of(outbox, self.settings, task_id)
            if row is None or not row.claimed or time.monotonic() > until:
                return False
            time.sleep(RELAY_PAUSE_S)           # the relay is about to put it

    def run(self, queues: Iterable[str] | None = None, worker: str = "run") -> int:
        """Run all tasks that are ready in these queues (None: in all), in this thread, until none is left.

        Returns how many. For tests and tools: workers are run by `pqworker` or `manage.py sockpq_worker`.
        """
        names = {self.queue(name): name for name in (self.queues if queues is None else queues)}
        set_up_queues(self.client, self.settings, names.values())
        ran = 0
        while True:
            job = self.client.get(list(names), expire=LEASE_S, meta=True, policy="priority")
            if job is not None:
                process(self, self.client, job, names[job.queue], worker)
                ran += 1
            elif not self._fetch_rows(names.values()):
                return ran

    def _store(self, task_id: TaskId, body: TaskBody, priority: int, at: float | None) -> None:
        """Put the job, or its row. `at`: the Unix time at which it is due."""
        if self.settings.outbox is None:
            self._put(task_id, body, priority, at)
        else:
            write_row(self.settings.outbox, self.settings, task_id, body, priority, at)

    def _put(self, task_id: TaskId, body: TaskBody, priority: int, at: float | None) -> None:
        self.client.put(
            self.queue(task_id.queue), body.encoded(), priority, key=task_id.key, at=at, number=True,
            headers={"task": body.path, "id": task_id.key}, on_duplicate="ignore",
        )

    def _fetch_rows(self, queues: Iterable[str]) -> int:
        """For run(): put the rows that wait in these queues as jobs; returns their number."""
        outbox = self.settings.outbox
        return 0 if outbox is None else fetch_rows(outbox, self.settings, queues, self._put)

    # looking

    def _known(self, result_id: str) -> TaskId | None:
        task_id = parsed_id(result_id)
        return task_id if task_id and (not self.queues or task_id.queue in self.queues) else None

    def _look(self, result_id: str) -> SeenJob | None:
        """Return the job with this id, wherever it is; None if there is none. Raises BadBody."""
        task_id = self._known(result_id)
        if task_id is None:
            return None
        outbox = self.settings.outbox
        for _ in range(LOOKS):
            found = self._look_in_cluster(task_id)
            if found:
                return found
            row = None if outbox is None else row_of(outbox, self.settings, task_id)
            if row:
                return row.seen
        return None

    def _look_in_cluster(self, task_id: TaskId) -> SeenJob | None:
        number = (
            self._number_in(self.queue(task_id.queue), task_id.key)
            or self._number_in(dead_queue_of(task_id.queue, self.settings.prefix), task_id.key)
            or self._number_of_ended(task_id.key)
        )
        return self._seen(task_id, number) if number else None

    def _cancel_in_cluster(self, task_id: TaskId) -> bool:
        number = self._number_in(self.queue(task_id.queue), task_id.key)
        try:
            if number is not None:
                self._remove(task_id, number)
        except JobNotFound:             # it has ended meanwhile
            return False
        return number is not None

    def _number_in(self, queue: str, key: str) -> int | None:
        """Return the number of the job in this queue of the cluster that has not ended."""
        job = self.client.peek(Key(queue, key))
        return job and job.number

    def _number_of_ended(self, key: str) -> int | None:
        noted = self.client.peek(Key(results_queue(self.settings.prefix), key))
        return int(noted.data) if noted and noted.data.isdigit() else None

    def _seen(self, task_id: TaskId, number: int) -> SeenJob | None:
        """Return the job with this number in its current state, with what its worker left."""
        job = self.client.ended(number, life=True)
        if job is None:
            return None
        if job.state == "done":
            try:
                return seen(task_id, job, returned=self.client.job_result(number))
            except JobNotFound:         # the record went, or the task is retried
                return None
        if job.queue == dead_queue_of(task_id.queue, self.settings.prefix):
            return seen(task_id, job, "dead", error=self.client.job_error(Number(number)) or "")
        return seen(task_id, job)

    def _remove(self, task_id: TaskId, number: int) -> None:
        """Delete a job that has not ended, and note how its record is found. Raises JobNotFound."""
        try:
            with self.client.transaction() as t:
                t.delete(Number(number))
                if self.settings.retention:
                    t.put(
                        results_queue(self.settings.prefix), str(number), key=task_id.key, on_duplicate="replace",
                        ttl=self.settings.retention,
                    )
        except Aborted as aborted:
            raise aborted.reason from aborted


def _due(run_after: datetime | None) -> float | None:
    """Return the Unix time at which a task is due, in whole milliseconds; None for at once."""
    if run_after is None:
        return None
    at = (run_after if timezone.is_aware(run_after) else timezone.make_aware(run_after)).timestamp()
    return ceil(at * 1000) / 1000 if at > time.time() else None
