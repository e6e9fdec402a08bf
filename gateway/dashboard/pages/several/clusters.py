"""The page of the map of clusters: the clusters, the names that each owns, and what to do when one is down."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence

from sockpqd.core import ClusterMap
from sockpqd.gateway.dashboard.markup import Child, FigureText, Markup, pairs, table, tag
from sockpqd.gateway.dashboard.pages.parts.listing import listed, more
from sockpqd.gateway.dashboard.pages.parts.nodes import who_may_be_lost
from sockpqd.gateway.dashboard.pages.parts.picture import amount
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, page, search, section
from sockpqd.gateway.protocol.responses import CLUSTER_ID_BYTES

CLUSTERS = 100              # on the page
SERVERS = 9                 # of one cluster
HERE = "this cluster"
UNOWNED = 3                 # prefixes that are named in the warning


async def show(view: View) -> str:
    """Return the page: the clusters of the map, what each of them owns, and what moves."""
    known = view.cluster.machine.cluster_map
    if known is None:
        return page(view, "Clusters", tag("p", (
            "This cluster is used alone: there is no map of clusters. When one leader is not enough, "), tag(
            "code", "pqctl map init NAME"), " makes a map, with this cluster as home; programs then use several "
            "clusters as one."), section(HERE.capitalize(), pairs(_here(view))))
    word = view.word("search")
    names = list(dict.fromkeys([*known.rules, *known.moving, *known.spread]))
    listing = await listed(view, names, lambda name: 0 if word in name else None)
    counts = _counts(known)
    await asyncio.sleep(0)
    unowned = _unowned(known) if counts[0][None] else None
    await asyncio.sleep(0)
    count = len(known.clusters)
    return page(
        view, "Clusters", unowned,
        tag("p", f"Version {known.version} of the map, as this cluster has it. Every name belongs to the cluster with "
                 f"the longest prefix of it, and what no prefix has to {known.home}, which is home."),
        await table(
            ("cluster", "", "id", "clients dial", "prefixes", "moving away"), _clusters(known, counts),
            counted(count, "cluster") + (f", the first {CLUSTERS}" if count > CLUSTERS else ""),
        ),
        section(HERE.capitalize(), pairs(_here(view))),
        section("Names", search("/clusters", word), await table(
            ("names", "owner", "remark"), (_row(known, name) for name in listing.names),
            counted(listing.count, "line"),
        ), more("/clusters", {"search": word}, listing)),
        section("When a cluster is down", _down()),
    )


def _unowned(known: ClusterMap) -> Markup:
    """Return a warning about names that no cluster accepts."""
    found = sorted(prefix for prefix, owner in known.rules.items() if owner is None and prefix not in known.moving)
    prefixes = ", ".join(f"{prefix}*" for prefix in found[:UNOWNED]) + (", …" if len(found) > UNOWNED else "")
    return tag("p", f"No cluster accepts {prefixes} now. If that lasts for more than some seconds, a change was "
                    "interrupted: ", tag("code", f"pqctl map move {found[0]} CLUSTER"), " completes it.", class_="bad")


def _counts(known: ClusterMap) -> tuple[Counter[str | None], Counter[str]]:
    """Return, by cluster, the number of prefixes that it owns, and of those that move away from it."""
    owners = Counter(known.rules.values())
    owners.subtract(known.rules[prefix] for prefix in known.moving.keys() & known.rules.keys())
    owners.update(one.to for one in known.moving.values())
    return owners, Counter(one.source for one in known.moving.values())


def _clusters(known: ClusterMap, counts: tuple[Counter[str | None], Counter[str]]) -> Iterator[list[Child]]:
    owned, moving = counts
    for one in known.clusters[:CLUSTERS]:
        what = [word for word, holds in (("home", one.name == known.home), (HERE, one.name == known.own)) if holds]
        servers = ", ".join(one.servers[:SERVERS]) + (", …" if len(one.servers) > SERVERS else "")
        yield [one.name, ", ".join(what), tag("code", one.id.hex()), servers, owned[one.name], moving[one.name]]


def _here(view: View) -> Iterator[tuple[str, Child]]:
    """Yield the known facts about this cluster; about the others a node knows only what is in the map."""
    cluster = view.cluster
    own = cluster.machine.cluster_id
    yield "id", "-" if own is None else tag("code", own[:CLUSTER_ID_BYTES].hex())
    known = cluster.machine.cluster_map
    if known is not None:
        yield "name", known.own or "the map does not have this cluster: it accepts nothing"
    yield "nodes", ", ".join(f"{node.name} {node.role}" for node in cluster.status())
    yield "state", who_may_be_lost(cluster.status())
    now = view.samples.cluster.now()
    for label, field, kind in (
        ("jobs in", "put", "rate"), ("jobs done", "done", "rate"), ("waiting", "waiting", "count"),
        ("running", "running", "count"),
    ):
        yield label, FigureText(amount(now[field], kind))


def _row(known: ClusterMap, name: str) -> Sequence[Child]:
    if name in known.moving:
        moving = known.moving[name]
        return [f"{name}*", moving.to, f"moving: old jobs are worked off at {moving.source}"]
    if name in known.rules:
        owner = known.rules[name]
        return [f"{name}*", owner or "-", "no cluster accepts them now" if owner is None else ""]
    return [name, "all", f"spread over all clusters; owned by {known.owner(name) or '-'}"]


def _down() -> Iterator[Markup]:
    yield tag("p", "A cluster that has lost its majority delays what it owns, and nothing else: who puts to its names "
                   "waits, and workers go on with other ones. The map cannot be changed meanwhile. A node "
                   "knows nothing of other clusters but what the map says: ", tag(
                       "code", "pqctl cluster status --all"), " asks them all, and ", tag(
                       "code", "pqctl map check"), " compares them with the map.")
    yield tag("p", "First try to bring the cluster back. Only if it is lost for ever, with its jobs, and its servers "
                   "are stopped for good: ", tag("code", "pqctl map remove NAME --it-is-gone"), " gives its names to "
                   "the owner of a shorter prefix, or to home.")
