"""Another cluster at the address of a former one, with which no program may continue."""

from __future__ import annotations

from devcluster.cluster import LocalCluster


def replace(cluster: LocalCluster) -> None:
    """Start another cluster of one node on the same port."""
    (name,) = cluster.names
    cluster.kill(name)
    cluster.wipe(name)
    cluster.restart(name)
    cluster.wait_for_leader()
