"""`pqctl node ..`: one server, by its name."""

from __future__ import annotations

import click

from pqctl.invocation import Call, command, group
from pqctl.output import exit_codes


@group("node")
def node() -> None:
    """One node, by the name `pqctl cluster status` shows."""


@command(node)
@click.argument("name")
def offline(call: Call, name: str) -> int:
    """Switch NAME off for clients: it gives leadership away and goes on replicating.

    Until `pqctl node online` or its next start.
    """
    from pqctl.connect import cluster_of

    with cluster_of(call) as (client, servers):
        client.offline(servers.find(name)[1])
    call.answer(f"{name} is switched offline", {"name": name, "online": False})
    return exit_codes.DONE


@command(node)
@click.argument("name")
def online(call: Call, name: str) -> int:
    """Switch NAME on again after `pqctl node offline`."""
    from pqctl.connect import cluster_of

    with cluster_of(call) as (client, servers):
        client.online(servers.find(name)[1])
    call.answer(f"{name} is switched online", {"name": name, "online": True})
    return exit_codes.DONE


@command(node)
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def shutdown(call: Call, name: str, yes: bool) -> int:
    """End NAME's process in good order: it answers what is in flight and gives leadership away.

    A service manager may start it again.
    """
    from pqctl.connect import cluster_of
    from pqctl.output.confirm import confirm

    with cluster_of(call) as (client, servers):
        address = servers.find(name)[1]
        confirm(f"Shut down {name} ({address})? {servers.without(name)}", yes)
        client.shutdown(address)
    call.answer(f"{name} is shutting down", {"name": name})
    return exit_codes.DONE


@command(node)
@click.argument("name")
def snapshot(call: Call, name: str) -> int:
    """Let NAME write its state to its disk and delete the log before it."""
    from pqctl.connect import write_snapshot

    return write_snapshot(call, name)
