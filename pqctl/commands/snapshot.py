"""`pqctl snapshot ..`: saving the state to a file, and restoring it."""

from __future__ import annotations

import click

from pqctl.invocation import Call, command, files, group
from pqctl.output import exit_codes


@group("snapshot")
def snapshot() -> None:
    """Save and restore the whole state."""


@command(snapshot, timeout=600.0, epilog=exit_codes.epilog(unknown=""))
@click.argument("file", shell_complete=files)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("--node", metavar="NAME", help="Ask this node, which may be slightly behind, instead of the leader. "
                                             "For use when no majority is left.")
def save(call: Call, file: str, force: bool, node: str | None) -> int:
    """Save all queues with all jobs to FILE, as of one moment.

    FILE appears once it is complete and on disk. It is held in memory until then.
    """
    from pqctl.actions import snapshots

    return snapshots.save(call, file, force, node)


@command(snapshot, timeout=600.0)
@click.argument("file", shell_complete=files)
@click.option("--yes", is_flag=True, help="Do not ask.")
def restore(call: Call, file: str, yes: bool) -> int:
    """Replace everything in the cluster by the state saved in FILE.

    All current jobs are lost. The members of the cluster stay. A file that is not a snapshot changes nothing.
    """
    from pqctl.actions import snapshots

    return snapshots.restore(call, file, yes)
