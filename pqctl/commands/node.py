"""`pqctl node ..`: operations on one node."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, command, group
from sockpqd.pqctl.output import exit_codes


@group("node")
def node() -> None:
    """One node, by the name `pqctl cluster status` shows."""


@command(node)
@click.argument("name")
def offline(call: Call, name: str) -> int:
    """Switch NAME offline for clients: it hands over leadership and keeps replicating.

    It stays offline until `pqctl node online` or its next start.
    """
    from sockpqd.pqctl.connect import cluster_of

    with cluster_of(call) as (client, servers):
        client.offline(servers.find(name)[1])
    call.answer(f"{name} is switched offline", {"name": name, "online": False})
    return exit_codes.DONE


@command(node)
@click.argument("name")
def online(call: Call, name: str) -> int:
    """Switch NAME online again after `pqctl node offline`."""
    from sockpqd.pqctl.connect import cluster_of

    with cluster_of(call) as (client, servers):
        client.online(servers.find(name)[1])
    call.answer(f"{name} is switched online", {"name": name, "online": True})
    return exit_codes.DONE


@command(node)
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def shutdown(call: Call, name: str, yes: bool) -> int:
    """Stop NAME's process in an orderly way: it answers commands in flight and hands over leadership.

    A service manager may start it again.
    """
    from sockpqd.pqctl.connect import cluster_of
    from sockpqd.pqctl.output.confirm import confirm

    with cluster_of(call) as (client, servers):
        address = servers.find(name)[1]
        confirm(f"Shut down {name} ({address})? {servers.without(name)}", yes)
        client.shutdown(address)
    call.answer(f"{name} is shutting down", {"name": name})
    return exit_codes.DONE


@command(node)
@click.argument("name")
def snapshot(call: Call, name: str) -> int:
    """Make NAME write a snapshot to its disk and delete the log that the snapshot before it covers."""
    from sockpqd.pqctl.connect import write_snapshot

    return write_snapshot(call, name)
