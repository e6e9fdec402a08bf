"""Counts the lines of the map of clusters, for the metrics."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from sockpqd.core import ClusterMap
from sockpqd.gateway.protocol.responses import CLUSTER_ID_BYTES

CLUSTERS_NAMED_MAX = 64     # of the map; programs that use more than some tens are not expected
NOBODY = "-"
OTHERS = ""                 # stands for all clusters after the first CLUSTERS_NAMED_MAX


class MapFigures(Struct, frozen=True):
    """The place of this cluster in the map, and counts of the map's lines.

    `own`: its name in the map and `id`, as CLUSTER ID shows them, each "-" if it has none. `version`: 0 without a map.
    `prefixes`: by cluster, how many prefixes it owns by a line; NOBODY: those that no cluster accepts now. `moving`: by
    cluster, the number of prefixes whose old jobs it drains.
    """

    own: str
    id: str
    version: int
    prefixes: dict[str, int]
    moving: dict[str, int]


def map_figures(cluster_id: bytes | None, known: ClusterMap | None) -> MapFigures:
    """Return the figures; at most CLUSTERS_NAMED_MAX + 2 names of clusters are in each of their tables."""
    shown_id = NOBODY if cluster_id is None else cluster_id[:CLUSTER_ID_BYTES].hex()
    if known is None:
        return MapFigures(NOBODY, shown_id, 0, {}, {})
    named = [one.name for one in known.clusters]
    shown = named[:CLUSTERS_NAMED_MAX]
    if len(named) > len(shown):
        shown.append(OTHERS)
    owners = Counter(NOBODY if owner is None else owner
                     for prefix, owner in known.rules.items() if prefix not in known.moving)
    owners.update(one.to for one in known.moving.values())
    sources = Counter(one.source for one in known.moving.values())
    return MapFigures(
        known.own or NOBODY, shown_id, known.version, _counts(owners, [*shown, NOBODY]), _counts(sources, shown))


def _counts(found: Counter[str], shown: list[str]) -> dict[str, int]:
    counts = {name: found.pop(name, 0) for name in shown}
    if OTHERS in counts:
        counts[OTHERS] = found.total()
    return counts
