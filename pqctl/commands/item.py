"""`pqctl item ..`: items, the jobs that belong together."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, Seconds, command, group
from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.over_all import each


@group("item")
def item() -> None:
    """The items: jobs that belong together, in any queues."""


@command(item, "list", timeout=10.0, epilog=exit_codes.READING, over_all=each)
@click.argument("prefix", default="")
@click.option("--held", is_flag=True, help="Only items that are held.")
def list_(call: Call, prefix: str, held: bool) -> int:
    """Show all items, or those whose names begin with PREFIX.

    An item exists while it has a job, dead and buried ones included, or is held.
    """
    from sockpqd.pqctl.actions import items

    return items.show_list(call, prefix, held)


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
    """Put back the dead and buried jobs of item NAME, each into the queue in which it was given up.

    Their attempts start over. If interrupted, run it again.
    """
    from sockpqd.pqctl.actions import items

    return items.retry(call, name)


@command(item, timeout=10.0)
@click.argument("name", required=False)
@click.option("--expire", type=Seconds(1, 86400), metavar="SECONDS",
              help="How long it holds at most. [default: 600]")
@click.option("--then", type=click.Choice(["cancel", "release"]),
              help="What happens to the item then; needs --expire. [default: cancel]")
def hold(call: Call, name: str | None, expire: float | None, then: str | None) -> int:
    """Hold item NAME, or a new one, so that it does not end before `pqctl item release`.

    Meanwhile jobs can be put into it one by one. Another hold sets both options again.
    """
    from sockpqd.pqctl.actions import items

    return items.hold(call, name, expire, then)


@command(item, timeout=10.0)
@click.argument("name")
def release(call: Call, name: str) -> int:
    """End the hold of item NAME."""
    from sockpqd.pqctl.actions import items

    return items.release(call, name)


@command(item, timeout=60.0)
@click.argument("name")
@click.option("--reason", metavar="WORD", help="Why, for records and logs.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def cancel(call: Call, name: str, reason: str | None, yes: bool) -> int:
    """Remove the jobs of item NAME, and what waits for it to be done.

    No more of them are handed out. The workers of running ones are notified, and may end them in any way.
    """
    from sockpqd.pqctl.actions import items

    return items.cancel(call, name, reason, yes)
