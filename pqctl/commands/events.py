"""`pqctl events`: what happens, as it happens."""

from __future__ import annotations

import click

from pqctl.invocation import Call, Seconds, command
from pqctl.output import exit_codes


@command(None, "events", timeout=10.0, epilog=exit_codes.epilog(
    done="no event came for as long as --wait says", refused="refused, e.g. by a server that does not tell events",
    unknown=""))
@click.option("--type", "types", multiple=True, metavar="TYPE",
              help="Only these, e.g. FINQ; may be given several times. [default: all but MSG]")
@click.option("--queue", "names", multiple=True, metavar="NAME",
              help="Only of this queue, item, pulse or channel; it may end in *, and be given several times.")
@click.option("--after", type=click.IntRange(0), metavar="SEQ", help="Begin behind the event of this number.")
@click.option("--wait", type=Seconds(0.05), metavar="SECONDS", help="End when no event comes for so long.")
def events(
    call: Call, types: tuple[str, ...], names: tuple[str, ...], after: int | None, wait: float | None,
) -> int:
    """Show events until interrupted; with --json one object per line.

    Any server tells them, and the next one goes on where one dies. What may have been missed is said on standard error.
    """
    from pqctl.live import events as view

    return view.follow(call, types, names, after, wait)
