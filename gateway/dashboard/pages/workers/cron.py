"""Periodic tasks on the page of workers: their next and last runs, and buttons to run or stop them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

from msgspec import Struct

from sockpqd.core import JobState, JobView
from sockpqd.gateway.dashboard.markup import Child, link, table, tag
from sockpqd.gateway.dashboard.pages.parts.badge import badge
from sockpqd.gateway.dashboard.pages.parts.body import task_of
from sockpqd.gateway.dashboard.pages.parts.timeline import when
from sockpqd.gateway.dashboard.pages.parts.view import View, duration, field, form
from sockpqd.gateway.dashboard.pages.queue import address

QUEUE = "cron"              # of periodic tasks, unless an app says otherwise
RUNS = 25                   # of each state
TIME_S_MAX = 253_402_300_800    # the end of the year 9999
RUN_BYTES_MAX = 16 * 1024   # the body of a run is small


class CronRun(Struct, frozen=True):
    """The body of a job that is the next run of a periodic task. `call`: the task's call, without its schedule."""

    task: str
    line: str
    tz: str
    at_s: int
    call: str


async def periodic_tasks(view: View) -> list[Child]:
    """Return the next and the last runs of the periodic tasks in the queue that the address names."""
    queue = view.word("cron") or QUEUE
    chosen = tag("form", field("cron", "Queue", queue), tag("button", "Show"), method="get", action="/workers")
    if not view.visitor.manages(queue):
        return [chosen, tag("p", "You have no right to see the jobs of this queue.")]
    paused = view.cluster.machine.queue_settings(queue)
    return [
        chosen, _pause(view, queue, paused=paused is not None and paused.paused_out),
        await table(("task", "next run", "schedule", "time zone", "state", ""), _next(view, queue),
                    f"the next runs in queue {queue}"),
        await _last(view, queue),
    ]


def _pause(view: View, queue: str, *, paused: bool) -> list[Child]:
    """Return the button that stops all runs of the queue, or resumes them."""
    its = {"queue": queue}
    if paused:
        return [tag("p", tag("strong", "Paused"), ": no run begins until the queue is resumed.", class_="mark"),
                form(view, "queue.resume", "Resume", its, back="/workers")]
    return [form(view, "queue.pause", "Pause all runs", {**its, "direction": "OUT"}, back="/workers")]


async def _last(view: View, queue: str) -> Child:
    """Return the runs that have ended, the newest first, if the queue keeps records of them."""
    settings = view.cluster.machine.queue_settings(queue)
    if settings is None or not settings.retain_ms:
        return tag("p", f"The last runs are shown here when the queue keeps them: QUEUE CONFIG {queue} RETAIN 86400.")
    jobs = view.cluster.machine.ended_jobs(queue, RUNS)[0]
    await asyncio.sleep(0)
    return await table(
        ("task", "ended", "took", "state", "attempts"), _ended(view, jobs), f"the last runs in queue {queue}")


def _ended(view: View, jobs: list[JobView]) -> Iterator[list[Child]]:
    for job in jobs:
        started = None if job.life is None else job.life.started_ms
        took = duration(max(0, (job.ended_ms or 0) - started)) if started is not None else "-"
        yield [
            link(f"/job?{address(job)}", task_of(job.body()) or str(job.number)), when(view, job.ended_ms or 0), took,
            badge(job.state.name), job.attempts,
        ]


def _next(view: View, queue: str) -> Iterator[list[Child]]:
    machine, its = view.cluster.machine, {"queue": queue}
    for state in (JobState.READY, JobState.DELAYED):
        for job in machine.peek_queue(queue, state, RUNS):
            run = _run(job.body())
            if run is not None:
                yield [
                    link(f"/job?{address(job)}", run.task),
                    when(view, run.at_s * 1000) if 0 <= run.at_s < TIME_S_MAX else str(run.at_s),
                    tag("code", run.line), run.tz, badge(state.name),
                    [form(view, "job.put", "Run now", {**its, "priority": "0", "body": run.call}, back="/workers"),
                     form(view, "job.delete", "Remove", {**its, "key": job.key}, back="/workers")
                     if job.key else None],
                ]


def _run(data: bytes) -> CronRun | None:
    """Return the contents of a job's body; None if it is not a run of a periodic task."""
    if len(data) > RUN_BYTES_MAX:
        return None
    try:
        fields = json.loads(data)
        cron = fields["cron"]
        call = {name: value for name, value in fields.items() if name != "cron"}
        return CronRun(str(fields["task"]), str(cron["line"]), str(cron["tz"]), int(cron["at"]), json.dumps(call))
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
