"""`pqctl snapshot ..`: the whole state into a file, and back."""

from __future__ import annotations

import click

from pqctl.invocation import Call, command, files, group
from pqctl.output import exit_codes


@group("snapshot")
def snapshot() -> None:
    """The whole state, out and in."""


@command(snapshot, timeout=600.0, epilog=exit_codes.epilog(unknown=""))
@click.argument("file", shell_complete=files)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("--node", metavar="NAME", help="Ask this node, which may be a moment behind, instead of the leader. "
                                             "The way when no majority is left.")
def save(call: Call, file: str, force: bool, node: str | None) -> int:
    """Save all queues with all jobs into FILE, as they are at one moment.

    FILE appears when it is complete and on disk. It is held in memory on the way.
    """
    from pqctl.actions import snapshots

    return snapshots.save(call, file, force, node)


@command(snapshot, timeout=600.0)
@click.argument("file", shell_complete=files)
@click.option("--yes", is_flag=True, help="Do not ask.")
def restore(call: Call, file: str, yes: bool) -> int:
    """Replace everything in the cluster by what was saved in FILE.

    All jobs there are now are gone then. The members of the cluster stay. What is no snapshot changes nothing.
    """
    from pqctl.actions import snapshots

    return snapshots.restore(call, file, yes)
