"""The page of the pulses: rates that many processes keep together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sockpqd.core import OWN_PREFIX
from sockpqd.gateway.dashboard.markup import Child, table
from sockpqd.gateway.dashboard.pages.parts.listing import listed, more
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, duration, page, search


async def show(view: View) -> str:
    word, known = view.word("search"), view.cluster.machine.pulses
    listing = await listed(
        view, list(known),
        lambda name: 0 if word in name and view.visitor.sees(name.removeprefix(OWN_PREFIX)) else None,
    )
    return page(
        view, "Pulses", search("/pulses", word),
        await table(("pulse", "rate", "now", "pause", "granted", "errors", "open tickets"), _rows(view, listing.names),
                    counted(listing.count, "pulse")),
        more("/pulses", {"search": word}, listing),
    )


def _rows(view: View, names: Sequence[str]) -> Iterator[list[Child]]:
    for name in names:
        pulse = view.cluster.machine.pulses.get(name)
        if pulse is not None:
            yield [
                name.replace(OWN_PREFIX, "of queue ", 1), f"{pulse.rate} in {duration(pulse.per_ms)}", pulse.now,
                duration(pulse.pause_ms), pulse.granted, pulse.errors, len(pulse.tickets),
            ]
