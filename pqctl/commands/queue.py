"""`pqctl queue ..`: how much there is in the queues."""

from __future__ import annotations

import click

from pqctl import exits
from pqctl.call import Call, command, group


@group("queue")
def queue() -> None:
    """The queues."""


@command(queue, "list", timeout=10.0, epilog=exits.READING)
@click.argument("names", nargs=-1, metavar="[NAME]...")
def list_(call: Call, names: tuple[str, ...]) -> int:
    """Show the queues that have running jobs, and those called NAME.

    The servers tell how many queues there are and count any queue by its name, but do not list the names. They do name
    the queues of running jobs: those are found, and the last line says how many others there are. The counts are taken
    one after the other while the cluster works.
    """
    from pqctl import queues

    return queues.show_list(call, names)


@command(queue, timeout=10.0, epilog=exits.READING)
@click.argument("name", required=False)
def stat(call: Call, name: str | None) -> int:
    """Count the jobs of queue NAME, or of all queues together.

    A queue that does not exist is empty.
    """
    from pqctl import queues

    return queues.show_stat(call, name)
