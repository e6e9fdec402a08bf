"""The pages for administrators: sessions and users; pulses and events, for whoever may see their queues."""

from __future__ import annotations

from itertools import islice

from core import EVENT_TYPES, OWN_PREFIX
from gateway.dashboard.markup import Child, table, tag
from gateway.dashboard.pages.view import NotAllowed, View, duration, form, page

ROWS = 200


def sessions(view: View) -> str:
    """Return the page of the sessions of all clients. Raises NotAllowed."""
    if not view.visitor.admin:
        raise NotAllowed
    machine, now = view.cluster.machine, view.cluster.time_ms
    rows: list[list[Child]] = [
        [one.number, one.user or "-", one.address or "-", duration(one.ttl_ms), duration(max(0, now - one.used_ms)),
         len(one.taken), form(view, "session.end", "End", {"session": str(one.number)}, back="/sessions")]
        for one in islice(machine.sessions(), ROWS)
    ]
    return page(view, "Sessions", table(
        ("session", "user", "address", "ttl", "unused for", "bound jobs", ""), rows,
        f"{machine.session_count} sessions" + (f", the first {ROWS}" if machine.session_count > ROWS else ""),
    ))


def users(view: View) -> str:
    """Return the page of the users. Raises NotAllowed."""
    if not view.visitor.admin:
        raise NotAllowed
    listed = view.hub.access.listed()
    rows: list[list[Child]] = [
        [name, rights, "users file" if source == "FILE" else "cluster",
         form(view, "user.delete", "Delete", {"user": name}, back="/users") if source == "LOG" else ""]
        for name, rights, source in listed[:ROWS]
    ]
    about = None if view.hub.access.required else "No users are required here: every client may do everything."
    return page(view, "Users", tag("p", about) if about else None,
                table(("user", "rights", "from", ""), rows, f"{len(listed)} users"))


def events(view: View) -> str:
    """Return the page on which the events are told as they come, by the script."""
    return page(
        view, "Events",
        tag("p", "What happens in the cluster, as it happens, newest first. This page needs scripts; the same is at "
                 "/events, and in the protocol by SUBSCRIBE."),
        tag("ol", id="events", data_types=" ".join(EVENT_TYPES), aria_live="polite", reversed=True),
        live=False,
    )


def pulses(view: View) -> str:
    """Return the page of the pulses."""
    known = view.cluster.machine.pulses
    seen = [pulse for name, pulse in known.items() if view.visitor.sees(name.removeprefix(OWN_PREFIX))]
    rows: list[list[Child]] = [
        [pulse.name, f"{pulse.rate} in {duration(pulse.per_ms)}", pulse.now, duration(pulse.pause_ms), pulse.granted,
         pulse.errors, len(pulse.tickets)]
        for pulse in seen[:ROWS]
    ]
    return page(view, "Pulses", table(
        ("pulse", "rate", "now", "pause", "granted", "errors", "open tickets"), rows, f"{len(seen)} pulses"))
