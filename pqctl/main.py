"""The command `pqctl`: arguments in, exit code out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click
from sockpq import BadArguments

from pqctl import report
from pqctl.cluster import look

USAGE_ERROR = 64        # sysexits.h EX_USAGE; click's own 2 means "not serving" here
INTERRUPTED = 130

EPILOG = """\b
Exit codes: 0 healthy; 1 degraded but serving; 2 not serving; 64 wrong usage.
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.option(
    "--servers", envvar="SOCKPQ_SERVERS", metavar="HOST:PORT,...", show_envvar=True,
    help="Servers of the cluster; one that answers is enough, the others are found.",
)
@click.version_option(package_name="sockpqd", prog_name="pqctl")
@click.pass_context
def pqctl(context: click.Context, servers: str | None) -> None:
    """Look at a sockpqd cluster and steer it."""
    context.obj = servers


@pqctl.group()
def cluster() -> None:
    """The nodes and their roles."""


@cluster.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--timeout", default=0.6, show_default=True, type=click.FloatRange(0.05, 60), metavar="SECONDS",
              help="How long a server has for its answer. A server that needs longer is shown as DOWN.")
@click.pass_obj
def status(servers: str | None, as_json: bool, timeout: float) -> int:
    """Show every node, whether the cluster serves, and how many nodes it can lose.

    DOWN means that the node does not answer at the address clients dial.
    """
    health = look(_servers(servers), timeout)
    if as_json:
        print(json.dumps(report.as_json(health), indent=2))
    else:
        from pqctl.table import print_table  # rich takes longer to load than the servers to answer

        print_table(health)
    return health.exit_code


def _servers(servers: str | None) -> list[str]:
    if not servers:
        raise click.UsageError("which cluster? Give --servers HOST:PORT,... or set SOCKPQ_SERVERS")
    return [server for server in servers.split(",") if server.strip()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and exit; the only place that knows about exit codes of errors."""
    try:
        code = pqctl.main(args=arguments, prog_name="pqctl", standalone_mode=False)
    except (click.UsageError, BadArguments) as error:
        usage = error if isinstance(error, click.UsageError) else click.UsageError(str(error))
        usage.show()
        sys.exit(USAGE_ERROR)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    sys.exit(code or 0)
