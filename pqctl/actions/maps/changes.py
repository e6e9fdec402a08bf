"""Changes of a map of clusters, as functions from one map to the next (PROTOCOL "Several clusters")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from sockpq import ClusterMap, MappedCluster, Moving

from sockpqd.pqctl.output.exit_codes import REFUSED, Failure

T = TypeVar("T")


def owner_of_prefix(known: ClusterMap, prefix: str) -> str | None:
    """Return the owner of the names with this prefix, apart from rules with longer prefixes; None: no cluster."""
    rule = rule_of(known, prefix)
    if rule is None:
        return known.home
    return known.moving[rule].to if rule in known.moving else known.rules[rule]


def rule_of(known: ClusterMap, name: str) -> str | None:
    """Return the longest prefix of `name` that has a line in the map."""
    for length in range(len(name), 0, -1):
        if name[:length] in known.moving or name[:length] in known.rules:
            return name[:length]
    return None


def frozen(before: ClusterMap, after: ClusterMap) -> ClusterMap | None:
    """Return the map between these two, in which names that change owner have none; None: no name changes owner.

    A name belongs to the longest of all prefixes in either map; so each of these prefixes has a line here.
    """
    prefixes = {*before.rules, *before.moving, *after.rules, *after.moving}
    changed = {one for one in prefixes if owner_of_prefix(before, one) != owner_of_prefix(after, one)}
    if not changed:
        return None
    rules = {one: owner_of_prefix(before, one) for one in prefixes - changed if one not in before.moving}
    return before._replace(
        rules=dict(sorted({**rules, **dict.fromkeys(changed)}.items())),
        moving={one: moving for one, moving in before.moving.items() if one not in changed},
    )


def with_cluster(known: ClusterMap, name: str, cluster: MappedCluster) -> ClusterMap:
    """Return the map with a further cluster, or with other servers of one that it has."""
    return known._replace(clusters={**known.clusters, name: cluster})


def without_cluster(known: ClusterMap, name: str) -> ClusterMap:
    """Return the map without a cluster that owns nothing. Raises Failure if a line names it.

    Without home the next cluster is home.
    """
    for prefix, moving in known.moving.items():
        if name in moving:
            raise Failure(REFUSED, f"{prefix} moves from {moving.source} to {moving.to}: `pqctl map move {prefix} "
                                   f"{moving.to}` waits for the end of that")
    owned = sorted(prefix for prefix, owner in known.rules.items() if owner == name)
    if owned:
        raise Failure(REFUSED, f"{name} owns {', '.join(f'{prefix}*' for prefix in owned)} by the map: "
                               f"`pqctl map move {owned[0]} CLUSTER` gives names to another")
    return known._replace(clusters={one: cluster for one, cluster in known.clusters.items() if one != name})


def without_lost_cluster(known: ClusterMap, name: str) -> ClusterMap:
    """Return the map without a cluster that is lost: its names have the owner of a shorter prefix, or home.

    A move away from it counts as completed; a move to it is undone.
    """
    rules = {prefix: owner for prefix, owner in known.rules.items() if owner != name}
    moving = {prefix: one for prefix, one in known.moving.items() if name not in one}
    rules.update({prefix: one.to for prefix, one in known.moving.items() if one.source == name})
    rules.update({prefix: one.source for prefix, one in known.moving.items() if one.to == name})
    clusters = {one: cluster for one, cluster in known.clusters.items() if one != name}
    return known._replace(clusters=clusters, rules=rules, moving=moving)


def owned_by(known: ClusterMap, prefix: str, cluster: str) -> ClusterMap:
    """Return the map in which `cluster` owns the names with this prefix: without a line if it does so by a shorter one.
    """
    bare = known._replace(rules=_without(known.rules, prefix), moving=_without(known.moving, prefix))
    if owner_of_prefix(bare, prefix) == cluster:
        return bare
    return bare._replace(rules={**bare.rules, prefix: cluster})


def moving_to(known: ClusterMap, prefix: str, source: str, to: str) -> ClusterMap:
    """Return the map in which `to` owns the names with this prefix, while `source` drains their jobs."""
    return known._replace(
        rules=_without(known.rules, prefix), moving={**known.moving, prefix: Moving(source, to)},
    )


def spreading(known: ClusterMap, queue: str, on: bool) -> ClusterMap:
    """Return the map in which every cluster accepts the queue or, without `on`, only its owner."""
    return known._replace(spread=known.spread | {queue} if on else known.spread - {queue})


def lines(known: ClusterMap) -> Iterator[tuple[str, str, str]]:
    """Yield a line for people for each line of the map except the clusters': the names, their owner, and a remark."""
    for prefix in sorted({*known.rules, *known.moving}):
        moving = known.moving.get(prefix)
        owner = owner_of_prefix(known, prefix)
        remark = "no cluster accepts them now" if owner is None else ""
        yield f"{prefix}*", owner or "-", remark if moving is None else f"moving, jobs are left at {moving.source}"
    for queue in sorted(known.spread):
        yield queue, "all", "spread"


def _without(lines: Mapping[str, T], prefix: str) -> dict[str, T]:
    return {one: value for one, value in lines.items() if one != prefix}
