"""The page of one job, which has an id, a number, a key or a place."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

from sockpqd.core import SEQ_BITS, JobState, JobView, Number, Place, Selector, bytes_of
from sockpqd.gateway.auth.permissions import owner_of
from sockpqd.gateway.dashboard.markup import Child, Markup, link, pairs, tag
from sockpqd.gateway.dashboard.pages import queue
from sockpqd.gateway.dashboard.pages.group import may_see
from sockpqd.gateway.dashboard.pages.parts.badge import badge
from sockpqd.gateway.dashboard.pages.parts.body import FORMS, SHOWN_BYTES, whole
from sockpqd.gateway.dashboard.pages.parts.timeline import timeline, when
from sockpqd.gateway.dashboard.pages.parts.trouble import queue_link
from sockpqd.gateway.dashboard.pages.parts.view import (
    NotAllowed,
    NotThere,
    View,
    counted,
    details,
    field,
    form,
    page,
    section,
    size,
)


async def show(view: View) -> str:
    """Return the page. Raises NotThere and NotAllowed."""
    cluster = view.cluster
    selector = _selector(view)
    if not isinstance(selector, Number) and selector.queue and not view.visitor.manages(selector.queue):
        raise NotAllowed            # whether it has such a job or not
    machine = cluster.machine
    job = machine.peek(selector)
    if job is None and isinstance(selector, Number):
        job = machine.ended(selector.number)
    if job is None or not view.visitor.manages(job.queue):      # a number of others is answered as one of nobody
        raise NotThere(
            "There is no such job there (any more): it may have ended, or been retried or moved. The search field "
            "above knows where it is.", ("/jobs", "Jobs"))
    cut = f", the first {size(SHOWN_BYTES)} at most" if job.body_bytes > SHOWN_BYTES else ""
    asked = view.word("form")
    shown = await whole(job.body(), asked)
    error = machine.error(selector)
    result = machine.result(job.number) if job.ended_ms is not None and job.number is not None else None
    return page(
        view, f"Job {job.key or job.id or job.number or ''}".strip(),
        tag("p", badge(queue.state_of(job)), " ", _in_short(view, job), class_="lead"),
        tag("div", list(_buttons(view, job)), class_="bar"),
        section("What happened", timeline(view, job)),
        *([section("Error", await whole(bytes_of(error), "text"))] if error else []),
        *([section("Result", await whole(result, ""))] if result else []),
        section("Body", tag("p", f"{counted(job.body_bytes, 'byte')}{cut} · as ", [
            [tag("a", form, href=f"/job?{queue.address(job)}&form={form}",
                 aria_current="true" if form == asked else None), " "] for form in FORMS
        ], class_="ranges"), shown),
        *([section("Headers", tag("pre", job.headers().decode(errors="replace")))] if job.head else []),
        section("Properties", pairs([
            ("queue", queue_link(job.queue)), ("died in", job.origin and queue_link(job.origin)),
            ("id", job.id), ("number", job.number), ("key", job.key), ("priority", job.priority),
            ("item", _item(job)), ("group", _group(view, job)), ("reason", job.reason),
            ("progress", None if job.progress is None else f"{job.progress}%"), ("worker", _worker(view, selector)),
        ])),
        section("Change or move", list(_changes(view, job))), above=_above(job),
    )


def _above(job: JobView) -> tuple[str, str]:
    """Return address and name of the job's queue; for a dead job, of the queue in which it died."""
    name = job.origin or job.queue
    return f"/queue?{urlencode({'name': name})}", f"Queue {name}"


def _in_short(view: View, job: JobView) -> Child:
    """Return, in a sentence, the state of the job and the reason for it."""
    tried = f", after {counted(job.attempts, 'attempt')}" if job.attempts else ""
    of: Child = [" of ", tag("strong", job.reason)] if job.reason else ""
    at_ms = job.counts.died_ms if job.counts is not None else 0
    if queue.state_of(job) == JobState.DEAD.name:
        place_ms = job.seq >> SEQ_BITS
        return ["It died", of, " ", when(view, at_ms or place_ms), tried, "."]
    if job.state is JobState.BURIED:
        return ["It was buried", [" because of ", tag("strong", job.reason)] if job.reason else "",
                [" ", when(view, at_ms)] if at_ms else "", tried, "."]
    before: Child = [" The last attempt failed", of, "."] if job.reason else ""
    if job.ended_ms is not None:
        return ["It ended ", when(view, job.ended_ms), tried, "."]
    if job.state is JobState.RUNNING:
        return [f"It runs: attempt {job.attempts}.", before]
    if job.state is JobState.DELAYED:
        due: Child = when(view, job.due_ms) if job.due_ms is not None else "when what it waits for has ended"
        return ["It becomes ready ", due, tried, ".", before]
    return [f"It waits for a worker{tried}.", before]


def _worker(view: View, selector: Selector | Place | Number) -> Child:
    """Return the worker in whose session the job runs, if the visitor may know it."""
    machine = view.cluster.machine
    running = machine.selected_running(selector)
    if running is None or running.session is None:
        return None
    one = next((pool for pool in machine.workers() if pool.session == running.session), None)
    if one is None or not (view.visitor.admin or owner_of(machine, one) == view.visitor.user):
        return None
    return [link("/workers", one.name), f" at {one.address}" if one.address else None]


def _group(view: View, job: JobView) -> Child:
    if job.group is None or not may_see(view, job.group):
        return job.group
    return link(f"/groups?{urlencode({'name': job.group})}", job.group)


def _retry(job: JobView) -> dict[str, str] | None:
    """Return the fields of the action that makes the job ready again; None if there is none."""
    if job.ended_ms is not None:
        return {"number": str(job.number), "ended": "yes"}
    if job.state is JobState.BURIED:
        return None if job.number is None else {"number": str(job.number)}
    if job.state is JobState.DELAYED and job.due_ms is None:
        return None
    again = job.state in (JobState.DEAD, JobState.DELAYED) or job.origin is not None
    return {"queue": job.queue, "seq": str(job.seq)} if again else None


def _item(job: JobView) -> Child:
    return None if job.item is None else link(f"/items?{urlencode({'name': job.item})}", job.item)


def _selector(view: View) -> Selector | Place | Number:
    number = view.word("id")
    if number.isascii() and number.isdigit() and 0 < len(number) < 20:
        return Selector(id=int(number))
    given = view.word("number")
    if given.isascii() and given.isdigit() and len(given) < 20:
        return Number(int(given))
    seq = view.word("seq")
    if seq.isascii() and seq.isdigit() and len(seq) < 20:
        return Place(view.word("queue"), int(seq))
    return Selector(queue=view.word("queue"), key=view.word("key"))


def _name(job: JobView) -> dict[str, str]:
    """Return the fields by which actions find the job."""
    mine = {"queue": job.queue}
    if job.id is not None:
        mine["id"] = str(job.id)
    if job.number is not None:
        mine["number"] = str(job.number)
    elif job.key is not None:
        mine["key"] = job.key
    elif job.id is None:
        mine["seq"] = str(job.seq)
    return mine


def _buttons(view: View, job: JobView) -> Iterator[Markup]:
    """Yield the actions that need no further words."""
    back = f"/queue?{urlencode({'name': job.queue})}"
    retry, mine = _retry(job), _name(job)
    if retry is not None:
        yield form(view, "job.retry", "Retry", retry, back=back)
    if job.state is JobState.RUNNING:
        yield form(view, "job.later", "Put back", mine, back=back)
        yield form(view, "job.bury", "Bury", mine, back=back)
    if job.ended_ms is None:
        yield form(view, "job.delete", "Delete", mine, back=back)


def _changes(view: View, job: JobView) -> Iterator[Markup]:
    if job.ended_ms is not None:
        return
    back, mine = f"/queue?{urlencode({'name': job.queue})}", _name(job)
    yield details("Change", form(
        view, "job.change", "Change", mine, field("priority", "Priority", str(job.priority)),
        field("delay", "Delay, in s"),
        tag("label", "New body, empty: as it is ", tag("textarea", name="body", rows=3)), back=back,
    ))
    if job.state is JobState.RUNNING:
        yield details("Move", form(
            view, "job.move", "Move", mine, field("to", "to queue", required=True), back=back))
