"""The screen of `pqctl top`: tables of queues, workers and nodes that keys sort and filter."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.css.query import NoMatches
from textual.message import Message
from textual.widgets import DataTable, Footer, Input, Static

from sockpqd.pqctl.actions.sessions import WORKER_STATES
from sockpqd.pqctl.actions.status import HEAD_STYLES, STYLES
from sockpqd.pqctl.live.sample import QueueLine, Sample
from sockpqd.pqctl.output.text import counted, lasting, one_line
from sockpqd.pqctl.report import exit_code, headline

ROWS_MAX = 500      # queues in the table: each refresh makes it again, which takes 0.1 ms for a queue
INTERVALS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class Figure(NamedTuple):
    """A column of figures of the queues' table: its title, its value for sorting, and its format."""

    title: str
    value: Callable[[QueueLine], float]
    written: Callable[[QueueLine], str]
    style: str = ""             # where it is not zero
    digits: int = 0             # after the point


def _count(name: str, style: str = "") -> Figure:
    return Figure(name, lambda row: getattr(row, name), lambda row: f"{getattr(row, name):,}", style)


def _rate(name: str, style: str = "") -> Figure:
    return Figure(f"{name}/s", lambda row: getattr(row, name), lambda row: f"{getattr(row, name):,.1f}", style, 1)


FIGURES = (
    _count("ready"), _count("running"), _count("delayed"), _count("dead", "bold red"), _count("buried", "yellow"),
    _rate("put"), _rate("take"), _rate("done"), _rate("retry", "yellow"),
    Figure("oldest", lambda row: row.oldest_s or 0,
           lambda row: "" if row.oldest_s is None else lasting(row.oldest_s) if row.oldest_s else "-"),
)
SUMMED = ("ready", "running", "delayed", "dead", "put/s", "done/s", "retry/s")
BY_JOBS, BY_NAME = "jobs", "queue"
ORDERS = (BY_JOBS, BY_NAME, *(figure.title for figure in FIGURES))     # s goes through them
SORTS: dict[str, Callable[[QueueLine], float]] = {BY_JOBS: lambda row: row.jobs,
                                            **{figure.title: figure.value for figure in FIGURES}}


class TopScreen(App[None]):
    """Asks for samples in a thread of its own and shows them. Everything is read; nothing is changed.

    `take` takes a sample, or raises an exception whose text is shown; then it is retried.
    """

    class Taken(Message):
        """A sample from the thread, or the reason why there is none."""

        def __init__(self, answer: Sample | str) -> None:
            super().__init__()
            self.answer = answer

    TITLE = "pqctl top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head, #sums, #remarks { height: auto; padding: 0 1; }
    #remarks { color: $warning; }
    #nodes, #workers { height: auto; max-height: 8; margin-top: 1; }
    #queues { height: 1fr; margin-top: 1; }
    #filter { display: none; height: 3; }
    """
    BINDINGS: ClassVar[list[Any]] = [
        Binding("q", "quit", "quit"), Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("slash", "filter", "filter"), Binding("escape", "unfilter", "all", show=False),
        Binding("s", "sort", "sort by"), Binding("r", "reverse", "reverse"),
        Binding("plus", "slower", "slower"), Binding("minus", "faster", "faster"),
        Binding("space", "hold", "hold"), Binding("w", "toggle('workers')", "workers"),
        Binding("n", "toggle('nodes')", "nodes"),
    ]

    def __init__(self, take: Callable[[], Sample], interval: float, prefix: str = "") -> None:
        super().__init__()
        self._take, self._interval, self._prefix = take, interval, prefix
        self._order, self._reverse, self._filter, self._held = BY_JOBS, False, "", False
        self._sample: Sample | None = None
        self._hidden: set[str] = set()      # tables
        self._due = threading.Event()       # another sample is wanted at once
        self._over = False

    def compose(self) -> ComposeResult:
        yield Static("asking the cluster ..", id="head", markup=False)
        yield Static("", id="sums", markup=False)
        yield Static("", id="remarks", markup=False)
        for name in ("nodes", "workers", "queues"):
            yield DataTable(id=name, cursor_type="row" if name == "queues" else "none", zebra_stripes=False)
        yield Input(placeholder="queues whose names begin with ..", id="filter")
        yield Footer()

    def on_mount(self) -> None:
        """Create the columns, and start taking samples."""
        for name, titles in (("nodes", ("node", "role", "client", "ping", "term", "applied", "lag", "version")),
                             ("workers", ("pool of workers", "address", "busy", "slots", "last heartbeat", "state"))):
            for title in titles:
                self._table(name).add_column(title, key=title)
        for title in ("queue", *(figure.title for figure in FIGURES)):
            self._table("queues").add_column(self._titled(title), key=title)
        self._table("queues").focus()
        threading.Thread(target=self._ask, daemon=True).start()      # its last question may outlive the screen

    def on_unmount(self) -> None:
        self._over = True
        self._due.set()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the column that was clicked; in reverse if it is the current one."""
        if event.data_table.id == "queues":
            self._sort_by(str(event.column_key.value))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the filter is typed."""
        self._filter = event.value
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the table, and keep the filter."""
        self._table("queues").focus()
        event.input.display = bool(event.value)

    def action_filter(self) -> None:
        self.query_one("#filter", Input).display = True
        self.query_one("#filter", Input).focus()

    def action_unfilter(self) -> None:
        field = self.query_one("#filter", Input)
        field.value, field.display = "", False
        self._table("queues").focus()

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._order, self._reverse = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)], False
        self._show()

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self._reverse = not self._reverse
        self._show()

    def action_slower(self) -> None:
        self._interval = next((one for one in INTERVALS_S if one > self._interval), self._interval)
        self._show()

    def action_faster(self) -> None:
        self._interval = next((one for one in reversed(INTERVALS_S) if one < self._interval), self._interval)
        self._due.set()
        self._show()

    def action_hold(self) -> None:
        """Freeze the display, or continue."""
        self._held = not self._held
        self._due.set()
        self._show()

    def action_toggle(self, name: str) -> None:
        """Show a table, or hide it."""
        self._hidden ^= {name}
        self._show()

    def _table(self, name: str) -> DataTable[Text]:
        found: DataTable[Text] = self.query_one(f"#{name}", DataTable)
        return found

    def _sort_by(self, title: str) -> None:
        self._order, self._reverse = title, title == self._order and not self._reverse
        self._show()

    def _ask(self) -> None:
        """Take samples, in a thread, until the screen is closed."""
        while not self._over:
            answer: Sample | str
            try:
                answer = self._take()
            except Exception as error:          # whatever it is: a screen that goes on says more than a dead one
                answer = f"{error or type(error).__name__}"
            with suppress(RuntimeError):        # the screen is closed
                self.post_message(self.Taken(answer))
            self._due.wait(self._interval)
            self._due.clear()

    def on_top_screen_taken(self, event: Taken) -> None:
        """Show the new sample; a failure leaves the tables as they were."""
        if self._held:
            return
        with suppress(NoMatches):               # the screen is closing: its tables are gone
            if isinstance(event.answer, str):
                self._write("head", one_line(event.answer), "bold red")
            else:
                self._sample = event.answer
                self._show()

    def _show(self) -> None:
        """Show the last sample, in the current order."""
        if (sample := self._sample) is None:
            return
        rows = [row for row in sample.rows or () if row.name.startswith(self._filter)]
        self._write("head", headline(sample.health, sample.part), HEAD_STYLES[exit_code(sample.health, sample.part)])
        self._write("sums", self._sums(rows))
        self._write("remarks", "\n".join(map(one_line, sample.remarks)))
        self.query_one("#remarks").display = bool(sample.remarks)
        self._fill("nodes", [
            (node.name, node.role, node.client or "-",
             f"{sample.pings[node.client] * 1000:.1f} ms" if node.client in sample.pings else "-",
             *("-" if value is None else f"{value}" for value in (node.term, node.applied, node.lag, node.version)))
            for node in sample.health.nodes
        ], [STYLES[node.role] for node in sample.health.nodes])
        self._fill("workers", [
            (one.name, one.address or "-", f"{one.busy:,}", f"{one.slots:,}", f"{lasting(one.age)} ago",
             WORKER_STATES.get(one.state, one.state))
            for one in sample.workers or ()
        ])
        self._fill_queues(self._sorted(rows)[:ROWS_MAX])

    def _sums(self, rows: list[QueueLine]) -> str:
        """A line with the totals of the queues shown, and the order and filter in use."""
        prefix = self._filter or self._prefix
        below = f" whose {'name begins' if len(rows) == 1 else 'names begin'} with {one_line(prefix)}" if prefix else ""
        sums = (f"{sum(map(figure.value, rows)):,.{figure.digits}f} {figure.title}" for figure in FIGURES
                if figure.title in SUMMED)
        return (
            f"{counted(len(rows), 'queue')}{below}: {', '.join(sums)}\n"
            f"by {self._order}{' reversed' if self._reverse else ''}, "
            f"{f'the first {ROWS_MAX}, ' if len(rows) > ROWS_MAX else ''}"
            f"{'held: space goes on' if self._held else f'every {self._interval:g} s'}"
        )

    def _sorted(self, rows: list[QueueLine]) -> list[QueueLine]:
        """Sort names in ascending and figures in descending order, equal ones by name."""
        rows = sorted(rows, key=lambda row: row.name, reverse=self._order == BY_NAME and self._reverse)
        if self._order != BY_NAME:
            rows.sort(key=SORTS[self._order], reverse=not self._reverse)
        return rows

    def _titled(self, title: str) -> Text:
        return Text(title, justify="left" if title == BY_NAME else "right")

    def _fill_queues(self, rows: list[QueueLine]) -> None:
        table = self._table("queues")
        chosen, top = table.cursor_row, table.scroll_y
        table.clear()
        for row in rows:
            table.add_row(Text(one_line(row.name)), *(
                Text(figure.written(row), justify="right", style=figure.style if figure.value(row) else "dim")
                for figure in FIGURES
            ))
        table.move_cursor(row=min(chosen, max(len(rows) - 1, 0)), animate=False, scroll=False)
        table.scroll_to(y=top, animate=False)

    def _fill(self, name: str, rows: Iterable[tuple[str, ...]], styles: Iterable[str] = ()) -> None:
        """Fill a small table, which is shown only if it has rows and is not hidden."""
        table = self._table(name)
        table.clear()
        colours = iter(styles)
        for row in rows:
            colour = next(colours, "")
            table.add_row(*(Text(one_line(cell), style=colour) for cell in row))
        table.display = bool(table.row_count) and name not in self._hidden

    def _write(self, name: str, text: str, style: str = "") -> None:
        self.query_one(f"#{name}", Static).update(Text(text, style=style))
