"""`pqctl map init`, `add` and `remove`: the clusters of the map."""

from __future__ import annotations

from contextlib import ExitStack

from sockpq import ClusterMap, MappedCluster
from sockpq.names import alive

from sockpqd.pqctl.actions.maps.changes import with_cluster, without_cluster, without_lost_cluster
from sockpqd.pqctl.actions.maps.clusters import Clusters, changing, clusters_of
from sockpqd.pqctl.actions.maps.remains import remains
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.confirm import confirm
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure


def init(call: Call, name: str) -> int:
    """Make the first version of the map, with the cluster of the given servers as home."""
    with ExitStack() as stack:
        found = Clusters(call, stack)
        home = found.map.home
        if home is None:
            found.change(ClusterMap(0, {name: MappedCluster(found.own, found.members())}))
        elif (home, found.map.clusters[home].id) != (name, found.own):
            raise Failure(REFUSED, f"there is a map already, with {home} as home: `pqctl map show`")
    call.answer(f"{name} is home and owns all names; `pqctl map add` adds a cluster, `pqctl map move` gives it names", {
        "home": name, "version": found.map.version,
    })
    return DONE


def add(call: Call, name: str, servers: str) -> int:
    """Add a cluster to the map, or correct the servers of one that it has."""
    with clusters_of(call) as found:
        cluster = found.at(name, servers)
        known = found.map.clusters.get(name)
        if known is not None and known.id != cluster.id:
            raise Failure(REFUSED, f"{servers} belongs to the cluster {cluster.id}, but {name} is {known.id}")
        same = [one for one, there in found.map.clusters.items() if there.id == cluster.id and one != name]
        if same:
            raise Failure(REFUSED, f"the map has this cluster already, as {same[0]}")
        found.reach()
        found.change(with_cluster(found.map, name, cluster))
    owns = "" if known else "; it owns no name until `pqctl map move` or `pqctl map assign` gives it some"
    call.answer(f"{name} is in version {found.map.version} of the map{owns}", {
        "cluster": name, "id": cluster.id, "version": found.map.version,
    })
    return DONE


def remove(call: Call, name: str, gone: bool, yes: bool) -> int:
    """Remove a cluster without names and jobs from the map; `gone`: one that is lost, with all its jobs."""
    if gone:
        confirm(f"Are the servers of {name} stopped for ever? Its jobs are given up, and its names get another owner; "
                "if it runs on, it still accepts jobs from programs that have not seen the new map.", yes)
    with changing(call, name if gone else None) as found:
        there = name in found.map.clusters
        if there and len(found.map.clusters) == 1:
            raise Failure(REFUSED, f"{name} is the only cluster of the map")
        if gone:
            found.change(without_lost_cluster(found.map, name))
        elif there:
            _must_be_unused(found, name)
            client, before = found.client(name), found.map
            found.change(without_cluster(found.map, name))
            left = remains(client, "", lambda _: True)
            if left.jobs:           # of a queue that every cluster accepts; jobs that came a moment before
                found.change(with_cluster(found.map, name, before.clusters[name]))
                raise Failure(REFUSED, f"{name} was given {left} meanwhile, and is in the map again: run this again "
                                       "when they have ended")
    home = found.map.home
    done = f"{name} is not in the map" if not there else f"{name} is removed from the map"
    call.answer(f"{done}, version {found.map.version}; home is {home}", {
        "cluster": name, "home": home, "version": found.map.version,
    })
    return DONE


def _must_be_unused(found: Clusters, name: str) -> None:
    if name == found.map.home:
        raise Failure(REFUSED, f"{name} is home, which owns all names that no rule has: it stays in the map")
    without_cluster(found.map, name)
    left = remains(found.client(name), "", lambda _: True)
    if left.jobs:
        queues = ", ".join(one.name for one in left.queues[:3]) + (", .." if len(left.queues) > 3 else "")
        spread = [alive(one.name) for one in left.queues if found.map.is_spread(one.name)]
        hint = f"`pqctl map spread {spread[0]} --off` has them worked off" if spread else "they have to end first"
        raise Failure(REFUSED, f"{name} has {left}, in {queues}: {hint}")
