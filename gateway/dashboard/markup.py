"""HTML that is safe from injection: everything that is not Markup is escaped wherever it is inserted."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Iterable, Sequence
from itertools import compress

VOID = ("input", "link", "meta")
EMPTY = ("<td></td>", '<td class="n"></td>')
ROWS_PER_PORTION = 1        # of a table, before others have a turn: half a millisecond, with pictures in it


class Markup(str):
    """HTML that is complete as it is."""

    __slots__ = ()


class FigureText(str):
    """Text that is a figure with its unit, and aligned as numbers are."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]
NUMBERS = int | FigureText


def text(child: Child) -> Markup:
    """Return a child as HTML: Markup as it is, other text escaped, lists one after the other."""
    if child is None:
        return Markup()
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int):
        return Markup(html.escape(_visible(str(child))))
    return Markup("".join(map(text, child)))


def tag(element: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """Return an element. `class_` is class, `data_x` data-x; True: an attribute without value, None and False: none."""
    words = [element]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(key)
        elif value is not None and value is not False:
            words.append(f'{key}="{html.escape(str(value))}"')
    opened = f"<{' '.join(words)}>"
    return Markup(opened if element in VOID else f"{opened}{text(children)}</{element}>")


async def table(
    heads: Sequence[Child], rows: Iterable[Sequence[Child]], caption: str, *, empty: Child = None, sparse: bool = False,
) -> Markup:
    """Return a table; cells that are ints or FigureTexts are aligned to the right.

    The rows are generated and written a few at a time, with turns of the event loop in between: `rows` should be a
    generator that copes with changes of the state since its last row. `empty`: what a page says instead of a table
    without rows; `sparse`: leave out columns in which all cells are empty.
    """
    numbers, shown = [False] * len(heads), [not sparse] * len(heads)
    body: list[list[Markup]] = []
    for cells in rows:
        if not body:
            numbers = [isinstance(cell, NUMBERS) for cell in cells]
        written = [tag("td", cell, class_=_kind(cell)) for cell in cells]
        shown = [so_far or cell not in EMPTY for so_far, cell in zip(shown, written, strict=True)]
        body.append(written if sparse else [tag("tr", written)])
        if len(body) % ROWS_PER_PORTION == 0:
            await asyncio.sleep(0)
    if empty is not None and not body:
        return tag("p", empty, class_="empty")
    lines: list[Child] = []
    for written in body:
        lines.append(tag("tr", list(compress(written, shown))) if sparse else written)
        if sparse:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    head = tag("tr", [tag("th", cell, scope="col", class_="n" if number else None)
                      for cell, number in compress(zip(heads, numbers, strict=True), shown)])
    content = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", lines))
    # A table may be wider than the screen, and must then be scrollable by keyboard, too.
    return tag("div", content, class_="wide", tabindex="0", role="region", aria_label=caption)


def _kind(cell: Child) -> str | None:
    """Return the class of a cell: figures are aligned to the right, and zeros are faint, so that others stand out."""
    if not isinstance(cell, NUMBERS):
        return None
    return "n zero" if cell in (0, "0") else "n"


def link(path: str, label: Child) -> Markup:
    """Return a link to a page of the dashboard."""
    return tag("a", label, href=path)


def pairs(known: Iterable[tuple[str, Child]]) -> Markup:
    """Return names with their values."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in known if value is not None])


def _visible(text: str) -> str:
    """Return the text with control characters, including direction marks, made visible."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter in "\n\t" or letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
