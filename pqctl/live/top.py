"""`pqctl top`: the cluster and its queues, refreshed; on a terminal as a screen that takes keys."""

from __future__ import annotations

import json
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sockpq import SockpqError

from sockpqd.pqctl.connect import cluster_of, reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.live.sample import AGES_MAX, QueueLine, Sampler
from sockpqd.pqctl.output.exit_codes import DONE, USAGE_ERROR, Failure

if TYPE_CHECKING:
    from rich.table import Table

TITLES = ("ready", "delayed", "running", "dead", "buried", "put/s", "take/s", "done/s", "retry/s")


def show(call: Call, prefix: str, interval: float, count: int | None) -> int:
    """Show the queues until interrupted, on a terminal until q is pressed; or print them `count` times."""
    if call.as_json or count is not None or not (sys.stdout.isatty() and sys.stdin.isatty()):
        return _print(call, prefix, interval, count)
    if find_spec("textual") is None:
        raise Failure(USAGE_ERROR, "the screen of `pqctl top` needs textual, of the extra sockpqd[top]: "
                                   f"{sys.executable} -m pip install textual (--count 1 prints without it)")
    from sockpqd.pqctl.live.screen import TopScreen

    with cluster_of(call) as (client, _):
        TopScreen(Sampler(call, client, prefix).take, interval, prefix).run()
    return DONE


def _print(call: Call, prefix: str, interval: float, count: int | None) -> int:
    with reading(call) as (client, server):
        sampler = Sampler(call, client, prefix)
        shown = 0
        while shown != count:
            time.sleep(interval)
            try:
                rows = sampler.rows(server, AGES_MAX)
            except SockpqError:
                rows = sampler.rows(None, AGES_MAX)         # of any server, as that one is gone
            if call.as_json:
                call.print(json.dumps({"queues": [as_fields(row) for row in rows]}))
            else:
                call.print_rich(picture(rows))
                call.print("")
            shown += 1
    return DONE


def as_fields(row: QueueLine) -> dict[str, object]:
    """The JSON object of a queue."""
    return {
        "name": row.name, "ready": row.ready, "delayed": row.delayed, "running": row.running, "dead": row.dead,
        "buried": row.buried, "put_per_s": round(row.put, 1), "take_per_s": round(row.take, 1),
        "done_per_s": round(row.done, 1), "retry_per_s": round(row.retry, 1), "oldest_s": row.oldest_s,
    }


def picture(rows: list[QueueLine]) -> Table:
    """The table of the queues, with their rates."""
    from sockpqd.pqctl.output.table import Column, table

    columns = [Column("queue", folds=True), *(Column(title, figures=True) for title in TITLES)]
    return table(columns, (
        ((row.name, f"{row.ready:,}", f"{row.delayed:,}", f"{row.running:,}", f"{row.dead:,}", f"{row.buried:,}",
          f"{row.put:,.1f}", f"{row.take:,.1f}", f"{row.done:,.1f}", f"{row.retry:,.1f}"), "")
        for row in rows
    ))
