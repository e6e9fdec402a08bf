"""A cluster's health in words: one JSON object for programs, one sentence for people."""

from __future__ import annotations

from sockpqd.pqctl.health import DEGRADED, FULL, HEALTHY, Health
from sockpqd.pqctl.output.text import counted
from sockpqd.pqctl.replicas import RegionPart, follows, in_words


def as_json(health: Health, part: RegionPart | None = None) -> dict[str, object]:
    """Return the object printed by `cluster status --json`. `part`: the role of the cluster for another region."""
    return {
        "cluster": health.cluster,
        "serving": health.serving and part is None,
        "leader": health.leader.name if health.leader else None,
        "can_lose": health.can_lose,
        "nodes": [
            {
                "id": node.id,
                "name": node.name,
                "client": node.client,
                "role": node.role,
                "online": node.online,
                "term": node.term,
                "applied": node.applied,
                "lag": node.lag,
                "version": node.version,
                "level": node.level,
                "cluster_level": node.cluster_level,
            }
            for node in health.nodes
        ],
        "copy": (None if part is None or part.fenced is not None
                 else {"of": part.origin, "follows": follows(part.found)}),
        "fenced_for": None if part is None else part.fenced,
    }


def exit_code(health: Health, part: RegionPart | None = None) -> int:
    """Return the exit code of `cluster status`: a copy that does not follow is degraded."""
    if part is None or health.exit_code != HEALTHY:
        return health.exit_code
    return HEALTHY if follows(part.found) else DEGRADED


def headline(health: Health, part: RegionPart | None = None) -> str:
    """Summarize in one sentence whether the cluster serves, and how many nodes it can lose.

    `part`: of the cluster for another region.
    """
    members = health.voters
    if part is not None and part.fenced is not None:
        return (f"NOT SERVING: FENCED, switched off for good, as its copy takes its place, the cluster {part.fenced}; "
                f"{health.up} of {counted(members, 'node')} up")
    if part is not None:
        whose = "" if part.origin is None else f"of the cluster {part.origin}; "
        return (f"A COPY, answers reads only: {whose}{in_words(part.found)}; "
                f"{health.up} of {counted(members, 'node')} up")
    if not health.reached:
        return f"NOT REACHED: no answer from {counted(members, 'server')}; name others of the cluster by --servers"
    if health.leader is None:
        why = "no leader yet"
        if health.up < health.majority:
            why = f"{health.majority} needed{f', all {members} if the cluster is new' if health.new else ''}"
        elif health.new:
            why = "not founded yet: a new cluster needs all its nodes once"
        elif health.switched_off:
            why = "all switched offline"
        elif full := sum(node.role == FULL for node in health.nodes):
            why = f"{full} full: no further connections are taken"
        return f"NOT SERVING: {health.up} of {counted(members, 'node')} up, {why}"
    state = "serving" if health.exit_code == HEALTHY else "DEGRADED, but serving"
    if members == 1:
        return f"{state}: {health.leader.name}, a single node"
    nodes = "node" if health.can_lose == 1 else "nodes"
    return (
        f"{state}: {health.leader.name} leads; {health.up} of {members} nodes up, "
        f"can lose {health.can_lose or 'no'} more {nodes}{_less_than_healthy(health)}"
    )


def _less_than_healthy(health: Health) -> str:
    """Return which nodes are up but not usable by everybody, "" if there are none."""
    off = [node.name for node in health.nodes if node.online is False]
    full = [node.name for node in health.nodes if node.role == FULL]
    return "".join(f"; {', '.join(names)} {state}" for names, state in (
        (off, "switched offline"), (full, "full: no further connections are taken")) if names)
