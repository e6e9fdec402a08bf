"""The map of clusters (PROTOCOL "MAP"): which of several clusters owns a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sockpq._protocol.addresses import parse_server
from sockpq._protocol.arguments import CLUSTER, CLUSTER_NAME, NAME
from sockpq.errors import BadArguments
from sockpq.names import DEAD_SUFFIX, NAME_MAX, alive

NOBODY = "-"


class MappedCluster(NamedTuple):
    """A cluster of the map: its id, as in ClusterId, and its servers, each as "host:port"."""

    id: str
    servers: tuple[str, ...]


class Moving(NamedTuple):
    """A move in progress: the cluster `source` drains the jobs of these names, new ones go to the cluster `to`."""

    source: str
    to: str


class ClusterMap(NamedTuple):
    """MAP: a version of the map of clusters; version 0: there is no map, the cluster owns all names.

    `clusters`: by name; the first one is home, which owns all names without a rule. `rules`: the owning cluster by
    prefix of names, None: none at present. `moving`: moves in progress by prefix; they take precedence over a rule of
    the same prefix. `spread`: queues that every cluster accepts, as it does their dead-letter queues; see is_spread().
    """

    version: int = 0
    clusters: Mapping[str, MappedCluster] = {}
    rules: Mapping[str, str | None] = {}
    moving: Mapping[str, Moving] = {}
    spread: frozenset[str] = frozenset()

    @property
    def home(self) -> str | None:
        """The cluster that owns all names without a rule; None without a map."""
        return next(iter(self.clusters), None)

    def owner(self, name: str) -> str | None:
        """Return the cluster that owns the name of a queue, topic, pulse or channel; None: no cluster does now."""
        name = alive(name)
        for length in range(len(name), 0, -1):
            prefix = name[:length]
            if prefix in self.moving:
                return self.moving[prefix].to
            if prefix in self.rules:
                return self.rules[prefix]
        return self.home

    def is_spread(self, queue: str) -> bool:
        """Return whether every cluster accepts jobs for this queue: it is one of `spread`, or its dead-letter queue."""
        return alive(queue) in self.spread

    def is_apart(self, queue: str) -> bool:
        """Return whether every cluster may have jobs of this queue, although it may accept none.

        The name of a dead-letter queue has at most NAME_MAX characters, so those of long names are cut. A line of the
        map for a longer name decides where its jobs die, and does not hold for the cut name.
        """
        if self.is_spread(queue):
            return True
        kept = queue.removesuffix(DEAD_SUFFIX)
        return len(kept) + len(DEAD_SUFFIX) == NAME_MAX and kept != queue and any(
            len(name) > len(kept) and name.startswith(kept) for name in (*self.rules, *self.moving, *self.spread))

    def text(self) -> str:
        """Return its lines, as MAP SET takes them."""
        lines = [f"CLUSTER {name} {one.id} {','.join(one.servers)}" for name, one in self.clusters.items()]
        lines += [f"RULE {prefix} {cluster or NOBODY}" for prefix, cluster in self.rules.items()]
        lines += [f"MOVING {prefix} {one.source} {one.to}" for prefix, one in self.moving.items()]
        lines += [f"SPREAD {queue}" for queue in sorted(self.spread)]
        return "".join(f"{line}\n" for line in lines)


def parse_map(version: int, text: str) -> ClusterMap:
    """Parse the lines of a map. Raises BadArguments with the reason."""
    clusters: dict[str, MappedCluster] = {}
    rules: dict[str, str | None] = {}
    moving: dict[str, Moving] = {}
    spread: set[str] = set()
    for line in text.splitlines():
        match line.split(" "):
            case ["CLUSTER", name, id_, servers]:
                clusters[_cluster(name)] = mapped(id_, servers.split(","))
            case ["RULE", prefix, cluster]:
                rules[_name(prefix)] = None if cluster == NOBODY else _cluster(cluster)
            case ["MOVING", prefix, source, to]:
                moving[_name(prefix)] = Moving(_cluster(source), _cluster(to))
            case ["SPREAD", queue]:
                spread.add(_name(queue))
            case _:
                raise BadArguments(f"not a line of a map of clusters: {line[:80]!r}")
    return ClusterMap(version, clusters, rules, moving, frozenset(spread))


def mapped(id_: str, servers: Iterable[str]) -> MappedCluster:
    """Return a cluster of the map with this id and servers. Raises BadArguments."""
    if CLUSTER.fullmatch(id_) is None:
        raise BadArguments(f"not the id of a cluster: {id_[:80]!r}")
    return MappedCluster(id_, tuple(str(parse_server(server)) for server in servers))


def _cluster(name: str) -> str:
    if CLUSTER_NAME.fullmatch(name) is None or name == NOBODY:
        raise BadArguments(f"not the name of a cluster: {name[:80]!r}")
    return name


def _name(name: str) -> str:
    if NAME.fullmatch(name) is None:
        raise BadArguments(f"not a name or the prefix of one: {name[:80]!r}")
    return name
