"""The lines about servers: the CLUSTER commands, and what servers of the original say to each other."""

from __future__ import annotations

from gateway.protocol import requests
from gateway.protocol.arguments import ArgumentError, address, name, node, signed, unsigned
from gateway.protocol.grammar.heads import Head, Parse, PutHead, SkipHead, Words
from gateway.protocol.grammar.no_arguments import alone
from gateway.protocol.grammar.puts import put
from gateway.protocol.responses import NOT_SUPPORTED


def between_servers(request: requests.Command) -> Parse:
    """A verb that stands alone or with `<n> <IP> <port>`, which only servers of the original cluster send."""
    def parse(words: Words) -> requests.Command:
        if len(words) == 1:
            return request
        if len(words) != 4 or unsigned(words[1]) == 0 or not 0 < unsigned(words[3]) < 65536:
            raise ArgumentError
        return requests.Refused(NOT_SUPPORTED)
    return parse


def sync(words: Words) -> requests.Command | Head:
    """Replication in the original's way: read to its end and refused."""
    form = words[1].upper() if len(words) > 1 else b""
    if form == b"PUT":
        head = put(words[1:])
        if not isinstance(head, PutHead):
            raise ArgumentError
        return SkipHead(head.length, NOT_SUPPORTED)
    if form == b"GET":
        at = 3 if len(words) == 6 and words[2] == b"LAST" else 2
        if len(words) != at + 3:
            raise ArgumentError
        name(words[at])
        unsigned(words[at + 1])
        signed(words[at + 2])
    elif form in (b"DONE", b"LATER") and len(words) == 3:
        unsigned(words[2])
    else:
        raise ArgumentError
    return requests.Refused(NOT_SUPPORTED)


def _cluster_add(words: Words) -> requests.Command:
    if len(words) != 6:
        raise ArgumentError
    return requests.ClusterAdd(node(words[1]), address(words[2], words[3]), address(words[4], words[5]))


def _cluster_remove(words: Words) -> requests.Command:
    if len(words) != 2:
        raise ArgumentError
    return requests.ClusterRemove(node(words[1]))


def _cluster_transfer(words: Words) -> requests.Command:
    if len(words) > 2:
        raise ArgumentError
    return requests.ClusterTransfer(node(words[1]) if len(words) == 2 else None)


def cluster(words: Words) -> requests.Command | Head:
    parse = CLUSTER.get(words[1]) if len(words) > 1 else None
    if parse is None:
        raise ArgumentError
    return parse(words[1:])


CLUSTER: dict[bytes, Parse] = {
    b"STATUS": alone(requests.ClusterStatus()),
    b"LEADER": alone(requests.ClusterLeader()),
    b"HASH": alone(requests.ClusterHash()),
    b"ADD": _cluster_add,
    b"REMOVE": _cluster_remove,
    b"TRANSFER": _cluster_transfer,
    b"OFFLINE": alone(requests.ClusterSwitch(False)),
    b"ONLINE": alone(requests.ClusterSwitch(True)),
    b"SNAPSHOT": alone(requests.ClusterSnapshot()),
}
