"""Tables on the terminal. What can be long folds, so that 80 columns are enough."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH_WITHOUT_TERMINAL = 160      # a table that goes into a file or a pipe is folded late
FOLDED_ROWS_MAX = 500             # rich needs half a millisecond for a row


class _Console(Console):
    """rich ends the program by itself when nobody reads; here the exit code is ours."""

    def on_broken_pipe(self) -> None:
        """Called while the BrokenPipeError is handled: let it go on."""
        raise


class Printer(Protocol):
    """Who prints the answer of a command; see invocation.py."""

    def print(self, text: str) -> None:
        """Lines."""

    def print_rich(self, what: Table) -> None:
        """A table."""


class Column(NamedTuple):
    """A column; figures stand at its right."""

    title: str
    figures: bool = False
    folds: bool = False


def console() -> Console:
    """The standard output; colours only on a terminal."""
    return _Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)


def table(columns: Sequence[Column], rows: Iterable[tuple[Sequence[str], str]]) -> Table:
    """A table of rows, each with its style. Nothing in a cell is taken for markup."""
    made = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        made.add_column(column.title, justify="right" if column.figures else "left",
                        no_wrap=not column.folds, overflow="fold" if column.folds else "ellipsis")
    for cells, style in rows:
        made.add_row(*map(Text, cells), style=style)
    return made


def print_rows(call: Printer, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """A table without colours. A very long one is not folded, so that it comes at once."""
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
