"""`pqctl cron`: lists the next runs of periodic tasks, and removes the runs of a task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sockpqd.pqctl.connect import cluster_of, reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from sockpqd.pqctl.parameters import local_time

if TYPE_CHECKING:
    from sockpq import Client

LOOK_JOBS_MAX = 10_000


def show_list(call: Call, queue: str) -> int:
    """Print the waiting runs, ordered by time."""
    with reading(call) as (client, server):
        found = sorted(_runs(client, queue, server), key=lambda run: (run["at"], run["task"]))
    if call.as_json:
        call.answer("", {"runs": found})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    if found:
        columns = [Column("task", folds=True), *(Column(title) for title in ("next run", "schedule", "time zone"))]
        columns += [Column("catch up"), Column("app"), Column("state")]
        print_rows(call, columns, [
            (run["task"], local_time(run["at"]), run["line"], run["tz"], run["catch_up"], run["app"], run["state"])
            for run in found
        ])
    else:
        call.print(f"no periodic task has a run in queue {queue}")
    return DONE


def delete(call: Call, task: str, queue: str) -> int:
    """Remove the runs of a task that are not in progress."""
    from sockpq import JobNotFound, JobRunning, Key

    removed = 0
    with cluster_of(call, serving=True) as (client, servers):
        for run in _runs(client, queue, servers.addresses[0]):
            if run["task"] == task and run["key"]:
                try:
                    client.delete(Key(queue, run["key"]))
                    removed += 1
                except (JobNotFound, JobRunning):
                    pass            # a worker has just taken it
    told = {"task": task, "removed": removed}
    if not removed:
        call.answer_nothing(f"no run of {task} waits in queue {queue} (`pqctl cron list` shows all)", told)
        return REFUSED
    call.answer(f"removed {removed} {'run' if removed == 1 else 'runs'} of {task}", told)
    return DONE


def _runs(client: Client, queue: str, server: str) -> list[dict[str, Any]]:
    """Return the JSON bodies of the jobs that are runs of periodic tasks."""
    found = []
    for state in ("delayed", "ready"):
        for job in client.peek_queue(queue, state, LOOK_JOBS_MAX, server=server):
            run = _run(job.data)
            if run:
                found.append({**run, "key": job.key, "state": state})
    return found


def _run(data: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(data)
        cron = fields["cron"]
        told = {name: str(cron[name]) for name in ("line", "tz", "catch_up", "app")}
        return {"task": str(fields["task"]), "at": int(cron["at"]), **told}
    except (ValueError, KeyError, TypeError):
        return None
