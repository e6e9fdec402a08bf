"""The page of the workers (pqworker): what each does and should do; and periodic tasks."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.core import Selector, WorkerPool
from sockpqd.gateway.auth.permissions import owner_of
from sockpqd.gateway.dashboard.markup import Child, Markup, link, table, tag
from sockpqd.gateway.dashboard.pages.parts.body import task_of
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
from sockpqd.gateway.dashboard.pages.workers.cron import periodic_tasks

ROWS = 100
JOBS = 5                    # of each worker that are named
HEADS = "worker", "address", "children", "busy", "works on", "bounds", "should", "heard", ""

EMPTY = (
    "No worker is running that reports itself. A worker is a program that takes jobs and calls your functions with "
    "them: ",
    tag("code", "pqworker app:app"), " runs the tasks of the App in app.py. Other clients that take jobs are not "
    "listed here.",
)


async def show(view: View) -> str:
    machine = view.cluster.machine
    workers = [one for one in machine.workers() if view.visitor.admin or owner_of(machine, one) == view.visitor.user]
    return page(
        view, "Workers",
        await table(HEADS, _workers(view, workers),
                    counted(len(workers), "worker") + (f", the first {ROWS}" if len(workers) > ROWS else ""),
                    empty=EMPTY),
        tag("p", "A worker is heard every two seconds, and vanishes some 15 s after it has ended.")
        if workers else None,
        section("Periodic tasks", await periodic_tasks(view)),
    )


def _workers(view: View, workers: list[WorkerPool]) -> Iterator[list[Child]]:
    for one in workers[:ROWS]:
        heard_ms = max(0, view.cluster.time_ms - one.beat_ms)
        yield [
            one.name, one.address or "-", one.slots, one.busy, _jobs(view, one), _bounds(one), one.state.name.lower(),
            f"{duration(heard_ms)} ago", _steer(view, one) if view.visitor.admin else "",
        ]


def _jobs(view: View, one: WorkerPool) -> Child:
    """Return the jobs running in its session, in queues that the visitor manages."""
    taken, count = view.cluster.machine.first_taken(one.session, JOBS) if one.session else ([], 0)
    shown: list[Child] = []
    for number in taken:
        job = view.cluster.machine.peek(Selector(id=number))
        if job is not None and view.visitor.manages(job.queue):
            shown.append([link(f"/job?{address(job)}", task_of(job.body()) or str(job.id)), " of ", job.queue, "; "])
    more = count - len(shown)
    return [shown, f"{more:,} more" if more else None]


def _bounds(one: WorkerPool) -> str:
    """Return, in words, the bounds set by an operator. The server does not know the program's own."""
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
