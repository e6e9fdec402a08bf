"""`--progress`: a live view of the pool on a terminal."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from time import monotonic
from typing import Any

from sockpq.errors import BadArguments
from sockpq.worker.pool.pool import Pool

REFRESH_S = 0.25
ROWS_MAX = 20
MISSING = "--progress needs rich, of the extra sockpq[worker]: pip install rich"


def check() -> None:
    """Raise BadArguments if the library is not installed."""
    try:
        import rich
    except ImportError as error:
        raise BadArguments(MISSING) from error
    assert rich


async def show(pool: Pool, handler: logging.StreamHandler[Any]) -> None:
    """Show the view until this task is cancelled; log lines are printed above it."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    above = _Above(console)
    above.setFormatter(handler.formatter)
    root = logging.getLogger()
    root.removeHandler(handler)
    root.addHandler(above)
    begun = monotonic()
    try:
        # Forked children inherit all of this, which must not interfere with their output.
        with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
            while True:
                live.update(picture(pool, monotonic() - begun), refresh=True)
                await asyncio.sleep(REFRESH_S)
    finally:
        root.removeHandler(above)
        root.addHandler(handler)


def picture(pool: Pool, seconds: float) -> Any:
    """Return the current view, `seconds` after the start."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    most, least = pool.bounds
    counters = pool.counters
    outcomes: dict[str, int] = {}
    for (_, outcome), count in counters.jobs.items():
        outcomes[outcome] = outcomes.get(outcome, 0) + count
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items())) or "no job yet"
    bounds = f"{most}" if most == least else f"{least} to {most}"
    title = (
        f"{pool.settings.name}  {pool.state}  {pool.busy} of {pool.size} children busy ({bounds}), {pool.held} held  "
        f"{counts}  {counters.total / max(seconds, 0.001):,.1f} jobs/s"
    )
    view = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("child", "queue", "job", "key", "attempt", "running for"):
        view.add_column(column, justify="right" if column in ("child", "job", "attempt", "running for") else "left")
    running = sorted(pool.running(), key=lambda one: -one[2])
    for child, job, since in running[:ROWS_MAX]:
        key, attempt = (job.meta.key or "", str(job.meta.attempt)) if job.meta else ("", "")
        view.add_row(*map(Text, (str(child), job.queue, str(job.id), key, attempt, f"{since:.1f} s")))
    if len(running) > ROWS_MAX:
        view.add_row(*map(Text, ("", f"and {len(running) - ROWS_MAX} more", "", "", "", "")))
    return Group(Text(title), view)


class _Above(logging.Handler):
    """Prints log lines above the live view; in a forked child, as if there were no view."""

    def __init__(self, console: Any) -> None:
        super().__init__()
        self._console = console
        self._process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        if os.getpid() != self._process:
            print(line, file=sys.stderr)
            return
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
