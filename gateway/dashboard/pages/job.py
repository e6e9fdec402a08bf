"""The page of one job, which has an id, a number, a key or a place."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

from sockpqd.core import JobState, JobView, Number, Place, Selector, bytes_of
from sockpqd.gateway.dashboard.markup import Child, Markup, link, pairs, tag
from sockpqd.gateway.dashboard.pages import queue
from sockpqd.gateway.dashboard.pages.parts.body import FORMS, SHOWN_BYTES, whole
from sockpqd.gateway.dashboard.pages.parts.timeline import timeline
from sockpqd.gateway.dashboard.pages.parts.view import (
    NotAllowed,
    NotThere,
    View,
    counted,
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
    if job is None:
        raise NotThere("there is no such job (any more)")
    if not view.visitor.manages(job.queue):
        raise NotAllowed
    forms = [[link(f"/job?{queue.address(job)}&form={form}", form), " "] for form in FORMS]
    cut = f", the first {size(SHOWN_BYTES)} at most" if job.body_bytes > SHOWN_BYTES else ""
    shown = await whole(job.body(), view.word("form"))
    error = machine.error(selector)
    result = machine.result(job.number) if job.ended_ms is not None and job.number is not None else None
    return page(
        view, f"Job {job.key or job.id or job.number or ''}".strip(),
        tag("p", link(f"/queue?{urlencode({'name': job.queue})}", f"Queue {job.queue}")),
        pairs([
            ("state", queue.state_of(job)), ("died in", job.origin and _queue(job.origin)),
            ("id", job.id), ("number", job.number), ("key", job.key),
            ("priority", job.priority), ("item", _item(job)), ("group", job.group), ("reason", job.reason),
            ("progress", None if job.progress is None else f"{job.progress}%"),
        ]),
        section("What happened", timeline(view, job)),
        *([section("Error", await whole(bytes_of(error), "text"))] if error else []),
        *([section("Result", await whole(result, ""))] if result else []),
        *([section("Headers", tag("pre", job.headers().decode(errors="replace")))] if job.head else []),
        section("Body", tag("p", f"{counted(job.body_bytes, 'byte')}{cut} · as ", forms), shown),
        section("Actions", list(_actions(view, job))),
    )


def _queue(name: str) -> Markup:
    return link(f"/queue?{urlencode({'name': name})}", name)


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


def _actions(view: View, job: JobView) -> Iterator[Markup]:
    back = f"/queue?{urlencode({'name': job.queue})}"
    retry = _retry(job)
    if retry is not None:
        yield form(view, "job.retry", "Retry", retry, back=back)
    if job.ended_ms is not None:
        return
    mine = {"queue": job.queue}
    if job.id is not None:
        mine["id"] = str(job.id)
    if job.number is not None:
        mine["number"] = str(job.number)
    elif job.key is not None:
        mine["key"] = job.key
    elif job.id is None:
        mine["seq"] = str(job.seq)
    yield form(
        view, "job.change", "Change", mine, field("priority", "Priority", str(job.priority)),
        field("delay", "Delay, in s"),
        tag("label", "New body, empty: as it is ", tag("textarea", name="body", rows=3)), back=back,
    )
    if job.state is JobState.RUNNING:
        yield form(view, "job.later", "Put back", mine, back=back)
        yield form(view, "job.bury", "Bury", mine, back=back)
        yield form(view, "job.move", "Move", mine, field("to", "to queue", required=True), back=back)
    yield form(view, "job.delete", "Delete", mine, back=back)
