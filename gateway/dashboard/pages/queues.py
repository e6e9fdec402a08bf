"""The page of all queues: searched, sorted, a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlencode

from sockpqd.core import QueueCounts
from sockpqd.gateway.dashboard.markup import Child, link, table, tag
from sockpqd.gateway.dashboard.pages.parts.listing import heads, listed, more
from sockpqd.gateway.dashboard.pages.parts.picture import pictures
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, duration, field, form, page, search, section

SORTS: dict[str, Callable[[QueueCounts], int]] = {
    "name": lambda counts: 0, "ready": lambda counts: -counts.ready, "delayed": lambda counts: -counts.delayed,
    "running": lambda counts: -counts.running, "dead": lambda counts: -counts.dead,
    "buried": lambda counts: -counts.buried,
}


async def show(view: View) -> str:
    word, sort = view.word("search"), view.word("sort", "name")
    machine, rank = view.cluster.machine, SORTS.get(sort, SORTS["name"])

    def found(name: str) -> int | None:
        counts = machine.counts(name) if word in name and view.visitor.sees(name) else None
        return None if counts is None else rank(counts)

    words = {"search": word, "sort": sort}
    listing = await listed(view, machine.queue_names(""), found)
    return page(
        view, "Queues", search("/queues", word, sort=sort),
        await table(
            (*heads("/queues", words, tuple(SORTS)), "oldest", "put and done", "waiting", "age of the oldest", ""),
            _rows(view, listing.names), f"{counted(listing.count, 'queue')}; the pictures show up to the last hour",
        ),
        more("/queues", words, listing),
        section("New queue", form(
            view, "queue.create", "Create", None, field("queue", "Name", required=True),
            field("settings", "Settings, as in QUEUE CREATE", placeholder="TRIES 3 LIMIT 10"), back="/queues",
        )),
    )


def _rows(view: View, names: Sequence[str]) -> Iterator[list[Child]]:
    machine = view.cluster.machine
    for name in names:
        counts = machine.counts(name)
        if counts is None:          # it is gone by now
            continue
        settings = machine.queue_settings(name)
        paused = settings is not None and (settings.paused_in or settings.paused_out)
        oldest_ms = machine.history(name, view.cluster.time_ms).oldest_ms
        yield [
            link(f"/queue?{urlencode({'name': name})}", name), counts.ready, counts.delayed, counts.running,
            counts.dead, counts.buried, duration(oldest_ms) if oldest_ms else "", *pictures(view.samples, name),
            tag("strong", "paused") if paused else "",
        ]
