"""Tasks that wait in an outbox: rows of the database that the caller's transaction writes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from django.db import transaction
from sockpq_outbox import outbox

from sockpq_django.configuration.options import TaskOptions
from sockpq_django.tasks.body import TaskBody, parsed_body
from sockpq_django.tasks.names import TaskId, queue_of
from sockpq_django.tasks.reading import SeenJob

REFUSED = "failed"          # the batch of rows that the cluster has refused for good


class TaskRow(NamedTuple):
    """A task in the outbox. `claimed`: the relay is putting it, or has done so. `at`: the Unix time when it is due."""

    seen: SeenJob
    claimed: bool
    at: float | None


def write_row(
    alias: str, settings: TaskOptions, task_id: TaskId, body: TaskBody, priority: int, at: float | None
) -> None:
    """Write a task into the outbox of this database, by the transaction in progress if there is one."""
    outbox.put(
        alias, queue_of(task_id.queue, settings.prefix), body.encoded(), priority, key=task_id.key, at=at, number=True,
        headers={"task": body.path, "id": task_id.key},
    )


def row_of(alias: str, settings: TaskOptions, task_id: TaskId) -> TaskRow | None:
    """Return the row of this task; None if there is none. Raises BadBody."""
    for row in _rows_of(alias, settings, task_id):
        return _task_row(row, task_id)
    return None


def delete_row(alias: str, settings: TaskOptions, task_id: TaskId) -> bool:
    """Remove the row of this task unless the relay has it, by the transaction in progress; returns whether it did."""
    deleted, _ = _rows_of(alias, settings, task_id).filter(batch=None).delete()
    return bool(deleted)


def lag_of(alias: str) -> float:
    """Return the age in seconds of the oldest row that waits in the outbox of this database; 0 without any."""
    created = _rows(alias).filter(batch=None).order_by("id").values_list("created", flat=True).first()
    return 0.0 if created is None else max(time.time() - created, 0.0)


def fetch_rows(
    alias: str, settings: TaskOptions, queues: Iterable[str], put: Callable[[TaskId, TaskBody, int, float | None], None]
) -> int:
    """Move the rows of these queues out of the outbox, each by a call of `put`; returns their number.

    For tests and tools: a crash in between puts a task twice, which the relay does not.
    """
    moved = 0
    with transaction.atomic(using=alias):
        for queue in queues:
            name = queue_of(queue, settings.prefix)
            for row in _rows(alias).filter(queue=name, batch=None).order_by("id"):
                key = json.loads(row.options).get("key")
                if key is None:
                    continue            # no task
                found = _task_row(row, TaskId(queue, key))
                put(found.seen.id, found.seen.body, found.seen.priority, found.at)
                row.delete()
                moved += 1
    return moved


def _task_row(row: Any, task_id: TaskId) -> TaskRow:
    """Return the task of a row of the outbox. Raises BadBody."""
    options = json.loads(row.options)
    refused = row.batch == REFUSED
    seen = SeenJob(
        task_id, "refused" if refused else "ready", parsed_body(bytes(row.body)), options.get("priority") or 0, 0,
        ended=row.failed, error=row.error or "",
    )
    return TaskRow(seen, row.batch is not None and not refused, options.get("at"))


def _rows_of(alias: str, settings: TaskOptions, task_id: TaskId) -> Any:
    """Return the query for the row of this task; a key has no character that LIKE or JSON would change."""
    return _rows(alias).filter(
        queue=queue_of(task_id.queue, settings.prefix), options__contains=f'"key":"{task_id.key}"'
    )


def _rows(alias: str) -> Any:
    from sockpq_django.models import OutboxRow  # models are not to be imported before the apps are loaded

    return OutboxRow.objects.using(alias)
