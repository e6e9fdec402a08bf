"""`pqctl map show` and `check`: the map, and a comparison of the clusters with it."""

from __future__ import annotations

from collections.abc import Iterator

from sockpq import ClusterMap, Unavailable

from sockpqd.pqctl.actions.maps.changes import lines
from sockpqd.pqctl.actions.maps.clusters import NO_MAP, Clusters, clusters_of
from sockpqd.pqctl.actions.maps.remains import remains
from sockpqd.pqctl.connect import find
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.text import counted

ITEMS_SHOWN = 5


def show(call: Call, as_text: bool) -> int:
    """Print the map of the given cluster (MAP), as its lines if `as_text`."""
    servers = find(call, several=True)
    with call.access.client(servers.addresses, call.timeout) as client:
        known = client.cluster_map(servers.addresses[0])
    if call.as_json:
        call.answer("", _as_json(known))
    elif not known.clusters:
        call.print(NO_MAP)
    elif as_text:
        call.print(known.text().removesuffix("\n"))
    else:
        _print(call, known)
    return DONE


def check(call: Call) -> int:
    """Compare all clusters with the map; each finding is a sentence that says what to do."""
    with clusters_of(call) as found:
        findings = [*_of_map(found.map), *_of_clusters(found)]
    if call.as_json:
        call.answer("", {"version": found.map.version, "findings": findings})
    elif findings:
        for finding in findings:
            call.print(finding)
    else:
        call.print(f"{counted(len(found.names), 'cluster')} with version {found.map.version} of the map; each job lies "
                   "where its queue is owned")
    return REFUSED if findings else DONE


def _of_map(known: ClusterMap) -> Iterator[str]:
    for prefix, owner in sorted(known.rules.items()):
        if owner is None and prefix not in known.moving:
            yield (f"no cluster accepts {prefix}*, a change was interrupted: `pqctl map move {prefix} CLUSTER` "
                   "completes it")
    for prefix, moving in sorted(known.moving.items()):
        yield (f"{prefix}* is moving from {moving.source} to {moving.to}: `pqctl map move {prefix} {moving.to}` waits "
               "for the last jobs")


def _of_clusters(found: Clusters) -> Iterator[str]:
    items: dict[str, list[str]] = {}
    for name in found.names:
        try:
            client = found.client(name)
            held = client.cluster_map()
            lying = remains(client, "", lambda _: True).queues
            for item in client.items():
                items.setdefault(item.name, []).append(name)
        except (Unavailable, Failure) as error:
            yield str(error) if name in str(error) else f"{name} does not answer: {error}"
            continue
        servers = ",".join(found.map.clusters[name].servers)
        if held != found.map:
            yield (f"{name} has version {held.version} of the map, home {found.map.version}: "
                   f"`pqctl map add {name} {servers}` brings it there")
        for queue in lying:
            owner = found.map.owner(queue.name)
            if not _in_place(found.map, queue.name, name):
                yield (f"{name} has jobs in {queue.name}, which {owner or 'no cluster'} owns: `pqctl map move "
                       f"{queue.name} {owner or 'CLUSTER'}` has them worked off, `pqctl queue stat {queue.name} "
                       f"--servers {servers}` counts them")
    double = sorted(item for item, names in items.items() if len(names) > 1)
    if double:
        shown = ", ".join(f"{item} ({', '.join(items[item])})" for item in double[:ITEMS_SHOWN])
        yield f"{counted(len(double), 'item has', 'items have')} jobs in several clusters, and ends in each: {shown}"


def _in_place(known: ClusterMap, queue: str, cluster: str) -> bool:
    """Return whether the cluster may have jobs of the queue."""
    if known.is_apart(queue) or known.owner(queue) == cluster:
        return True
    return any(queue.startswith(prefix) and moving.source == cluster for prefix, moving in known.moving.items())


def _print(call: Call, known: ClusterMap) -> None:
    from sockpqd.pqctl.output.table import Column, print_rows

    call.print(f"version {known.version}")
    home = known.home
    print_rows(call, [Column("cluster"), Column("id"), Column("servers", folds=True), Column("owns", folds=True)], [
        (name, one.id, ", ".join(one.servers), "what no line below has" if name == home else "-")
        for name, one in known.clusters.items()
    ])
    rows = list(lines(known))
    if rows:
        call.print("")
        print_rows(call, [Column("names", folds=True), Column("owner"), Column("remark", folds=True)], rows)


def _as_json(known: ClusterMap) -> dict[str, object]:
    return {
        "version": known.version, "home": known.home,
        "clusters": {name: {"id": one.id, "servers": list(one.servers)} for name, one in known.clusters.items()},
        "rules": dict(known.rules),
        "moving": {prefix: {"from": one.source, "to": one.to} for prefix, one in known.moving.items()},
        "spread": sorted(known.spread),
    }
