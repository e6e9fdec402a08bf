"""Long lists on pages: searched, sorted, and shown a page at a time, in portions that do not block the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from heapq import merge
from urllib.parse import urlencode

from msgspec import Struct

from sockpqd.gateway.dashboard.markup import Child, Markup, link, tag
from sockpqd.gateway.dashboard.pages.parts.view import View

ROWS = 50                   # on a page
NAMES_PER_PORTION = 50      # looked at before others have a turn: a fraction of a millisecond

# The sort key of a name, and the name itself; None: do not list it.
Rank = Callable[[str], int | None]


class Listing(Struct, frozen=True):
    """A page of a list: its `names`, and how many there are in all."""

    names: Sequence[str]
    first: int
    count: int


async def listed(view: View, names: Sequence[str], rank: Rank) -> Listing:
    """Return the names on the page that the view asks for, the smallest ranks first, equal ones by name."""
    runs: list[list[tuple[int, str]]] = []
    count = 0
    for at in range(0, len(names), NAMES_PER_PORTION):
        run = [(found, name) for name in names[at:at + NAMES_PER_PORTION] if (found := rank(name)) is not None]
        run.sort()
        runs.append(run)
        count += len(run)
        await asyncio.sleep(0)
    first = min(view.number("first"), max(count - 1, 0))
    shown = []
    for place, (_, name) in enumerate(merge(*runs)):
        if place >= first + ROWS:
            break
        if place >= first:
            shown.append(name)
        if place % NAMES_PER_PORTION == 0:
            await asyncio.sleep(0)
    return Listing(shown, first, count)


def more(path: str, words: dict[str, str], listing: Listing) -> Markup:
    """Return links to the pages of the list before and after this one."""
    links: list[Child] = []
    if listing.first:
        before = max(0, listing.first - ROWS)
        links.append(link(f"{path}?{urlencode({**words, 'first': before})}", "← before"))
    if listing.first + ROWS < listing.count:
        links.append(link(f"{path}?{urlencode({**words, 'first': listing.first + ROWS})}", "after →"))
    return tag("p", [[one, " "] for one in links], class_="more")


def heads(path: str, words: dict[str, str], sorts: Sequence[str]) -> list[Child]:
    """Return the heads of the columns by which the list can be sorted, as links."""
    return [
        tag("a", f"{name} ↓" if name == words["sort"] else name, href=f"{path}?{urlencode({**words, 'sort': name})}",
            class_="sorted" if name == words["sort"] else None)
        for name in sorts
    ]
