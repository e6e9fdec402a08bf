"""The routes of one version of the map of clusters: the owner of each name, and the clusters that may have its jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import NamedTuple, TypeVar

from sockpq._engine.executor import Executor
from sockpq._protocol.cluster_map import ClusterMap
from sockpq._protocol.job_ids import tags
from sockpq._routing.targets import ANY
from sockpq.names import alive

T = TypeVar("T")

CACHED_NAMES_MAX = 100_000


class Route(NamedTuple):
    """A cluster: its name in the map or "", its executor, and the tag of its jobs (_protocol/job_ids)."""

    name: str
    executor: Executor
    tag: int


class Routes:
    """The clusters of one map. It does not change; names that were looked up are remembered."""

    def __init__(
        self, clusters: ClusterMap, executor_of: Callable[[str, tuple[str, ...]], Executor], plain: str | None
    ) -> None:
        """`executor_of` returns the executor of the cluster with this id and these servers, creating it if necessary.

        `plain`: the id of the cluster whose jobs have no tags, as this client has used it without a map; None: home.
        """
        self.map = clusters
        self.all: tuple[Route, ...] = tuple(
            Route(name, executor_of(one.id, one.servers), 0 if one.id == plain or (plain is None and not at) else tag)
            for at, ((name, one), tag) in enumerate(
                zip(clusters.clusters.items(), tags([one.id for one in clusters.clusters.values()]), strict=True))
        )
        self.home = self.all[0]
        self._by_name: Mapping[str, Route] = {route.name: route for route in self.all}
        self._by_tag = {route.tag: route for route in self.all}
        self._owners: dict[str, Route | None] = {}
        self._sources: dict[str, tuple[Route, ...]] = {}

    def owner(self, name: str) -> Route | None:
        """Return the cluster that accepts additions to this name; None: none does at present."""
        try:
            return self._owners[name]
        except KeyError:
            cluster = self.map.owner(name)
            return _remember(self._owners, name, None if cluster is None else self._by_name[cluster])

    def sources(self, name: str) -> tuple[Route, ...]:
        """Return the clusters that may have jobs under this name, in the order in which these are taken.

        While a name moves these are its old owner and the new one. While it has no owner they are all clusters.
        """
        try:
            return self._sources[name]
        except KeyError:
            return _remember(self._sources, name, self._find_sources(name))

    def of_any(self, names: tuple[str, ...]) -> tuple[Route, ...]:
        """Return the clusters that may have jobs under one of these names ("*": any)."""
        if names == (ANY,):
            return self.all
        if len(names) == 1:
            return self.sources(names[0])
        return tuple(dict.fromkeys(route for name in names for route in self.sources(name)))

    @property
    def executors(self) -> list[Executor]:
        """The executors of all clusters."""
        return [route.executor for route in self.all]

    def is_spread(self, name: str) -> bool:
        """Return whether every cluster accepts jobs for this queue."""
        return self.map.is_spread(name)

    def is_apart(self, name: str) -> bool:
        """Return whether every cluster may have jobs of this queue; see ClusterMap.is_apart()."""
        return self.map.is_apart(name)

    def with_tag(self, tag: int) -> Route | None:
        """Return the cluster of jobs with this tag, None if the map no longer has it."""
        return self._by_tag.get(tag) or (self.home if tag == 0 else None)

    def with_name(self, name: str) -> Route | None:
        """Return the cluster of this name, None if the map does not have it."""
        return self._by_name.get(name)

    def of_item(self, item: str) -> Route | None:
        """Return the cluster of an item: the one after the last dot of its name, or else the owner of that name."""
        return self._by_name.get(item.rpartition(".")[2]) or self.owner(item)

    def of_key(self, key: str) -> Route:
        """Return the cluster for this key, or item, of a spread queue.

        By rendezvous hashing: adding or removing a cluster moves only a few keys.
        """
        return max(self.all, key=lambda route: _weight(self.map.clusters[route.name].id, key))

    def _find_sources(self, name: str) -> tuple[Route, ...]:
        owner, moving = self.owner(name), self._moving(name)
        if owner is None or self.is_apart(name):
            return self.all
        return (self._by_name[moving], owner) if moving else (owner,)

    def _moving(self, name: str) -> str | None:
        """Return the cluster from which this name moves; None if it does not move."""
        name = alive(name)
        for length in range(len(name), 0, -1):
            prefix = name[:length]
            if prefix in self.map.moving:
                return self.map.moving[prefix].source
            if prefix in self.map.rules:
                return None
        return None


def _remember(cache: dict[str, T], key: str, value: T) -> T:
    if len(cache) >= CACHED_NAMES_MAX:
        cache.clear()
    cache[key] = value
    return value


def _weight(cluster: str, key: str) -> bytes:
    return blake2b(f"{cluster} {key}".encode(), digest_size=8).digest()
