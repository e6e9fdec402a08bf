"""`pqctl doctor`: finds problems and suggests remedies."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, command, directories
from sockpqd.pqctl.output import exit_codes


@command(None, "doctor", timeout=2.0, epilog=exit_codes.epilog(
    done="all is well", refused="at least one WARN", unreached="at least one FAIL", unknown=""))
@click.option("--data-dir", metavar="DIR", shell_complete=directories,
              help="The data directory of the node on this machine: measures its disk and checks its process. A "
                   "small file is written there for a moment.")
def doctor(call: Call, data_dir: str | None) -> int:
    """Check the cluster, and with --data-dir this machine; one line per check.

    Run it on each node with --data-dir, as the node's user or as root.
    """
    from sockpqd.pqctl.doctor import run

    return run.show(call, data_dir)
