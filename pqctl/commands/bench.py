"""`pqctl bench`: measures the speed of a cluster as seen from here."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, Seconds, command
from sockpqd.pqctl.output import exit_codes


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
