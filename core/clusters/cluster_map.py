"""The map of clusters: which cluster owns the name of a queue, topic, pulse or channel."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

DEAD_SUFFIX = "_dead"       # the dead-letter queue <q>_dead is where <q> is
FOUND_MAX = 20_000          # names of which it is remembered
ID_BYTES = 8                # of a cluster's id: as many as CLUSTER ID shows


class ClusterLine(Struct, frozen=True, gc=False):
    """One cluster of the map. `id`: the first ID_BYTES of its id; `servers`: host:port each, one at least."""

    name: str
    id: bytes
    servers: tuple[str, ...]


class Moving(Struct, frozen=True, gc=False):
    """The jobs of names with a prefix are worked off at `source`; new ones go to `to`."""

    source: str
    to: str


class ClusterMap:
    """A version of the map, as one cluster has it. Never altered.

    `own`: the name of this cluster, None: the map does not have it. `clusters`: in the order of their lines; the first
    one is home, which owns what no rule names. `rules`: the cluster that owns the names with a prefix, None: nobody
    does at present. `moving`: by prefix, where its old jobs are and where new ones go; it takes precedence over a rule
    with that prefix. `spread`: queues that every cluster accepts. `text`: what all this was read from.
    """

    __slots__ = (
        "_accepted", "_owners", "_prefixes", "_shorter", "clusters", "moving", "own", "rules", "spread", "text",
        "version",
    )

    def __init__(
        self, version: int, text: bytes, own: str | None, clusters: Sequence[ClusterLine],
        rules: Mapping[str, str | None], moving: Mapping[str, Moving], spread: Iterable[str],
    ) -> None:
        """Make a map of the parts of its text, which map_text.py reads."""
        self.version = version
        self.text = text
        self.own = own
        self.clusters = tuple(clusters)
        self.rules = dict(rules)
        self.moving = dict(moving)
        self.spread = frozenset(spread)
        self._owners: dict[str, str | None] = {**rules, **{prefix: move.to for prefix, move in moving.items()}}
        self._accepted: dict[str, bool] = {}            # what was found before
        self._prefixes = sorted(self._owners)
        self._shorter = _shorter(self._prefixes)

    @property
    def home(self) -> str:
        """The cluster that owns what no rule names."""
        return self.clusters[0].name

    def owner(self, name: str) -> str | None:
        """Return the cluster that owns the name of a queue, topic, pulse or channel; None: no cluster does at present.

        The rule with the longest prefix decides, also for names of `spread`.
        """
        name = _alive(name)
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
        """Return whether this cluster accepts what is brought to the name."""
        accepted = self._accepted.get(name)
        if accepted is None:
            if len(self._accepted) >= FOUND_MAX:
                self._accepted.clear()
            accepted = self.own is not None and (_alive(name) in self.spread or self.owner(name) == self.own)
            self._accepted[name] = accepted
        return accepted


def _alive(name: str) -> str:
    """Return the queue of which this is the dead-letter queue by name, or the name itself."""
    while name.endswith(DEAD_SUFFIX) and len(name) > len(DEAD_SUFFIX):
        name = name[:-len(DEAD_SUFFIX)]
    return name


def _shorter(prefixes: list[str]) -> list[int | None]:
    """Return for each of the sorted prefixes the place of the longest other one with which it begins."""
    places: list[int | None] = []
    for at, prefix in enumerate(prefixes):
        one = at - 1 if at else None
        while one is not None and not prefix.startswith(prefixes[one]):
            one = places[one]
        places.append(one)
    return places
