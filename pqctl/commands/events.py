"""`pqctl events` and `top`: events and the state of the cluster, live."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, Seconds, command
from sockpqd.pqctl.output import exit_codes


@command(None, "events", timeout=10.0, epilog=exit_codes.epilog(
    done="no event came for as long as --wait says", refused="refused, e.g. by a server that does not tell events",
    unknown=""))
@click.option("--type", "types", multiple=True, metavar="TYPE",
              help="Only these, e.g. FINQ; may be given several times. [default: all but MSG]")
@click.option("--queue", "names", multiple=True, metavar="NAME",
              help="Only of this queue, item, pulse or channel; it may end in *, and be given several times.")
@click.option("--after", type=click.IntRange(0), metavar="SEQ", help="Begin behind the event of this number.")
@click.option("--wait", type=Seconds(0.05), metavar="SECONDS", help="End when no event comes for this long.")
def events(
    call: Call, types: tuple[str, ...], names: tuple[str, ...], after: int | None, wait: float | None,
) -> int:
    """Show events until interrupted; with --json one object per line.

    Any server sends them; if it dies another one continues. Gaps, where events may have been missed, are reported on
    standard error.
    """
    from sockpqd.pqctl.live import events as view

    return view.follow(call, types, names, after, wait)


@command(None, "top", timeout=10.0, epilog=exit_codes.READING)
@click.argument("prefix", default="")
@click.option("--interval", default=1.0, show_default=True, type=Seconds(0.1, 3600), metavar="SECONDS",
              help="The pause between two updates.")
@click.option("--count", type=click.IntRange(1), metavar="N", help="Print N updates, and end.")
def top(call: Call, prefix: str, interval: float, count: int | None) -> int:
    """Show all queues, or those whose names begin with PREFIX, as they are now.

    On a terminal it is a screen with the queues, the pools of workers, and the nodes with their latency, which needs
    the extra sockpqd[top]. Keys: s sorts by the next column (or click its title), r reverses, / filters, + and - change
    the interval, space freezes the picture, w and n hide workers and nodes, q leaves.

    Elsewhere and with --count the queues are printed, with --json one object per line.
    """
    from sockpqd.pqctl.live import top as view

    return view.show(call, prefix, interval, count)
