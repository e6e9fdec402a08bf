"""The page that searches for jobs by their properties, as FIND does, with actions on all jobs found."""

from __future__ import annotations

from contextlib import aclosing
from urllib.parse import urlencode

from sockpqd.core import JobView
from sockpqd.gateway.dashboard.actions import BadForm
from sockpqd.gateway.dashboard.job_filter import FIELDS, JobFilter, filter_of, matches
from sockpqd.gateway.dashboard.markup import Child, Markup, link, table, tag
from sockpqd.gateway.dashboard.pages.parts.badge import badge
from sockpqd.gateway.dashboard.pages.parts.body import preview
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, field, form, page, section
from sockpqd.gateway.dashboard.pages.queue import address, label, named, state_of
from sockpqd.gateway.protocol.grammar.find import cursor

ROWS = 50
LOOKED_MAX = 20_000         # jobs and queues that are looked at for a page: a third of a second
STATES = ("", "READY", "DELAYED", "RUNNING", "DEAD", "BURIED", "DONE", "CANCELLED", "EXPIRED")
INPUTS = (
    ("queues", "Queues, as mail|post"), ("reason", "Reason"), ("key", "Key begins with"), ("item", "Item"),
    ("group", "Group"), ("header", "Header"), ("value", "with the value"),
    ("since", "Since, as 2 h or 3 d"), ("until", "Until"),
)


async def show(view: View) -> str:
    """Return the page. It searches if the address contains a filter."""
    asked = {name: view.word(name) for name in FIELDS if view.word(name)}
    try:
        chosen = filter_of(asked, view.cluster.time_ms) if asked else None
    except BadForm as error:
        return page(view, "Jobs", _form(view), tag("p", f"{error}.", class_="note"))
    return page(view, "Jobs", _form(view), None if chosen is None else await _found(view, chosen), live=False)


def _form(view: View) -> Markup:
    state = view.word("states")
    known = STATES if state in STATES else (*STATES, state)
    return tag(
        "form",
        tag("label", "State ", tag("select", [
            tag("option", one or "any but ended", value=one, selected=one == state) for one in known
        ], name="states")),
        [field(name, label, view.word(name)) for name, label in INPUTS],
        [tag("input", type="hidden", name=name, value=view.word(name))
         for name in ("died_in", "unreasoned") if view.word(name)],
        tag("button", "Search"), method="get", action="/jobs", role="search",
    )


async def _found(view: View, chosen: JobFilter) -> list[Child]:
    jobs: list[JobView] = []
    place = None
    async with aclosing(matches(
        view.hub, view.visitor, chosen, looked_max=LOOKED_MAX, found_max=ROWS,
    )) as slices:
        async for found, reached in slices:
            jobs += found
            place = reached
            if len(jobs) >= ROWS:
                break
    onward = {**chosen.fields, "from": cursor(place)} if place is not None else None
    some = f"{counted(len(jobs), 'job')}, and there may be more" if onward else counted(len(jobs), "job")
    return [
        await table(("job", "queue", "state", "reason", "attempts", "body"), [_row(job) for job in jobs], some,
                    sparse=True, empty=None if onward else "No job that you may see fits this search."),
        tag("p", link(f"/jobs?{urlencode(onward)}", "search on →"), class_="more") if onward else None,
        section(
            "All that this search finds", tag("p", tag("code", chosen.line)), everything(view, chosen),
            tag("p", "This goes on in the background, and says how far it is."),
        ) if (jobs or onward) and not view.read_only else None,
    ]


def everything(view: View, chosen: JobFilter) -> list[Markup]:
    """Return the buttons for all jobs of a filter."""
    fields = {name: value for name, value in chosen.fields.items() if name != "from"}
    return [form(view, "jobs.retry", "Retry all", fields, back="/background"),
            form(view, "jobs.move", "Move all", fields, field("to", "to queue", required=True), back="/jobs"),
            form(view, "jobs.cancel", "Remove all", fields, back="/jobs")]


def _row(job: JobView) -> list[Child]:
    return [
        link(f"/job?{address(job)}", label(job)) if named(job) else label(job),
        link(f"/queue?{urlencode({'name': job.queue})}", job.queue), badge(state_of(job)), job.reason, job.attempts,
        preview(job.body()),
    ]
