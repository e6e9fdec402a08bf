"""`pqctl doctor`: finds problems and suggests remedies; `pqctl bench`: measures a cluster as seen from here."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, Seconds, command, directories
from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.over_all import each


@command(None, "doctor", timeout=2.0, epilog=exit_codes.epilog(
    done="all is well", refused="at least one WARN", unreached="at least one FAIL", unknown=""),
         over_all=each, of_one=["data_dir"])
@click.option("--data-dir", metavar="DIR", shell_complete=directories,
              help="The data directory of the node on this machine: measures its disk and checks its process. A "
                   "small file is written there for a moment.")
def doctor(call: Call, data_dir: str | None) -> int:
    """Check the cluster, and with --data-dir this machine; one line per check.

    Run it on each node with --data-dir, as the node's user or as root.
    """
    from sockpqd.pqctl.doctor import run

    return run.show(call, data_dir)


@command(None, "bench", timeout=10.0, epilog=exit_codes.epilog(
    refused="some calls failed, or jobs were left behind", unreached="no server serves, or none answers", unknown=""))
@click.option("--seconds", type=Seconds(0.1, 600), default=3.0, show_default=True, metavar="SECONDS",
              help="How long each of the three parts runs.")
@click.option("--connections", type=click.IntRange(1, 256), default=8, show_default=True, metavar="N",
              help="Threads, each with one call at a time.")
@click.option("--size", type=click.IntRange(0, 8 << 20), default=100, show_default=True, metavar="BYTES",
              help="Length of a job's body.")
def bench(call: Call, seconds: float, connections: int, size: int) -> int:
    """Measure a running cluster: put, get + done, and both together.

    It uses a queue of its own with a random name, which is drained afterwards. Other work on the cluster affects the
    figures, and is slowed down. This client is Python and is measured too: beyond a few thousand calls a second it is
    the bottleneck, so that the rates are what one such process gets, not what the cluster can do.
    """
    from sockpqd.pqctl.actions.benchmark import load

    return load.show(call, seconds, connections, size)
