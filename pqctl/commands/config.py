"""`pqctl config`: the settings of the cluster; `pqctl sched ..`: fair shares among groups of jobs."""

from __future__ import annotations

from itertools import pairwise

import click

from sockpqd.pqctl.invocation import Call, Seconds, command, given, group
from sockpqd.pqctl.output import exit_codes

POLICIES = ["random", "weight", "rr", "order", "sorted", "priority", "oldest", "fair"]
LEVELS_MAX = 16
SWITCH = click.Choice(["on", "off"])


@command(None, "config", timeout=10.0)
@click.option("--expire-default", type=click.Choice(["later", "done"]),
              help="What happens to a job when its lease ends, by default.")
@click.option("--autocreate", type=SWITCH, help="Whether a PUT creates a queue that does not exist.")
@click.option("--policy", type=click.Choice(POLICIES), help="How a GET chooses among several queues.")
@click.option("--grace", type=Seconds(0), metavar="SECONDS", help="How much to extend leases after a failover.")
@click.option("--session-ttl", type=Seconds(1, 86400), metavar="SECONDS", help="The default TTL of sessions.")
@click.option("--fast-empty", type=SWITCH, help="Answer a GET that finds nothing without asking the other nodes.")
@click.option("--retained-bytes", type=click.IntRange(0), metavar="N",
              help="How many bytes of data and results of ended jobs all queues keep together.")
def config(
    call: Call, expire_default: str | None, autocreate: str | None, policy: str | None, grace: float | None,
    session_ttl: float | None, fast_empty: str | None, retained_bytes: int | None,
) -> int:
    """Change settings of the cluster, and show all of them."""
    from sockpqd.pqctl.actions.queues import settings

    return settings.cluster_config(call, given(
        expire_default=expire_default, autocreate=_on(autocreate), policy=policy, grace=grace,
        session_ttl=session_ttl, fast_empty=_on(fast_empty), retained_bytes=retained_bytes,
    ))


def _on(word: str | None) -> bool | None:
    return None if word is None else word == "on"


@group("sched")
def sched() -> None:
    """Fair shares among groups of jobs."""


@command(sched, timeout=10.0, epilog=exit_codes.READING)
def show(call: Call) -> int:
    """Show the levels: the scheduled time of each, the groups that wait in it, and how often it was chosen.

    The scheduled time decides which level is next. It is not the running time: when a level is offered again, after
    none of its groups was, it jumps to the level's share of the others.
    """
    from sockpqd.pqctl.actions.queues import fair_shares

    return fair_shares.show(call)


@command(sched, "group", timeout=10.0, epilog=exit_codes.READING)
@click.argument("name")
def group_(call: Call, name: str) -> int:
    """Show the time that group NAME has used so far, and its jobs."""
    from sockpqd.pqctl.actions.queues import fair_shares

    return fair_shares.show_group(call, name)


@command(sched, "config", timeout=10.0)
@click.option("--level", "levels", type=click.IntRange(0), multiple=True, metavar="SECONDS",
              help="Used time at which a level begins; give it 2 to 16 times, from 0 upwards.")
@click.option("--cap", type=Seconds(1, 86400), metavar="SECONDS",
              help="The most that one hand-out is charged to levels.")
@click.option("--multiplier", type=click.IntRange(1, 100), metavar="N",
              help="How many times the share of the next level a level has.")
@click.option("--group-keep", type=Seconds(0, 86400), metavar="SECONDS",
              help="For how long a group without jobs is remembered.")
def configure(
    call: Call, levels: tuple[int, ...], cap: float | None, multiplier: int | None, group_keep: float | None,
) -> int:
    """Change how shares are computed, and show all settings."""
    if levels and (levels[0] != 0 or not 2 <= len(levels) <= LEVELS_MAX or any(a >= b for a, b in pairwise(levels))):
        raise click.UsageError(f"give --level 2 to {LEVELS_MAX} times, from 0 upwards, as in --level 0 --level 5")

    from sockpqd.pqctl.actions.queues import fair_shares

    return fair_shares.config(call, given(
        levels=levels or None, cap=cap, multiplier=multiplier, group_keep=group_keep,
    ))
