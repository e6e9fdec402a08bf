"""Readiness of a node: it serves, or follows a leader that does; in a replica, of which none serves, it leads."""

from __future__ import annotations

from sockpqd.cluster import Cluster

LAG_MAX = 1000      # entries; under full load a follower is two or three behind


def why_not_ready(cluster: Cluster) -> str | None:
    """Return in one line why this node is not ready, None if it is."""
    if not cluster.machine.online and not cluster.is_replica:       # a copy that was stopped answers reads
        return "the service is switched offline (pqctl cluster online)"
    if not cluster.online:
        return f"this node is stopping, or switched offline (pqctl node online {cluster.name})"
    if cluster.serving:
        return None
    leader = cluster.leader()
    if leader is None:
        return "no leader is known"
    if leader == cluster.name:
        if cluster.is_replica and cluster.age_s() == 0.0:       # it leads a copy, which answers reads
            return None
        return "this node leads, but does not serve: it has begun just now, or disks are full"
    lag = cluster.figures().lag
    if lag > LAG_MAX:
        return f"this node is {lag} entries behind {leader}"
    for node in cluster.status():
        if node.name == leader:
            return None if node.role == "LEADER" and node.online else f"{leader} leads, but does not serve"
    return f"{leader} leads, but is not a member"
