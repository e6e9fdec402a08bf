"""The page of all queues: searched, sorted, a hundred at a time."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

from msgspec import Struct

from core import QueueCounts
from gateway.dashboard.history import SAMPLES
from gateway.dashboard.markup import Child, Markup, link, table, tag
from gateway.dashboard.pages.picture import sparkline
from gateway.dashboard.pages.view import View, duration, field, form, page, section

ROWS = 100
PIECE = 1000                # queues counted before others have a turn
SORTS = ("name", "ready", "delayed", "running", "dead")


class Line(Struct, frozen=True):
    """A queue with its counts."""

    name: str
    counts: QueueCounts


async def show(view: View) -> str:
    """Return the page."""
    search, sort = view.word("search"), view.word("sort", "name")
    first = int(view.word("first")) if view.word("first").isdigit() else 0
    lines = await _lines(view, search)
    lines.sort(key=lambda line: line.name)
    if sort in SORTS[1:]:
        lines.sort(key=lambda line: -getattr(line.counts, sort))
    await asyncio.sleep(0)
    shown = lines[first:first + ROWS]
    address = {"search": search, "sort": sort}
    heads: list[Child] = [
        link(f"/queues?{urlencode({**address, 'sort': name})}", f"{name} ↓" if name == sort else name) for name in SORTS
    ]
    rows = []
    for at, line in enumerate(shown):
        rows.append(_row(view, line))
        if at % 20 == 19:
            await asyncio.sleep(0)
    return page(
        view, "Queues",
        tag("form", field("search", "Search", search, type="search"), tag("button", "Search"), method="get",
            action="/queues", role="search"),
        table((*heads, "oldest", "waiting, last hour", ""), rows, f"{len(lines)} queues"),
        _more(first, len(lines), address),
        section("New queue", form(
            view, "queue.create", "Create", None, field("queue", "Name", required=True),
            field("settings", "Settings, as in QUEUE CREATE", placeholder="TRIES 3 LIMIT 10"), back="/queues",
        )),
    )


async def _lines(view: View, search: str) -> list[Line]:
    machine, lines = view.cluster.machine, []
    for at, name in enumerate(machine.queue_names("")):
        if search in name and view.visitor.sees(name):
            counts = machine.counts(name)
            if counts is not None:
                lines.append(Line(name, counts))
        if at % PIECE == PIECE - 1:
            await asyncio.sleep(0)
    return lines


def _row(view: View, line: Line) -> list[Child]:
    machine, counts = view.cluster.machine, line.counts
    settings = machine.queue_settings(line.name)
    paused = settings is not None and (settings.paused_in or settings.paused_out)
    oldest_ms = machine.history(line.name, view.cluster.time_ms).oldest_ms
    return [
        link(f"/queue?{urlencode({'name': line.name})}", line.name), counts.ready, counts.delayed, counts.running,
        counts.dead, duration(oldest_ms) if oldest_ms else "",
        sparkline(view.history.depths(line.name), SAMPLES, f"waiting in {line.name}"),
        tag("strong", "paused") if paused else "",
    ]


def _more(first: int, count: int, address: dict[str, str]) -> Markup:
    links: list[Child] = []
    if first:
        links.append(link(f"/queues?{urlencode({**address, 'first': max(0, first - ROWS)})}", "← before"))
    if first + ROWS < count:
        links.append(link(f"/queues?{urlencode({**address, 'first': first + ROWS})}", "after →"))
    return tag("p", [[one, " "] for one in links], class_="more")
