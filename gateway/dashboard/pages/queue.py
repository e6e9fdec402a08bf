"""The page of one queue: its figures, settings and jobs, and actions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

from sockpqd.core import JobState, JobView, QueueSettings
from sockpqd.gateway.dashboard.actions import PURGED
from sockpqd.gateway.dashboard.markup import Child, Markup, link, pairs, table, tag
from sockpqd.gateway.dashboard.pages.parts.body import preview
from sockpqd.gateway.dashboard.pages.parts.chart import QUEUE_SPANS, Chart, charts, spans
from sockpqd.gateway.dashboard.pages.parts.settings import settings_in_words
from sockpqd.gateway.dashboard.pages.parts.view import (
    NotAllowed,
    NotThere,
    View,
    choice,
    counted,
    details,
    duration,
    field,
    form,
    page,
    section,
    size,
)

CHARTS = (
    Chart("Jobs per second", "rate", ("put", "taken", "done"), ("in", "handed out", "done")),
    Chart("Jobs", "count", ("waiting", "running"), ("waiting", "running")),
    Chart("Failed per second", "rate", ("failed", "died"), ("put back", "died")),
    Chart("Queue time", "seconds", ("wait_p50", "wait_p95"), ("p50", "p95")),
    Chart("Run time", "seconds", ("run_p50", "run_p95"), ("p50", "p95")),
    Chart("Oldest waiting", "seconds", ("oldest",), ("oldest",)),
)
JOBS = 25                   # of a state
ENDED = "ENDED"
TABS = (*(state.name for state in JobState), ENDED)
FIGURES = {ENDED: "RETAINED"}           # of QUEUE STAT, where they are called otherwise
# Jobs of these states have a place, by whose number they are found; dead ones in their dead-letter queue.
PLACED = (JobState.READY, JobState.DELAYED, JobState.DEAD)


async def show(view: View) -> str:
    """Return the page. Raises NotThere and NotAllowed."""
    name, cluster = view.word("name"), view.cluster
    if not view.visitor.sees(name):
        raise NotAllowed
    figures = cluster.machine.stat(name, cluster.time_ms)
    if figures is None:
        raise NotThere(f"there is no queue {name}")
    settings = cluster.machine.queue_settings(name) or QueueSettings()
    known: list[tuple[str, Child]] = [(key.lower().replace("_", " "), value) for key, value in figures]
    disk = cluster.machine.on_disk(name)
    if disk.jobs:
        known.append((f"on the disk of {cluster.name}", f"{disk.jobs} waiting, {size(disk.data_bytes)} of data"))
    content: list[Child] = [
        tag("p", link("/queues", "All queues")), await _charts(view, name),
    ]
    if view.visitor.manages(name):
        content += [
            await _jobs(view, name, dict(figures)), section("Settings", settings_in_words(view, name, settings)),
        ]
        await asyncio.sleep(0)          # each of these is a turn
        content.append(section("Actions", list(_actions(view, name))))
        await asyncio.sleep(0)
    content.append(section("Figures", pairs(known)))
    await asyncio.sleep(0)
    return page(view, f"Queue {name}", content)


async def _charts(view: View, name: str) -> Child:
    series = view.samples.queue(name)
    if series is None:
        return None
    await asyncio.sleep(0)              # the figures were a turn
    return [spans(view, "/queue", {"name": name}, QUEUE_SPANS), await charts(view, CHARTS, series, "queue", name)]


async def _jobs(view: View, name: str, figures: Mapping[str, int]) -> Markup:
    """Return the jobs in one state, and tabs for the other states."""
    counts = {state: figures[FIGURES.get(state, state)] for state in TABS}
    asked = view.word("tab")
    shown = asked if asked in TABS else next((state for state in TABS if counts[state]), TABS[0])
    machine = view.cluster.machine
    jobs = machine.ended_jobs(name, JOBS)[0] if shown == ENDED else machine.peek_queue(name, JobState[shown], JOBS)
    await asyncio.sleep(0)
    tabs = [tag(
        "a", f"{state.lower()} ", tag("b", f"{counts[state]:,}"), aria_current="true" if state == shown else None,
        href=f"/queue?{urlencode({'name': name, 'tab': state})}",
    ) for state in TABS]
    first = f"the {'last' if shown == ENDED else 'first'} {len(jobs)}" if counts[shown] > len(jobs) else None
    content = await table(
        ("id", "key", "priority", "attempts", "item", "time", "reason", "body", ""), (_job(view, job) for job in jobs),
        f"{first} of {counts[shown]:,}" if first else counted(len(jobs), "job"),
    ) if jobs else tag("p", f"No job is {shown.lower()}." if shown != ENDED else "There is no record of an ended job.")
    return section("Jobs", tag("nav", tabs, class_="tabs", aria_label="States"), content)


def _job(view: View, job: JobView) -> list[Child]:
    now = view.cluster.time_ms
    times: list[str] = []
    if job.due_ms is not None and job.due_ms > now:
        times.append(f"in {duration(job.due_ms - now)}")
    if job.deadline_ms is not None:
        times.append(f"lease ends in {duration(max(0, job.deadline_ms - now))}")
    if job.ended_ms is not None:
        times.append(f"{job.state.name.lower()} {duration(max(0, now - job.ended_ms))} ago")
    return [
        job.id, job.key, job.priority, job.attempts, job.item, ", ".join(times), job.reason,
        preview(job.body()),
        link(f"/job?{address(job)}", "more") if named(job) else "",
    ]


def named(job: JobView) -> bool:
    """Return whether the protocol has a name for this job: an id while it runs, a place while it waits, a number, or a
    key that no other job can have meanwhile."""
    buried = job.state is JobState.BURIED
    return job.number is not None or job.id is not None or job.state in PLACED or (job.key is not None and not buried)


def state_of(job: JobView) -> str:
    """Return the state of a job as pages show it: one that waits in a dead-letter queue is dead."""
    return JobState.DEAD.name if job.origin and job.state is JobState.READY else job.state.name


def address(job: JobView) -> str:
    """Return the address of a job, behind `?`."""
    if job.id is not None:
        return urlencode({"id": job.id})
    if job.number is not None:
        return urlencode({"queue": job.queue, "number": job.number})
    if job.key is not None:
        return urlencode({"queue": job.queue, "key": job.key})
    return urlencode({"queue": job.queue, "seq": job.seq})


def _actions(view: View, name: str) -> Iterator[Markup]:
    back = f"/queue?{urlencode({'name': name})}"
    mine = {"queue": name}
    body = tag("label", "Body ", tag("textarea", name="body", rows=3))
    yield details("Put a job", form(
        view, "job.put", "Put", mine, field("priority", "Priority", "0", inputmode="numeric"),
        field("options", "Options, as in PUT", placeholder="KEY a1 DELAY 60"), body, back=back,
    ))
    yield details("Pause and resume", form(
        view, "queue.pause", "Pause", mine, choice("direction", "Direction", ("OUT", "IN", "ALL")), back=back,
    ), form(view, "queue.resume", "Resume", mine, back=back))
    yield details("Kick dead jobs", form(
        view, "job.kick", "Kick", mine, field("count", "How many", "10", inputmode="numeric"), back=back,
    ))
    yield details("Kick buried jobs, or if there is none delayed ones", form(
        view, "job.kick_here", "Kick", mine, field("count", "How many", "10", inputmode="numeric"), back=back,
    ))
    yield details("Change settings", form(
        view, "queue.config", "Change", mine, field("settings", "Settings, as in QUEUE CONFIG", required=True),
        back=back,
    ))
    yield details("Move jobs to another queue", form(
        view, "queue.move", "Move", mine, field("to", "To", required=True),
        field("count", "How many (all)", inputmode="numeric"), field("died", "Only those that died in"), back=back,
    ))
    yield details("Purge or delete", form(
        view, "queue.purge", "Purge", mine, choice("state", "Jobs that are", PURGED), back=back,
    ), form(
        view, "queue.delete", "Delete the queue", mine, choice("dead", "Its dead jobs", ("REMOVE", "LEAVE")),
        back="/queues",
    ))
