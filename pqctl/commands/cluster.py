"""`pqctl cluster ..`: status, leadership, membership and service of the cluster."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, Seconds, command, group
from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.over_all import each

PROBE_S = 3.0           # for a look at a node that is to be added


@group("cluster")
def cluster() -> None:
    """The cluster as a whole."""


@command(cluster, timeout=0.6, epilog=exit_codes.HEALTH, over_all=each, of_one=["watch"])
@click.option("--watch", is_flag=True, help="Repeat until interrupted; with --json one object per line.")
@click.option("--interval", default=1.0, show_default=True, type=Seconds(0.1, 3600), metavar="SECONDS",
              help="The pause between two updates of --watch.")
def status(call: Call, watch: bool, interval: float) -> int:
    """Show every node, whether the cluster serves, and how many nodes it can lose.

    DOWN means that the node does not answer at the address clients dial within --timeout.
    """
    from sockpqd.pqctl.actions import status as view

    return view.watch(call, interval) if watch else view.show(call)


@command(cluster, timeout=5.0, epilog=exit_codes.epilog(
    done="a leader, and it serves", refused="a leader, but it is switched offline", unreached="no node leads",
    unknown=""))
def leader(call: Call) -> int:
    """Show the leader's name and address."""
    from sockpqd.pqctl.connect import find

    servers = find(call)
    name, address = servers.find(None)
    line = servers.leader
    assert line is not None
    told = {"id": line.id, "name": name, "client": line.client or address, "serving": servers.serving}
    off = "" if servers.serving else "  (it is switched offline)"
    call.answer(f"{name}  {told['client']}{off}", told)
    return exit_codes.DONE if servers.serving else exit_codes.REFUSED


@command(cluster, "hash", timeout=5.0, epilog=exit_codes.epilog(
    done="equal", refused="DIFFERENT at the same position: call for help", unreached="not all could be compared",
    unknown=""))
def hash_(call: Call) -> int:
    """Compare the states of the nodes, by their hashes at the same position in the log.

    Under load nodes rarely answer at the same position, so this keeps asking for --timeout. The nodes also compare
    themselves all the time, and one that differs from the majority stops.
    """
    from sockpqd.pqctl.actions import hashes

    return hashes.show(call)


@command(cluster)
@click.argument("name")
@click.argument("peer_address")
@click.argument("client_address")
def add(call: Call, name: str, peer_address: str, client_address: str) -> int:
    """Add a running node: PEER_ADDRESS for the other nodes, CLIENT_ADDRESS for clients, both as HOST:PORT.

    It counts once it has caught up; `pqctl cluster status` shows it as LEARNER until then. It is refused if
    PEER_ADDRESS answers as a port for clients does: then the two are swapped.
    """
    from sockpq import AuthError

    from sockpqd.pqctl.connect import cluster_of

    (view,) = call.access.survey([peer_address], min(PROBE_S, call.timeout))
    if view.error is None or isinstance(view.error, AuthError):
        raise exit_codes.Failure(exit_codes.USAGE_ERROR, f"{peer_address} is a port for clients: the address for the "
                                                         "other nodes comes first")
    with cluster_of(call, leading=True) as (client, _):
        server_id = client.cluster_add(name, peer_address, client_address)
    sentence = f"{name} was added with server id {server_id}; it counts when it has caught up"
    call.answer(sentence, {"name": name, "id": server_id})
    return exit_codes.DONE


@command(cluster)
@click.argument("name")
def remove(call: Call, name: str) -> int:
    """Remove a node. It can be stopped afterwards."""
    from sockpqd.pqctl.connect import cluster_of

    with cluster_of(call, leading=True) as (client, servers), servers.having(name):
        client.cluster_remove(name)
    call.answer(f"{name} was removed", {"name": name})
    return exit_codes.DONE


@command(cluster)
@click.argument("name", required=False)
def transfer(call: Call, name: str | None) -> int:
    """Hand leadership to NAME, or to the most up-to-date node."""
    from sockpqd.pqctl.connect import cluster_of

    with cluster_of(call, leading=True) as (client, servers), servers.having(name):
        new = client.cluster_transfer(name)
    leads = servers.name(new.id)
    call.answer(f"{leads} leads", {"id": new.id, "name": leads, "client": new.client})
    return exit_codes.DONE


@command(cluster)
def offline(call: Call) -> int:
    """Switch the whole service offline for clients, whichever node leads, until `pqctl cluster online`."""
    from sockpqd.pqctl.connect import cluster_of

    with cluster_of(call, leading=True) as (client, _):
        client.cluster_offline()
    call.answer("the service is switched offline", {"online": False})
    return exit_codes.DONE


@command(cluster)
def online(call: Call) -> int:
    """Switch the service online again after `pqctl cluster offline`."""
    from sockpqd.pqctl.connect import cluster_of

    with cluster_of(call, leading=True) as (client, _):
        client.cluster_online()
    call.answer("the service is switched online", {"online": True})
    return exit_codes.DONE


@command(cluster)
@click.argument("name", required=False)
def snapshot(call: Call, name: str | None) -> int:
    """Make NAME, or the leader, write a snapshot to its disk and delete the log that the snapshot before it covers.

    (`pqctl backup` saves the state to a file on this machine.)
    """
    from sockpqd.pqctl.connect import write_snapshot

    return write_snapshot(call, name)
