"""`pqctl top`: the queues, live."""

from __future__ import annotations

import click

from pqctl.invocation import Call, command
from pqctl.output import exit_codes


@command(None, "top", timeout=10.0, epilog=exit_codes.READING)
@click.argument("prefix", default="")
@click.option("--count", type=click.IntRange(1), metavar="N", help="End after N pictures.")
def top(call: Call, prefix: str, count: int | None) -> int:
    """Show all queues, or those whose names begin with PREFIX: their jobs, and how many come and go in a second.

    Once a second; on a terminal in place, until q is pressed. With --json one object per line.
    """
    from pqctl.live import top as view

    return view.show(call, prefix, count)
