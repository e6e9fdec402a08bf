"""The command `pqctl`: arguments in, exit code out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click
from sockpq import BadArguments, Client

from pqctl import report
from pqctl.cluster import look
from pqctl.steering import Servers, steer

USAGE_ERROR = 64        # sysexits.h EX_USAGE; click's own 2 means "not serving" here
INTERRUPTED = 130

EPILOG = """\b
Exit codes: 0 healthy; 1 degraded but serving; 2 not serving; 64 wrong usage.
"""
STEERING_EPILOG = """\b
Exit codes: 0 done; 1 refused; 2 not reached, or nobody knows whether it was done; 64 wrong usage.
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


PATIENCE = click.option(
    "--timeout", default=30.0, show_default=True, type=click.FloatRange(0.05, 3600), metavar="SECONDS",
    help="How long to look for the leader and to wait for its answer.",
)


@cluster.command(epilog=STEERING_EPILOG)
@click.argument("name")
@click.argument("peer_address")
@click.argument("client_address")
@PATIENCE
@click.pass_obj
def add(servers: str | None, name: str, peer_address: str, client_address: str, timeout: float) -> int:
    """Add a node that runs: PEER_ADDRESS for the other nodes, CLIENT_ADDRESS for clients, HOST:PORT both.

    It counts when it has caught up; `pqctl cluster status` shows it as LEARNER until then.
    """
    def act(client: Client, found: Servers) -> str:
        server_id = client.cluster_add(name, peer_address, client_address)
        return f"{name} was added with server id {server_id}; it counts when it has caught up"

    return steer(_servers(servers), timeout, act)


@cluster.command(epilog=STEERING_EPILOG)
@click.argument("name")
@PATIENCE
@click.pass_obj
def remove(servers: str | None, name: str, timeout: float) -> int:
    """Remove a node. It may be stopped afterwards."""
    def act(client: Client, found: Servers) -> str:
        client.cluster_remove(name)
        return f"{name} was removed"

    return steer(_servers(servers), timeout, act)


@cluster.command(epilog=STEERING_EPILOG)
@click.argument("name", required=False)
@PATIENCE
@click.pass_obj
def transfer(servers: str | None, name: str | None, timeout: float) -> int:
    """Hand leadership to NAME, or to the node that is best prepared."""
    def act(client: Client, found: Servers) -> str:
        leader = client.cluster_transfer(name)
        return f"{found.name(leader.id)} leads"

    return steer(_servers(servers), timeout, act)


@cluster.command(epilog=STEERING_EPILOG)
@PATIENCE
@click.pass_obj
def offline(servers: str | None, timeout: float) -> int:
    """Switch the whole service off for clients, whoever leads, until `pqctl cluster online`."""
    def act(client: Client, found: Servers) -> str:
        client.cluster_offline()
        return "the service is switched offline"

    return steer(_servers(servers), timeout, act)


@cluster.command(epilog=STEERING_EPILOG)
@PATIENCE
@click.pass_obj
def online(servers: str | None, timeout: float) -> int:
    """Switch the service on again after `pqctl cluster offline`."""
    def act(client: Client, found: Servers) -> str:
        client.cluster_online()
        return "the service is switched online"

    return steer(_servers(servers), timeout, act)


@cluster.command(epilog=STEERING_EPILOG)
@click.argument("name", required=False)
@PATIENCE
@click.pass_obj
def snapshot(servers: str | None, name: str | None, timeout: float) -> int:
    """Let NAME, or the leader, write its state to its disk and delete the log before it."""
    def act(client: Client, found: Servers) -> str:
        node, server = found.find(name)
        return f"{node} wrote a snapshot, position {client.cluster_snapshot(server)} in the log"

    return steer(_servers(servers), timeout, act)


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
