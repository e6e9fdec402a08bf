"""The pages of pulses, rates shared by many processes: the list, and one pulse over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from sockpqd.core import OWN_PREFIX, Pulse
from sockpqd.gateway.dashboard.markup import Child, link, pairs, table, tag
from sockpqd.gateway.dashboard.pages.parts.chart import QUEUE_SPANS, Chart, charts, spans
from sockpqd.gateway.dashboard.pages.parts.listing import listed, more
from sockpqd.gateway.dashboard.pages.parts.view import (
    NotAllowed,
    NotThere,
    View,
    counted,
    duration,
    page,
    search,
    section,
)

CHARTS = (
    Chart("Grants per second", "rate", ("granted", "errors"), ("granted", "results not OK")),
    Chart("Allowed in a period", "count", ("now",), ("grants",)), Chart("Pause", "seconds", ("pause",), ("pause",)),
)

EMPTY = (
    "There is no pulse that you may see. A pulse is a rate that many programs keep together: so many turns in a "
    "period, however many of them ask. ", tag("code", "pqctl pulse create mails --rate 10 --per 1"), " makes one.",
)


async def show(view: View) -> str:
    """Return the list of pulses, or one if the address names it. Raises NotAllowed and NotThere."""
    if view.word("name"):
        return await _one(view, view.word("name"))
    word, known = view.word("search"), view.cluster.machine.pulses
    listing = await listed(
        view, list(known),
        lambda name: 0 if word in name and view.visitor.sees(name.removeprefix(OWN_PREFIX)) else None,
    )
    return page(
        view, "Pulses", search("/pulses", word),
        await table(("pulse", "rate", "now", "pause", "granted", "errors", "open tickets"), _rows(view, listing.names),
                    counted(listing.count, "pulse"),
                    empty="There is no such pulse." if word else EMPTY),
        more("/pulses", {"search": word}, listing),
    )


def _rows(view: View, names: Sequence[str]) -> Iterator[list[Child]]:
    for name in names:
        pulse = view.cluster.machine.pulses.get(name)
        if pulse is not None:
            yield [
                link(f"/pulses?{urlencode({'name': name})}", name.replace(OWN_PREFIX, "of queue ", 1)), _rate(pulse),
                pulse.now, duration(pulse.pause_ms) if pulse.pause_ms else "none", pulse.granted, pulse.errors,
                len(pulse.tickets),
            ]


def _rate(pulse: Pulse) -> str:
    return f"{pulse.rate} in {duration(pulse.per_ms)}"


async def _one(view: View, name: str) -> str:
    if not view.visitor.sees(name.removeprefix(OWN_PREFIX)):
        raise NotAllowed
    pulse = view.cluster.machine.pulses.get(name)
    if pulse is None:
        raise NotThere(f"There is no pulse {name}.", ("/pulses", "Pulses"))
    series = view.samples.pulses.courses.get(name)
    drawn: Child = None if series is None else [
        spans(view, "/pulses", {"name": name}, series, QUEUE_SPANS), await charts(view, CHARTS, series, "pulse", name)]
    asleep_ms = pulse.sleep_until_ms - view.cluster.time_ms
    return page(
        view, f"Pulse {name.replace(OWN_PREFIX, 'of queue ', 1)}",
        tag("p", tag("strong", "Asleep"), f": no grants for {duration(asleep_ms)}.") if asleep_ms > 0 else None,
        drawn, section("Figures", pairs([
            ("rate when nothing slows it down", _rate(pulse) + ", evenly" * pulse.spread),
            ("allowed at present", f"{pulse.now} in {duration(pulse.length_ms)}"),
            ("pause at present", duration(pulse.pause_ms) if pulse.pause_ms else "none"),
            ("granted so far", pulse.granted), ("results not OK so far", pulse.errors),
            ("open tickets", len(pulse.tickets)),
        ])), above=("/pulses", "Pulses"),
    )
