"""`pqctl map ..`: several clusters that programs use as one."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, Seconds, command, group
from sockpqd.pqctl.output import exit_codes


def word(_: click.Context, __: click.Parameter, value: str) -> str:
    """Check a name or the beginning of one, so that it stays within its line of the map; raises click.BadParameter."""
    if value.split() != [value] or not value.isprintable():
        raise click.BadParameter(f"{value!r} is not a name, or the beginning of one.")
    return value


WAIT = click.option("--wait", type=Seconds(0), metavar="SECONDS", help="Wait this long at most. [default: for ever]")


@group("map")
def map() -> None:  # noqa: A001 (the name of the command)
    """Several clusters used as one: which of them owns a name.

    --servers names servers of any of them; the others are found by the map. A command that changes the map can be
    interrupted at any point, and run again.
    """


@command(map, timeout=10.0, epilog=exit_codes.READING)
@click.option("--text", "as_text", is_flag=True, help="The lines as servers have them.")
def show(call: Call, as_text: bool) -> int:
    """Show the clusters of the map, and the names that each owns."""
    from sockpqd.pqctl.actions.maps import show

    return show.show(call, as_text)


@command(map, timeout=10.0)
@click.argument("name", callback=word)
def init(call: Call, name: str) -> int:
    """Make a map, in which this cluster is home under NAME: the owner of every name without a rule.

    Nothing changes for programs.
    """
    from sockpqd.pqctl.actions.maps import change

    return change.init(call, name)


@command(map, timeout=10.0)
@click.argument("name", callback=word)
@click.argument("addresses", metavar="HOST:PORT,...")
def add(call: Call, name: str, addresses: str) -> int:
    """Add the cluster at these servers under NAME, or correct the servers of one that the map has.

    It owns no name at first. What is put there by programs without the map is refused from then on.
    """
    from sockpqd.pqctl.actions.maps import change

    return change.add(call, name, addresses)


@command(map, timeout=10.0)
@click.argument("name", callback=word)
@click.option("--it-is-gone", "gone", is_flag=True,
              help="It is lost with its jobs, and cannot be asked: its names go to the owner of a shorter prefix, or "
                   "home; if it is home, the next cluster becomes home.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(call: Call, name: str, gone: bool, yes: bool) -> int:
    """Remove a cluster that owns no name and has no job."""
    from sockpqd.pqctl.actions.maps import change

    return change.remove(call, name, gone, yes)


@command(map, timeout=10.0)
@click.argument("prefix", callback=word)
@click.argument("cluster", callback=word)
def assign(call: Call, prefix: str, cluster: str) -> int:
    """Give the names that begin with PREFIX to CLUSTER at once.

    Refused while another cluster has jobs with such names: use `pqctl map move` instead.
    """
    from sockpqd.pqctl.actions.maps import moves

    return moves.assign(call, prefix, cluster)


@command(map, timeout=10.0)
@click.argument("prefix", callback=word)
@click.argument("cluster", callback=word)
@WAIT
def move(call: Call, prefix: str, cluster: str, wait: float | None) -> int:
    """Give the names that begin with PREFIX to CLUSTER, and wait until their jobs elsewhere have ended.

    New jobs go to CLUSTER at once; workers continue with the old ones where they are, and take them first. No job is
    transferred. Jobs that no worker ends are listed, with the command that ends them.
    """
    from sockpqd.pqctl.actions.maps import moves

    return moves.move(call, prefix, cluster, wait)


@command(map, timeout=10.0)
@click.argument("queue", callback=word)
@click.option("--off", is_flag=True, help="Only its owner accepts it again; waits until the others have worked it off.")
@WAIT
def spread(call: Call, queue: str, off: bool, wait: float | None) -> int:
    """Have every cluster accept QUEUE: its jobs are spread over all.

    Order, priorities and keys hold within each cluster.
    """
    from sockpqd.pqctl.actions.maps import moves

    return moves.spread(call, queue, not off, wait)


@command(map, timeout=10.0, epilog=exit_codes.epilog(
    done="all clusters are as the map says", refused="they are not", unreached="home does not answer", unknown=""))
def check(call: Call) -> int:
    """Compare all clusters with the map: each must answer, have its newest version, and no jobs that others own."""
    from sockpqd.pqctl.actions.maps import show

    return show.check(call)
