"""`pqctl cluster status`: once, or repeatedly with --watch."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from sockpq import NodeStatus

from sockpqd.pqctl.health import DEGRADED, HEALTHY, NOT_SERVING, Health, look
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.replicas import RegionPart, part_of
from sockpqd.pqctl.report import as_json, exit_code, headline

if TYPE_CHECKING:
    from rich.console import Group

STYLES = {"LEADER": "bold green", "FOLLOWER": "green", "CANDIDATE": "yellow", "LEARNER": "cyan", "DOWN": "bold red",
          "FULL": "bold yellow"}
HEAD_STYLES = {HEALTHY: "bold green", DEGRADED: "bold yellow", NOT_SERVING: "bold red"}


def show(call: Call) -> int:
    """Print the status once; the exit code reports the health."""
    health, part = _look(call)
    if call.as_json:
        call.print(json.dumps(as_json(health, part), indent=2))
    else:
        call.print_rich(picture(health, part))
    return exit_code(health, part)


def watch(call: Call, interval: float) -> int:
    """Print the status until interrupted: in place on a terminal, otherwise one after another."""
    if call.as_json:
        while True:
            call.print(json.dumps(as_json(*_look(call))))
            time.sleep(interval)
    if not sys.stdout.isatty():
        while True:
            call.print_rich(picture(*_look(call)))
            call.print("")
            time.sleep(interval)

    from rich.live import Live

    from sockpqd.pqctl.output.table import console

    with Live(console=console(), auto_refresh=False) as live:
        while True:
            live.update(picture(*_look(call)), refresh=True)
            time.sleep(interval)


def _look(call: Call) -> tuple[Health, RegionPart | None]:
    health = look(call.servers, call.timeout, call.access)
    return health, part_of(health.named, call.timeout, call.access)


def picture(health: Health, part: RegionPart | None = None) -> Group:
    """Render the headline, a line per node, then notes."""
    from rich.console import Group  # loading rich takes longer than asking the servers
    from rich.text import Text

    from sockpqd.pqctl.output.table import Column, table

    columns = (
        Column("node", folds=True), Column("role"), Column("id", figures=True), Column("client", folds=True),
        Column("online"), Column("term", figures=True), Column("applied", figures=True), Column("lag", figures=True),
        Column("version"), Column("level"),
    )
    return Group(
        Text(headline(health, part), HEAD_STYLES[exit_code(health, part)]),
        table(columns, ((_row(node), STYLES[node.role]) for node in health.nodes)),
        Text(f"cluster {health.cluster or '-'}"),
        *(Text(f"note: {note}", "yellow") for note in health.notes),
    )


def _row(node: NodeStatus) -> tuple[str, ...]:
    online = "-" if node.online is None else "yes" if node.online else "no"
    figures = (node.term, node.applied, node.lag, node.version)
    known = ("-" if value is None else str(value) for value in figures)
    server_id = "-" if node.id is None else str(node.id)
    return (node.name, node.role, server_id, node.client or "-", online, *known, _level(node))


def _level(node: NodeStatus) -> str:
    """Return the cluster's feature level on the node, and the node's own level if that is higher."""
    if node.cluster_level is None:
        return "-"
    return f"{node.cluster_level}" if node.level == node.cluster_level else f"{node.cluster_level} (knows {node.level})"
