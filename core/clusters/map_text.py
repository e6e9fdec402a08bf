"""Reads the text of the map of clusters (PROTOCOL "MAP")."""

from __future__ import annotations

import re

from sockpqd.core import limits
from sockpqd.core.clusters.cluster_map import ID_BYTES, ClusterLine, ClusterMap, Moving

NOBODY = "-"
_PORT_MAX = 65_535

_CLUSTER = re.compile(r"[a-z0-9_-]{1,32}")
_PREFIX = re.compile(r"[A-Za-z0-9_.+/;$()][A-Za-z0-9_.+/;$():@-]{0,254}")
_ID = re.compile(rf"[0-9a-f]{{{2 * ID_BYTES}}}")
_SERVER = re.compile(r"(?:[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):([0-9]{1,5})")


class MapError(ValueError):
    """The text is not a map; the message names the line, in printable ASCII."""


def read_map(version: int, text: bytes, cluster_id: bytes | None) -> ClusterMap:
    """Return the map that the text describes, from the view of the cluster with this id. Raises MapError."""
    return _Reader(text).finish(version, text, cluster_id)


class _Reader:
    """Collects the clusters, rules and moves of the lines read so far."""

    def __init__(self, text: bytes) -> None:
        self.clusters: dict[str, ClusterLine] = {}
        self.rules: dict[str, str | None] = {}
        self.moving: dict[str, Moving] = {}
        self.spread: dict[str, None] = {}
        self._named: list[tuple[int, str]] = []     # line number and name of each cluster that a line refers to
        if len(text) > limits.MAP_BYTES_MAX:
            raise MapError(f"more than {limits.MAP_BYTES_MAX} bytes")
        if text and not text.endswith(b"\n"):
            raise MapError("the last line has no end")
        try:
            lines = text.decode("ascii").split("\n")[:-1]
        except UnicodeDecodeError:
            raise MapError("characters that are not ASCII") from None
        for number, line in enumerate(lines, 1):
            wrong = self._line(number, line.split(" "))
            if wrong is not None:
                raise MapError(f"line {number}: {wrong}")

    def finish(self, version: int, text: bytes, cluster_id: bytes | None) -> ClusterMap:
        """Return the map of all lines. Raises MapError if there is no cluster, or a line refers to an undefined one."""
        if not self.clusters:
            raise MapError("there is no CLUSTER line")
        for number, name in self._named:
            if name not in self.clusters:
                raise MapError(f"line {number}: no CLUSTER line has the name that stands there")
        own = [one.name for one in self.clusters.values() if one.id == (cluster_id or b"")[:ID_BYTES]]
        return ClusterMap(
            version, text, own[0] if own else None, list(self.clusters.values()), self.rules, self.moving, self.spread,
        )

    def _line(self, number: int, words: list[str]) -> str | None:
        """Read one line; returns an error message, or None if it is valid."""
        match words:
            case ["CLUSTER", name, cluster_id, servers]:
                return self._cluster(name, cluster_id, servers.split(","))
            case ["RULE", prefix, cluster]:
                return _wrong_prefix(prefix, self.rules) or self._rule(number, prefix, cluster)
            case ["SPREAD", queue]:
                wrong = _wrong_prefix(queue, self.spread)
                self.spread[queue] = None
                return wrong
            case ["MOVING", prefix, source, to]:
                return _wrong_prefix(prefix, self.moving) or self._moving(number, prefix, source, to)
        return "CLUSTER <name> <id> <servers>, RULE <prefix> <cluster>, SPREAD <queue> or MOVING <prefix> <from> <to>"

    def _cluster(self, name: str, cluster_id: str, servers: list[str]) -> str | None:
        if _CLUSTER.fullmatch(name) is None or name == NOBODY:
            return "the name of a cluster has 1 to 32 of a-z 0-9 _ -, and is not - alone"
        if _ID.fullmatch(cluster_id) is None:
            return f"the id of a cluster has {2 * ID_BYTES} hexadecimal digits, as CLUSTER ID shows"
        if name in self.clusters or any(one.id.hex() == cluster_id for one in self.clusters.values()):
            return "the cluster has a line already"
        for server in servers:
            found = _SERVER.fullmatch(server)
            if found is None or not 0 < int(found[1]) <= _PORT_MAX:
                return "a server is host:port, several are separated by commas"
        self.clusters[name] = ClusterLine(name, bytes.fromhex(cluster_id), tuple(servers))
        return None

    def _rule(self, number: int, prefix: str, cluster: str) -> str | None:
        self.rules[prefix] = None if cluster == NOBODY else cluster
        if cluster != NOBODY:
            self._named.append((number, cluster))
        return None

    def _moving(self, number: int, prefix: str, source: str, to: str) -> str | None:
        if source == to:
            return "it moves from a cluster to the same one"
        self.moving[prefix] = Moving(source, to)
        self._named += (number, source), (number, to)
        return None


def _wrong_prefix(prefix: str, known: dict[str, None] | dict[str, str | None] | dict[str, Moving]) -> str | None:
    if _PREFIX.fullmatch(prefix) is None:
        return "a prefix has the characters of names"
    return "there is such a line already" if prefix in known else None
