"""The page of slow commands on this node, for administrators."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sockpqd.gateway.dashboard.markup import Child, link, table, tag
from sockpqd.gateway.dashboard.pages.parts.timeline import when
from sockpqd.gateway.dashboard.pages.parts.view import NotAllowed, View, page
from sockpqd.gateway.server.slow_commands import KEPT_MAX, SLOW_S

ROWS = 100


async def show(view: View) -> str:
    """Return the page. Raises NotAllowed."""
    if not view.visitor.admin:
        raise NotAllowed
    slow, first = view.hub.slow, view.number("first")
    kept = min(slow.count, KEPT_MAX)
    return page(
        view, "Slow commands",
        tag("p", f"Commands that took this node more than {SLOW_S * 1000:.0f} ms from when it took them up until it "
                 f"answered; those that wait for a job on purpose are not here. The last {KEPT_MAX} are kept."),
        await table(("answered", "took, ms", "command", "about", "answer", "user", "address"), _rows(view, first),
                    f"{slow.count:,} since this node was started", empty="None was slow since this node was started."),
        tag("p", link(f"/slow?first={first + ROWS}", "older →")) if first + ROWS < kept else None,
    )


def _rows(view: View, first: int) -> Iterator[list[Child]]:
    # a copy, as the recorded commands may change between two portions
    for one in list(islice(view.hub.slow.newest(), first, first + ROWS)):
        yield [
            when(view, round(one.answered_at * 1000)), round(one.took_s * 1000),
            one.verb, one.about, one.answer, one.user or "-", one.address,
        ]
