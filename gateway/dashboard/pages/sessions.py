"""The page of the sessions of all clients, for administrators."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sockpqd.gateway.dashboard.markup import Child, table
from sockpqd.gateway.dashboard.pages.parts.view import NotAllowed, View, counted, duration, form, page

ROWS = 200


async def show(view: View) -> str:
    """Return the page. Raises NotAllowed."""
    if not view.visitor.admin:
        raise NotAllowed
    count = view.cluster.machine.session_count
    return page(view, "Sessions", await table(
        ("session", "user", "address", "ttl", "unused for", "bound jobs", ""), _rows(view),
        counted(count, "session") + (f", the first {ROWS}" if count > ROWS else ""),
    ))


def _rows(view: View) -> Iterator[list[Child]]:
    cluster = view.cluster
    for one in islice(cluster.machine.sessions(), ROWS):
        yield [
            one.number, one.user or "-", one.address or "-", duration(one.ttl_ms),
            duration(max(0, cluster.time_ms - one.used_ms)), len(one.taken),
            form(view, "session.end", "End", {"session": str(one.number)}, back="/sessions"),
        ]
