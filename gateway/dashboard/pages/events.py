"""The page on which the script shows events as they arrive."""

from __future__ import annotations

from sockpqd.core import EVENT_TYPES
from sockpqd.gateway.dashboard.markup import tag
from sockpqd.gateway.dashboard.pages.parts.view import View, page


async def show(view: View) -> str:
    return page(
        view, "Events",
        tag("p", "What happens in the cluster, as it happens, newest first. This page needs scripts; the same is at "
                 "/events, and in the protocol by SUBSCRIBE."),
        tag("div", tag("label", "Only lines with ", tag("input", id="events-with", type="search", autocomplete="off")),
            tag("button", "Pause", type="button", id="events-pause", aria_pressed="false"), class_="bar"),
        tag("p", "Nothing has happened since this page was opened. Here comes a line for each job that is put, handed "
                 "out, done or put back, and for what changes in queues, items and the cluster.", class_="empty",
            id="no-events"),
        tag("ol", id="events", data_types=" ".join(EVENT_TYPES), aria_live="polite", reversed=True),
        live=False,
    )
