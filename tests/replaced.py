"""Another cluster at the address of one that is gone, with which no program may go on."""

from __future__ import annotations

from devcluster.cluster import LocalCluster


def replace(cluster: LocalCluster) -> None:
    """Start another cluster of one node on the same port."""
    (name,) = cluster.names
    cluster.kill(name)
    cluster.wipe(name)
    cluster.restart(name)
    cluster.wait_for_leader()
