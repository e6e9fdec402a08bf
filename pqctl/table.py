"""A cluster's health as a table on the terminal."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table
from sockpq import NodeStatus

from pqctl.cluster import DEGRADED, HEALTHY, NOT_SERVING, Health
from pqctl.report import headline

COLUMNS = ("node", "role", "id", "client", "online", "term", "applied", "lag", "version")
RIGHT = ("id", "term", "applied", "lag")
STYLES = {"LEADER": "bold green", "FOLLOWER": "green", "CANDIDATE": "yellow", "LEARNER": "cyan", "DOWN": "bold red"}
HEAD_STYLES = {HEALTHY: "bold green", DEGRADED: "bold yellow", NOT_SERVING: "bold red"}
WIDTH_WITHOUT_TERMINAL = 120      # a table that goes into a file or a pipe is not folded


def print_table(health: Health) -> None:
    """The headline, a line per node, then what does not fit in."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)
    console.print(headline(health), style=HEAD_STYLES[health.exit_code])
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in RIGHT else "left", no_wrap=True)
    for node in health.nodes:
        table.add_row(*_row(node), style=STYLES[node.role])
    console.print(table)
    for note in health.notes:
        console.print(f"note: {note}", style="yellow", markup=False)


def _row(node: NodeStatus) -> tuple[str, ...]:
    online = "-" if node.online is None else "yes" if node.online else "no"
    figures = (node.term, node.applied, node.lag, node.version)
    known = ("-" if value is None else str(value) for value in figures)
    return (node.name, node.role, "-" if node.id is None else str(node.id), node.client or "-", online, *known)
