"""Tables on the terminal. Columns with long values fold, so that 80 columns are enough."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from sockpqd.pqctl.output.text import printable

WIDTH_WITHOUT_TERMINAL = 160      # a table that goes into a file or a pipe is folded late
FOLDED_ROWS_MAX = 500             # rich takes half a millisecond per row


class _Console(Console):
    """A console that prints printable text, and raises BrokenPipeError where rich would exit with a code of its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces to print; the console's own control codes are pieces of their own."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text), piece.style)

    def on_broken_pipe(self) -> None:
        """Re-raise the BrokenPipeError being handled."""
        raise


class Printer(Protocol):
    """Prints the answer of a command; see invocation.py."""

    def print(self, text: str) -> None:
        """Print lines of text to standard output."""

    def print_rich(self, what: Table) -> None:
        """Print a table, or another renderable."""


class Column(NamedTuple):
    """A column of a table; figures are right-aligned."""

    title: str
    figures: bool = False
    folds: bool = False


def console() -> Console:
    """Return a console for standard output; colours only on a terminal."""
    return _Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)


def table(columns: Sequence[Column], rows: Iterable[tuple[Sequence[str], str]]) -> Table:
    """Create a table of rows, each with its style. Cells are not interpreted as markup."""
    made = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        made.add_column(column.title, justify="right" if column.figures else "left",
                        no_wrap=not column.folds, overflow="fold" if column.folds else "ellipsis")
    for cells, style in rows:
        made.add_row(*map(Text, cells), style=style)
    return made


def print_rows(call: Printer, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table without colours. A very long one is not folded, so that it appears immediately."""
    if len(rows) <= FOLDED_ROWS_MAX:
        call.print_rich(table(columns, ((row, "") for row in rows)))
        return
    everything = [[column.title for column in columns], *rows]
    widths = [max(map(len, cells)) for cells in zip(*everything, strict=True)]
    adjust = [str.rjust if column.figures else str.ljust for column in columns]
    call.print("\n".join(
        "  ".join(to(cell, width) for to, cell, width in zip(adjust, row, widths, strict=True)).rstrip()
        for row in everything
    ))
