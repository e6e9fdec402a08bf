"""`pqctl item ..`: items, the jobs that belong together."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, command, group
from sockpqd.pqctl.output import exit_codes


@group("item")
def item() -> None:
    """The items: jobs that belong together, in any queues."""


@command(item, "list", timeout=10.0, epilog=exit_codes.READING)
@click.argument("prefix", default="")
def list_(call: Call, prefix: str) -> int:
    """Show all items, or those whose names begin with PREFIX.

    An item exists while it has a job, dead and buried ones included.
    """
    from sockpqd.pqctl.actions import items

    return items.show_list(call, prefix)


@command(item, timeout=10.0, epilog=exit_codes.READING)
@click.argument("name")
def show(call: Call, name: str) -> int:
    """Count the jobs of item NAME in each state, those that are done, and those that wait for it.

    `pqctl job find --item NAME` shows the jobs themselves.
    """
    from sockpqd.pqctl.actions import items

    return items.show(call, name)


@command(item, timeout=60.0)
@click.argument("name")
def retry(call: Call, name: str) -> int:
    """Put the dead and buried jobs of item NAME back, each to the queue in which it was given up.

    Their attempts start over. If interrupted, run it again.
    """
    from sockpqd.pqctl.actions import items

    return items.retry(call, name)
