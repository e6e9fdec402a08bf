"""`pqctl group ..`: groups of jobs as tenants."""

from __future__ import annotations

import click

from sockpqd.pqctl import invocation
from sockpqd.pqctl.invocation import Call, Seconds, command, given
from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.over_all import each


@invocation.group("group")
def group() -> None:
    """The groups of jobs: limits, rates and pauses of tenants."""


@command(group, "list", timeout=10.0, epilog=exit_codes.READING, over_all=each)
@click.argument("prefix", default="")
def list_(call: Call, prefix: str) -> int:
    """Show the groups that have settings or jobs, or those whose names begin with PREFIX."""
    from sockpqd.pqctl.actions import groups

    return groups.show_list(call, prefix)


@command(group, timeout=10.0)
@click.argument("name")
def show(call: Call, name: str) -> int:
    """Show the settings of group NAME, its jobs, and what holds them back."""
    from sockpqd.pqctl.actions import groups

    return groups.show(call, name)


@command(group, timeout=10.0)
@click.argument("name")
@click.option("--limit", type=click.IntRange(0), metavar="N",
              help="How many of its jobs run at a time, in all queues together.")
@click.option("--rate", type=click.IntRange(0), metavar="N",
              help="How many are handed out in --per seconds at most; 0 ends that.")
@click.option("--per", type=Seconds(0), metavar="SECONDS", help="See --rate.")
@click.option("--weight", type=click.IntRange(1), metavar="N",
              help="How many times the share of other groups it gets, where fair shares choose.")
def config(
    call: Call, name: str, limit: int | None, rate: int | None, per: float | None, weight: int | None,
) -> int:
    """Change settings of group NAME, and show all of them. 0 removes a limit.

    They hold in queues with --sched `fair` or `groups`, and for jobs taken by `fair`.
    """
    from sockpqd.pqctl.actions import groups

    return groups.config(call, name, given(limit=limit, rate=rate, per=per, weight=weight))


@command(group, timeout=10.0)
@click.argument("name")
@click.option("--for", "seconds", type=Seconds(0, min_open=True), metavar="SECONDS", help="For this long only.")
def pause(call: Call, name: str, seconds: float | None) -> int:
    """Hand out no more jobs of group NAME until `resume`. Running ones continue."""
    from sockpqd.pqctl.actions import groups

    return groups.pause(call, name, seconds)


@command(group, timeout=10.0)
@click.argument("name")
def resume(call: Call, name: str) -> int:
    """Resume group NAME, which is paused or asleep."""
    from sockpqd.pqctl.actions import groups

    return groups.resume(call, name)


@command(group, timeout=10.0)
@click.argument("name")
def delete(call: Call, name: str) -> int:
    """Remove the settings of group NAME, and its pause. Its jobs stay."""
    from sockpqd.pqctl.actions import groups

    return groups.delete(call, name)
