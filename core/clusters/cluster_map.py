"""The map of clusters: which cluster owns the name of a queue, topic, pulse or channel."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sockpqd.core.dead_letters import alive

FOUND_MAX = 20_000          # entries in the cache of accepted names
ID_BYTES = 8                # of a cluster's id, as shown by CLUSTER ID


class ClusterLine(Struct, frozen=True, gc=False):
    """One cluster of the map. `id`: the first ID_BYTES of its id; `servers`: at least one, each as host:port."""

    name: str
    id: bytes
    servers: tuple[str, ...]


class Moving(Struct, frozen=True, gc=False):
    """A move in progress of the names with a prefix: `source` drains its jobs, new ones are put at `to`."""

    source: str
    to: str


class ClusterMap:
    """One version of the map, as seen by one cluster. Immutable.

    `own`: the name of this cluster; None: it is not in the map. `clusters`: in the order of their lines; the first one
    is home, which owns every name without a rule. `rules`: the cluster that owns the names with a prefix, None: no
    cluster does at present. `moving`: the moves in progress, by prefix; a move takes precedence over a rule with the
    same prefix. `spread`: queues that every cluster accepts, and with them their dead-letter queues. `text`: the text
    from which the map was read.
    """

    __slots__ = (
        "_accepted", "_owners", "_prefixes", "_shorter", "clusters", "moving", "own", "rules", "spread", "text",
        "version",
    )

    def __init__(
        self, version: int, text: bytes, own: str | None, clusters: Sequence[ClusterLine],
        rules: Mapping[str, str | None], moving: Mapping[str, Moving], spread: Iterable[str],
    ) -> None:
        """Build a map from the parts of its text that map_text.py has read."""
        self.version = version
        self.text = text
        self.own = own
        self.clusters = tuple(clusters)
        self.rules = dict(rules)
        self.moving = dict(moving)
        self.spread = frozenset(spread)
        self._owners: dict[str, str | None] = {**rules, **{prefix: move.to for prefix, move in moving.items()}}
        self._accepted: dict[str, bool] = {}            # cache of `accepts`
        self._prefixes = sorted(self._owners)
        self._shorter = _shorter(self._prefixes)

    @property
    def home(self) -> str:
        """The cluster that owns every name without a rule."""
        return self.clusters[0].name

    def owner(self, name: str) -> str | None:
        """Return the cluster that owns the name of a queue, topic, pulse or channel; None: no cluster does at present.

        The rule with the longest prefix decides, even for names of `spread`.
        """
        name = alive(name)
        at: int | None = bisect_right(self._prefixes, name) - 1
        if at == -1:
            return self.home
        # The prefix that sorts last before the name begins with every other prefix of the name.
        while at is not None:
            prefix = self._prefixes[at]
            if name.startswith(prefix):
                return self._owners[prefix]
            at = self._shorter[at]
        return self.home

    def accepts(self, name: str) -> bool:
        """Return whether this cluster accepts additions (jobs, bindings, settings) to the name."""
        accepted = self._accepted.get(name)
        if accepted is None:
            if len(self._accepted) >= FOUND_MAX:
                self._accepted.clear()
            accepted = self.own is not None and (alive(name) in self.spread or self.owner(name) == self.own)
            self._accepted[name] = accepted
        return accepted


def _shorter(prefixes: list[str]) -> list[int | None]:
    """Return for each of the sorted prefixes the index of the longest other prefix with which it begins, or None."""
    places: list[int | None] = []
    for at, prefix in enumerate(prefixes):
        one = at - 1 if at else None
        while one is not None and not prefix.startswith(prefixes[one]):
            one = places[one]
        places.append(one)
    return places
