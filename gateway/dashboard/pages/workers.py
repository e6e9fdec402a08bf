"""The page of the workers (pqworker): what each does and should do; and the next runs of periodic tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from sockpqd.core import JobState, WorkerPool
from sockpqd.gateway.auth.permissions import owner_of
from sockpqd.gateway.dashboard.markup import Child, Markup, link, table, tag
from sockpqd.gateway.dashboard.pages.parts.view import (
    View,
    choice,
    counted,
    details,
    duration,
    field,
    form,
    page,
    section,
)
from sockpqd.gateway.dashboard.pages.queue import address

ROWS = 100
QUEUE = "cron"              # of periodic tasks, unless an app says otherwise
RUNS = 25                   # of each state
RUN_BYTES_MAX = 16 * 1024   # the body of a run is small


class CronRun(Struct, frozen=True):
    """The body of a job that is the next run of a periodic task."""

    task: str
    line: str
    tz: str
    at_s: int


async def show(view: View) -> str:
    machine = view.cluster.machine
    workers = [one for one in machine.workers() if view.visitor.admin or owner_of(machine, one) == view.visitor.user]
    return page(
        view, "Workers",
        await table(("worker", "address", "children", "busy", "bounds", "should", "heard", ""), _workers(view, workers),
                    counted(len(workers), "worker") + (f", the first {ROWS}" if len(workers) > ROWS else "")),
        tag("p", "A worker is heard every two seconds, and vanishes some 15 s after it has ended.") if workers else
        tag("p", "No worker is running: start one with pqworker."),
        section("Periodic tasks", await _cron(view)),
    )


def _workers(view: View, workers: list[WorkerPool]) -> Iterator[list[Child]]:
    for one in workers[:ROWS]:
        heard_ms = max(0, view.cluster.time_ms - one.beat_ms)
        yield [
            one.name, one.address or "-", one.slots, one.busy, _bounds(one), one.state.name.lower(),
            f"{duration(heard_ms)} ago", _steer(view, one) if view.visitor.admin else "",
        ]


def _bounds(one: WorkerPool) -> str:
    """Say what an operator has set, as only that is known here."""
    least = "" if one.least is None else f"at least {one.least}"
    most = "" if one.most is None else f"at most {one.most}"
    return ", ".join(filter(None, (least, most))) or "its own"


def _steer(view: View, one: WorkerPool) -> Markup:
    mine = {"worker": one.name}
    return details("Steer", form(
        view, "worker.state", "Tell", mine, choice("state", "It should", ("RUN", "PAUSE", "STOP")), back="/workers",
    ), form(
        view, "worker.bounds", "Set", mine, field("least", "At least", inputmode="numeric"),
        field("most", "At most", inputmode="numeric"), back="/workers",
    ))


async def _cron(view: View) -> list[Child]:
    queue = view.word("cron") or QUEUE
    chosen = tag("form", field("cron", "Queue", queue), tag("button", "Show"), method="get", action="/workers")
    if not view.visitor.manages(queue):
        return [chosen, tag("p", "You have no right to see the jobs of this queue.")]
    shown = await table(("task", "next run", "schedule", "time zone", "state", ""), _runs(view, queue),
                        f"the next runs in queue {queue}")
    return [chosen, shown]


def _runs(view: View, queue: str) -> Iterator[list[Child]]:
    machine = view.cluster.machine
    for state in (JobState.READY, JobState.DELAYED):
        for job in machine.peek_queue(queue, state, RUNS):
            run = _run(job.body())
            if run is not None:
                in_ms = run.at_s * 1000 - view.cluster.time_ms
                yield [
                    link(f"/job?{address(job)}", run.task), f"{_time(run.at_s)}, in {duration(max(0, in_ms))}",
                    tag("code", run.line), run.tz, state.name,
                    form(view, "job.delete", "Remove", {"queue": queue, "key": job.key}, back="/workers")
                    if job.key else "",
                ]


def _run(data: bytes) -> CronRun | None:
    """Return the contents of a job's body; None if it is no run of a periodic task."""
    if len(data) > RUN_BYTES_MAX:
        return None
    try:
        fields = json.loads(data)
        cron = fields["cron"]
        return CronRun(str(fields["task"]), str(cron["line"]), str(cron["tz"]), int(cron["at"]))
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def _time(at_s: int) -> str:
    try:
        return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return str(at_s)
