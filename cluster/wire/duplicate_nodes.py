"""Detects two processes with the name of the same node, and two nodes with copies of one data directory.

Each greeting carries random bytes of the process and of its journal (older versions send none, and are not checked).
When a second process connects under the name of a node, the process that answers keeps its place: the one heard from a
moment ago, or the one at the address that the others dial. If the second one were accepted, each would close the
other's connections again and again, and the cluster would make no progress while another node is down.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sockpqd.cluster import limits
from sockpqd.cluster.wire.messages import Hello
from sockpqd.cluster.wire.peer_connection import PeerConnection
from sockpqd.cluster.wire.peer_link import LinkConnection, PeerLink


def same_process(one: Hello, other: Hello) -> bool:
    """Return whether these greetings may come from the same process."""
    return not one.process or not other.process or one.process == other.process


def refused_duplicate(connection: PeerConnection, hello: Hello, link: PeerLink, now: float) -> str:
    """Return why a greeting with the name of this link's node is refused, "" if it is not. `now`: the loop's time."""
    present = link.incoming
    if connection.dialed or not link.up or present is None or present is connection or present.greeting is None:
        return ""
    if same_process(present.greeting, hello) or now - present.heard_at > limits.DUPLICATE_S:
        return ""
    return duplicate_log_line(hello.sender, address(connection), address(present))


def duplicate_log_line(name: str, second: str, first: str) -> str:
    """Return the log line about two processes with one name, at these addresses."""
    return (
        f"a second process with the name {name} comes from {second}, while the one from {first} answers and keeps its"
        f" place: stop one of them, and never run two nodes with one name or with copies of one data directory"
    )


def copied(hello: Hello, mine: Hello, links: Iterable[PeerLink]) -> str:
    """Return why a node with the journal of another node is refused, "" if the journal is not a copy."""
    if not hello.journal:
        return ""
    others = [mine, *(link.incoming.greeting for link in links
                      if link.up and link.incoming is not None and link.incoming.greeting is not None)]
    for other in others:
        if other.journal == hello.journal and other.sender != hello.sender:
            return (f"{hello.sender} and {other.sender} have copies of one data directory: stop the one that it does"
                    " not belong to, and start that one with an empty directory")
    return ""


def address(connection: LinkConnection) -> str:
    """Return the address of the other side, for log lines."""
    peer: Any = connection.transport.get_extra_info("peername") if connection.transport is not None else None
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "somewhere"
