"""The page of actions on many jobs that run in the background of this node."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.gateway.dashboard.markup import Child, table, tag
from sockpqd.gateway.dashboard.pages.parts.timeline import when
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, form, page


async def show(view: View) -> str:
    actions = list(view.background)
    return page(
        view, "Background",
        tag("p", f"Actions on many jobs, which {view.cluster.name} carries out one after the other. They end with this "
                 "node; what they have done stays done, and can be repeated for the rest."),
        await table(("what", "begun", "state", "how far", ""), _rows(view),
                    counted(len(actions), "action"), empty="None was begun on this node."),
    )


def _rows(view: View) -> Iterator[list[Child]]:
    for one in view.background:
        state: Child = one.state if not one.why else f"{one.state}: {one.why}"
        yield [
            one.words, when(view, one.begun_ms), state, one.progress(),
            form(view, "jobs.stop", "Stop", {"number": one.number}, back="/background") if not one.ended else "",
        ]
