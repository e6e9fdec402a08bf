"""The page of one queue: its figures, settings and jobs, and actions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

from sockpqd.core import SEQ_BITS, EndState, JobState, JobView, QueueSettings
from sockpqd.gateway.dashboard.actions import PURGED
from sockpqd.gateway.dashboard.markup import Child, Markup, link, pairs, table, tag
from sockpqd.gateway.dashboard.pages.parts.body import preview
from sockpqd.gateway.dashboard.pages.parts.chart import QUEUE_SPANS, Chart, charts, spans
from sockpqd.gateway.dashboard.pages.parts.picture import amount
from sockpqd.gateway.dashboard.pages.parts.settings import settings_in_words
from sockpqd.gateway.dashboard.pages.parts.tiles import tiles
from sockpqd.gateway.dashboard.pages.parts.trouble import died_elsewhere, listed, of_queue, queue_link
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
from sockpqd.gateway.samples import STILL

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
        raise NotThere(f"There is no queue {name}.", ("/queues", "Queues"))
    settings = cluster.machine.queue_settings(name) or QueueSettings()
    known: list[tuple[str, Child]] = [(key.lower().replace("_", " "), value) for key, value in figures]
    its = dict(figures)
    disk = cluster.machine.on_disk(name)
    if disk.jobs:
        known.append((f"on the disk of {cluster.name}", f"{disk.jobs} waiting, {size(disk.data_bytes)} of data"))
    content: list[Child] = [
        section("To look at", _dead_letters(view, name), listed(await of_queue(view, name, its, settings))),
        tiles(_now(view, name, its)), await _charts(view, name),
    ]
    if view.visitor.manages(name):
        content += [
            await _jobs(view, name, its), section("Settings", settings_in_words(view, name, settings)),
        ]
        await asyncio.sleep(0)          # each of these is a turn
        content.append(section("Actions", list(_actions(view, name))))
        await asyncio.sleep(0)
    content.append(section("Figures of QUEUE STAT", pairs(known)))
    await asyncio.sleep(0)
    return page(view, f"Queue {name}", content, above=("/queues", "Queues"))


def _dead_letters(view: View, name: str) -> Child:
    """Return a remark that the jobs of this queue are dead jobs of another one, if they are."""
    origin = died_elsewhere(view, name)
    return None if origin is None else tag(
        "p", "Dead jobs of ", queue_link(origin), " lie here: ",
        link(f"/dead?{urlencode({'search': origin})}", "what they died of, and how to retry them"), ".")


def _now(view: View, name: str, figures: Mapping[str, int]) -> Iterator[tuple[str, Child, Child]]:
    """Yield the tiles: rates of the last seconds, counts, and the age of the oldest job."""
    rates = view.samples.flows.of.get(name, STILL)
    for label, rate in (("in", rates.put), ("done", rates.done), ("failed", rates.failed + rates.died)):
        yield label, amount(rate, "rate"), None
    for state in (JobState.READY, JobState.RUNNING, JobState.DELAYED, JobState.DEAD):
        held = figures["WITHHELD"] if state is JobState.READY else 0
        yield ("waiting" if state is JobState.READY else state.name.lower(), f"{figures[state.name]:,}",
               f"{held:,} of them held back" if held else None)
    oldest_ms = view.cluster.machine.history(name, view.cluster.time_ms).oldest_ms
    yield "oldest waiting", duration(oldest_ms) if oldest_ms else "-", None
    if view.cluster.serving:            # only the leader knows who waits for jobs
        yield "clients that wait", f"{view.hub.job_waiters.waiting(name):,}", "for a job of this queue"


async def _charts(view: View, name: str) -> Child:
    series = view.samples.queue(name)
    if series is None:
        return None
    await asyncio.sleep(0)              # the figures were a turn
    drawn = await charts(view, CHARTS, series, "queue", name)
    return [spans(view, "/queue", {"name": name}, series, QUEUE_SPANS), drawn]


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
        ("job", "priority", "attempts", "item", "group", "when", "reason", "body"), (_job(view, job) for job in jobs),
        f"{first} of {counts[shown]:,}" if first else counted(len(jobs), "job"), sparse=True,
        empty=f"No job is {shown.lower()}." if shown != ENDED else "There is no record of an ended job.",
    )
    return section("Jobs", tag("nav", tabs, class_="tabs", aria_label="States"), content,
                   _all(name, shown, jobs) if first and jobs else None)


def _all(name: str, shown: str, jobs: Sequence[JobView]) -> Markup:
    """Return a link to a search that finds all jobs of this state, of which `jobs` are the first."""
    words = {"queues": jobs[0].queue, "states": "|".join(EndState.__members__) if shown == ENDED else shown}
    if shown == JobState.DEAD.name:
        words["died_in"] = name
    return tag("p", link(f"/jobs?{urlencode(words)}", "search all of them →"), class_="more")


def _job(view: View, job: JobView) -> list[Child]:
    now = view.cluster.time_ms
    times: list[str] = []
    if job.due_ms is not None and job.due_ms > now:
        times.append(f"in {duration(job.due_ms - now)}")
    if job.deadline_ms is not None:
        times.append(f"lease ends in {duration(max(0, job.deadline_ms - now))}")
    if job.ended_ms is not None:
        times.append(f"{job.state.name.lower()} {duration(max(0, now - job.ended_ms))} ago")
    if job.seq and job.state in (JobState.READY, JobState.DEAD):
        since = duration(max(0, now - (job.seq >> SEQ_BITS)))
        times.append(f"died {since} ago" if state_of(job) == JobState.DEAD.name else f"waits for {since}")
    return [
        link(f"/job?{address(job)}", label(job)) if named(job) else label(job), job.priority, job.attempts, job.item,
        job.group, tag("span", ", ".join(times), class_="whole") if times else "", job.reason, preview(job.body()),
    ]


def label(job: JobView) -> str:
    """Return the name of a job in lists: its key or number, or else its id or place."""
    return str(job.key or job.number or job.id or job.seq or "-")


def named(job: JobView) -> bool:
    """Return whether the protocol has a name for this job: an id while it runs, a place while it waits, a number, or a
    key that no other job can have meanwhile."""
    buried = job.state is JobState.BURIED
    return job.number is not None or job.id is not None or job.state in PLACED or (job.key is not None and not buried)


def state_of(job: JobView) -> str:
    """Return the state of a job as pages show it: one that waits in a dead-letter queue is dead."""
    return JobState.DEAD.name if job.origin and job.state is JobState.READY else job.state.name


def address(job: JobView) -> str:
    """Return the address of a job, the part after `?`."""
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
