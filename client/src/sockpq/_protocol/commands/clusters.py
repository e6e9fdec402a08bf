"""The map of clusters that are used as one."""

from __future__ import annotations

from sockpq._protocol.cluster_map import ClusterMap, parse_map
from sockpq._protocol.command import Command, Repeat, call, single
from sockpq._protocol.reader import LINE, Reader, accepted, as_number, as_text, expect, ok
from sockpq.errors import BadArguments, ProtocolError

NEEDS = ("map",)
MAP_BYTES_MAX = 64 << 10
VERSION_MAX = 1 << 53


@call("any")
def cluster_map() -> Command[ClusterMap]:
    """Return the map of which cluster owns which names; its version is 0 without a map."""
    return CLUSTER_MAP


@call()
def set_cluster_map(new: ClusterMap) -> Command[None]:
    """Replace the map of this cluster with one of a greater version; the same map again is accepted, too.

    Other clusters keep theirs. Raises MapChanged when the cluster has this version or a greater one.
    """
    data = new.text().encode()
    if not 0 < new.version <= VERSION_MAX or not new.clusters:
        raise BadArguments("a map has a version from 1 on and a cluster")
    if len(data) > MAP_BYTES_MAX:
        raise BadArguments(f"the map has {len(data)} bytes, {MAP_BYTES_MAX} are possible")
    line = f"MAP SET {new.version} {len(data)}"
    return single(line, accepted, Repeat.FREELY, data=data, needs=NEEDS)


def _map() -> Reader[ClusterMap]:
    fields = ok((yield LINE))
    expect(len(fields) == 2, "a version and a length expected")
    version, length = as_number(fields[0], VERSION_MAX), as_number(fields[1], MAP_BYTES_MAX)
    text = as_text((yield length)) if length else ""
    try:
        return parse_map(version, text)
    except BadArguments as error:
        raise ProtocolError(str(error)) from None


CLUSTER_MAP: Command[ClusterMap] = Command(b"MAP\r\n", b"", _map, Repeat.FREELY, needs=NEEDS)
