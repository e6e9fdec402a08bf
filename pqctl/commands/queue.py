"""`pqctl queue ..`: how much there is in the queues."""

from __future__ import annotations

import click

from pqctl import exits
from pqctl.call import Call, command, group


@group("queue")
def queue() -> None:
    """The queues."""


@command(queue, "list", timeout=10.0, epilog=exits.READING)
@click.argument("prefix", default="")
def list_(call: Call, prefix: str) -> int:
    """Show all queues, or those whose names begin with PREFIX.

    A queue exists while it has a job, waiting or running.
    """
    from pqctl import queues

    return queues.show_list(call, prefix)


@command(queue, timeout=10.0, epilog=exits.READING)
@click.argument("name", required=False)
def stat(call: Call, name: str | None) -> int:
    """Count the jobs of queue NAME, or of all queues together.

    A queue that does not exist is empty.
    """
    from pqctl import queues

    return queues.show_stat(call, name)
