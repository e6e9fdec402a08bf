"""The page of all queues: filtered, sorted, a page at a time, with rates and pictures of the last hour."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlencode

from sockpqd.core import QueueCounts, QueueSettings
from sockpqd.gateway.dashboard.markup import Child, FigureText, Markup, link, table, tag
from sockpqd.gateway.dashboard.pages.parts.listing import heads, listed, more
from sockpqd.gateway.dashboard.pages.parts.picture import amount, ranged, recent, recent_rows
from sockpqd.gateway.dashboard.pages.parts.trouble import backlog, died_elsewhere, queue_link
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, duration, field, form, page, section
from sockpqd.gateway.samples import STILL, QueueRates

# The columns by which the list can be sorted, the greatest first.
COUNTS: dict[str, Callable[[QueueCounts], int]] = {
    "waiting": lambda counts: counts.ready, "delayed": lambda counts: counts.delayed,
    "running": lambda counts: counts.running, "dead": lambda counts: counts.dead,
    "buried": lambda counts: counts.buried,
}
RATES: dict[str, Callable[[QueueRates], float]] = {
    "in": lambda rates: rates.put, "out": lambda rates: rates.taken, "failed": lambda rates: rates.failed + rates.died,
}
SORTS = ("name", *RATES, *COUNTS, "oldest")
MILLI = 1000                # a rate is sorted by jobs in this many seconds
# What the list can be restricted to.
FILTERS: dict[str, Callable[[QueueCounts, QueueSettings | None], bool]] = {
    "any": lambda counts, settings: True,
    "with waiting jobs": lambda counts, settings: counts.ready > 0,
    "waiting, and none runs": lambda counts, settings: counts.ready > 0 and not counts.running,
    "with dead or buried jobs": lambda counts, settings: counts.dead + counts.buried > 0,
    "paused": lambda counts, settings: _paused(settings),
    "without jobs": lambda counts, settings: not (counts.ready + counts.delayed + counts.running),
}
ABOUT_WAITING = ("with waiting jobs", "waiting, and none runs")         # dead jobs do not wait to be taken


async def show(view: View) -> str:
    word, sort, state = view.word("search"), view.word("sort", "name"), view.word("state", "any")
    sort, state = sort if sort in SORTS else "name", state if state in FILTERS else "any"
    machine, wanted = view.cluster.machine, FILTERS[state]

    def found(name: str) -> int | None:
        counts = machine.counts(name) if word in name and view.visitor.sees(name) else None
        if counts is None or not wanted(counts, machine.queue_settings(name)):
            return None
        if state in ABOUT_WAITING and died_elsewhere(view, name) is not None:
            return None
        return -_rank(view, sort, name, counts)

    span = recent(view)[0]
    words = {"search": word, "state": state, "sort": sort}
    listing = await listed(view, machine.queue_names(""), found)
    titles = heads("/queues", words, SORTS)
    await asyncio.sleep(0)              # they are a turn, like the first row
    return page(
        view, "Queues", _filters(word, state, sort),
        await table(
            (*titles, "in and done", "waiting"),
            _rows(view, listing.names), f"{counted(listing.count, 'queue')}; the pictures are of the last {span}",
            empty="There is no such queue.",
        ),
        more("/queues", words, listing),
        section("New queue", form(
            view, "queue.create", "Create", None, field("queue", "Name", required=True),
            field("settings", "Settings, as in QUEUE CREATE", placeholder="TRIES 3 LIMIT 10"), back="/queues",
        )),
    )


def _rank(view: View, sort: str, name: str, counts: QueueCounts) -> int:
    """Return the sort key of the queue; the smallest comes first."""
    if sort in COUNTS:
        return COUNTS[sort](counts)
    if sort in RATES:
        return round(MILLI * RATES[sort](view.samples.flows.of.get(name, STILL)))
    return view.cluster.machine.history(name, view.cluster.time_ms).oldest_ms if sort == "oldest" else 0


def _filters(word: str, state: str, sort: str) -> Markup:
    return tag(
        "form", tag("input", type="hidden", name="sort", value=sort),
        field("search", "Name has", word, type="search"),
        tag("label", "Queues ", tag("select", [
            tag("option", name, value=name, selected=name == state) for name in FILTERS
        ], name="state")),
        tag("button", "Show"), method="get", action="/queues", role="search",
    )


def _rows(view: View, names: Sequence[str]) -> Iterator[list[Child]]:
    machine = view.cluster.machine
    for name in names:
        counts = machine.counts(name)
        if counts is None:          # it is gone by now
            continue
        oldest_ms = machine.history(name, view.cluster.time_ms).oldest_ms
        rates = view.samples.flows.of.get(name, STILL)
        yield [
            [link(f"/queue?{urlencode({'name': name})}", name), _marks(view, name, oldest_ms)],
            *(FigureText(amount(rate(rates), "rate") if rate(rates) else "0") for rate in RATES.values()),
            *(FigureText(f"{count(counts):,}") for count in COUNTS.values()),
            FigureText(duration(oldest_ms) if oldest_ms else ""),
            *_pictures(view, name),
        ]


def _marks(view: View, name: str, oldest_ms: int) -> Iterator[Child]:
    """Yield, in a word each, the reasons why the jobs of a queue wait, as on the first page and the queue's own."""
    machine = view.cluster.machine
    origin, settings, figures = died_elsewhere(view, name), machine.queue_settings(name), machine.stat(
        name, view.cluster.time_ms)
    if origin is not None:
        yield [" ", tag("small", "dead jobs of ", queue_link(origin))]
    if _paused(settings):
        yield _mark("paused")
    if origin is not None or figures is None or (settings is not None and settings.paused_out):
        return
    its = dict(figures)
    waits = backlog(view, name, its, oldest_ms)
    if waits is not None and waits.word != "waiting":       # a column says for how long
        yield _mark(waits.word, severe=waits.severe)
    if its["WITHHELD"]:
        yield _mark(f"{its['WITHHELD']:,} held back")


def _mark(word: str, *, severe: bool = False) -> Child:
    return [" ", tag("strong", word, class_="mark severe" if severe else "mark")]


def _pictures(view: View, name: str) -> tuple[Markup, Markup]:
    rows, span = recent_rows(view, name, "put", "done", "waiting"), recent(view)[0]
    if rows is None:
        return Markup(), Markup()
    return (ranged(f"{name}, jobs per second in the last {span}", "rate", rows.values["put"], rows.values["done"]),
            ranged(f"{name}, waiting in the last {span}", "count", rows.values["waiting"]))


def _paused(settings: QueueSettings | None) -> bool:
    return settings is not None and (settings.paused_in or settings.paused_out)
