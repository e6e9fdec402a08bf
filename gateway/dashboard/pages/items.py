"""The pages of items: the list, and one item with its jobs and its flow as a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from sockpqd.core import ItemSummary
from sockpqd.gateway.dashboard.markup import Child, link, pairs, table, tag
from sockpqd.gateway.dashboard.pages.parts.flow import flow_of
from sockpqd.gateway.dashboard.pages.parts.graph import drawn
from sockpqd.gateway.dashboard.pages.parts.listing import listed, more
from sockpqd.gateway.dashboard.pages.parts.view import NotAllowed, NotThere, View, counted, form, page, search, section
from sockpqd.gateway.protocol import listings

ACTIONS = (
    ("item.retry", "Retry dead and buried jobs"), ("item.release", "Release the hold"),
    ("item.cancel", "Cancel the item"),
)
EMPTY = (
    "No unfinished job belongs to an item that you may see. An item is a name that jobs in any queues have in common, "
    "as the parts of an order; the answer to the last DONE says that it is finished. ",
    tag("code", "pqctl job put QUEUE BODY --item order_17"), " puts a job into one.",
)
QUEUES_MAX = 1000           # more are not looked at in one turn of the loop


async def show(view: View) -> str:
    """Return the list of items, or one item if the address names it. Raises NotAllowed and NotThere."""
    if view.word("name"):
        return await _one(view, view.word("name"))
    word, mine = view.word("search"), view.visitor.rights.item
    listing = await listed(
        view, view.cluster.machine.item_names(), lambda name: 0 if word in name and name.startswith(mine) else None,
    )
    return page(
        view, "Items", search("/items", word),
        await table(("item", "unfinished", "dead or buried", ""), _rows(view, listing.names),
                    counted(listing.count, "item"), empty="There is no such item." if word else EMPTY),
        more("/items", {"search": word}, listing),
    )


def _rows(view: View, names: Sequence[str]) -> Iterator[list[Child]]:
    for name in names:
        item = view.cluster.machine.item_summary(name)
        if item is not None:
            yield [link(f"/items?{urlencode({'name': name})}", name), item.unfinished, item.dead, _marks(item)]


def _marks(item: ItemSummary) -> str:
    return ", ".join(word for word, holds in (("held", item.held), ("cancelled", item.cancelling)) if holds)


async def _one(view: View, name: str) -> str:
    if not name.startswith(view.visitor.rights.item):
        raise NotAllowed
    machine = view.cluster.machine
    summary = machine.item_summary(name)
    if summary is None:
        raise NotThere(f"There is no item {name}.", ("/items", "Items"))
    known: list[tuple[str, Child]] = [("unfinished", summary.unfinished), ("dead or buried", summary.dead)]
    counts = machine.item(name) if machine.queues_of_item(name) <= QUEUES_MAX else None
    if counts is not None:
        known = [(key.lower(), str(value)) for key, value in listings.of_item(counts)]
    back = f"/items?{urlencode({'name': name})}"
    flow = await flow_of(view, name)
    graph = await drawn(view, flow, name)
    return page(
        view, f"Item {name}",
        section("Jobs", pairs(known), graph,
                tag("p", "Some jobs or items of this flow are not drawn.") if flow.cut else None),
        section("Actions", *(
            form(view, action, label, {"item": name}, back=back) for action, label in ACTIONS
        )) if name.startswith(view.visitor.rights.own_item) else None, above=("/items", "Items"),
    )
