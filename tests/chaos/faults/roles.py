"""Selects the nodes of a fault by role, resolved when the fault begins by asking the nodes directly."""

from __future__ import annotations

from collections.abc import Callable

from tests.chaos.machines.alterable import AlterableCluster

Role = Callable[[AlterableCluster], list[str]]


def leader(cluster: AlterableCluster) -> list[str]:
    """Select the node that serves."""
    return [cluster.wait_for_leader()]


def followers(cluster: AlterableCluster) -> list[str]:
    """Select all but the leader."""
    serving = cluster.wait_for_leader()
    return [name for name in cluster.names if name != serving]


def a_follower(cluster: AlterableCluster) -> list[str]:
    """Select one node that does not serve."""
    return followers(cluster)[:1]


def everyone(cluster: AlterableCluster) -> list[str]:
    """Return the names of all nodes."""
    return list(cluster.names)


def minority_with_leader(cluster: AlterableCluster) -> list[str]:
    """Select the leader, and of five nodes one more."""
    (serving,) = leader(cluster)
    others = [name for name in cluster.names if name != serving]
    return [serving, *others[:(len(cluster.names) - 1) // 2 - 1]]


def minority_without_leader(cluster: AlterableCluster) -> list[str]:
    """Select one follower, of five nodes two."""
    return followers(cluster)[:(len(cluster.names) - 1) // 2]


def node(name: str) -> Role:
    """Return a role that is always played by this node."""
    return lambda cluster: [name]
