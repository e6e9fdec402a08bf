"""The nodes on pages: a card for each, and how many of them may be lost."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.cluster import HostFigures, NodeStatus
from sockpqd.gateway.dashboard.markup import Child, Markup, pairs, tag
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, size

NEAR = 0.9                  # of its mark of memory: a node that uses more is near it
METER = 1.1                 # marks are the whole length of a bar


def who_may_be_lost(nodes: list[NodeStatus]) -> str:
    """Return, in words, how many voters can be lost before the cluster stops serving."""
    voters = [node for node in nodes if node.role != "LEARNER"]
    up = sum(node.role != "DOWN" for node in voters)
    if len(voters) == 1 and up:
        return "A single node serves: it may not be lost."
    spare = up - (len(voters) // 2 + 1)
    if spare < 0:
        return f"Only {up} of {len(voters)} nodes are up: that is no majority, and nothing can be done."
    if not any(node.role == "LEADER" for node in voters):
        return f"{up} of {len(voters)} nodes are up, and none leads at the moment: an election takes a second or two."
    if spare == 0:
        return f"{up} of {len(voters)} nodes are up: none may be lost."
    return f"{up} of {len(voters)} nodes are up: any {spare if spare > 1 else 'one'} may be lost without harm."


def nearest_limit(nodes: list[NodeStatus]) -> str | None:
    """Return, in words, which working node will be the first to run out of room; None if nothing is known."""
    found: list[tuple[float, str]] = []
    for node in nodes:
        if node.host is None or node.role == "DOWN":
            continue
        its = node.host
        if its.memory_mark_bytes:
            used, mark = its.memory_used_bytes, its.memory_mark_bytes
            found.append((used / mark, f"{node.name}, which uses {size(used)} of {size(mark)} of memory to its mark"))
        if its.disk_free_bytes_min:
            left, least = its.disk_free_bytes, its.disk_free_bytes_min
            found.append((least / max(left, 1), f"{node.name}, which has {size(left)} of disk left and needs "
                                                f"{size(least)}"))
    return f"The node nearest to a limit is {max(found)[1]}." if found else None


def cards(view: View, nodes: list[NodeStatus]) -> Markup:
    """Return a card for each node."""
    return tag("div", [_card(view, node) for node in nodes], class_="cards")


def _card(view: View, node: NodeStatus) -> Markup:
    role = node.role.lower()
    here = tag("small", "this node") if node.name == view.cluster.name else None
    return tag("div", tag("h3", node.name, " ", tag("span", node.role, class_=f"role {role}"), here),
               pairs(_known(node)), class_=f"card {role}")


def _known(node: NodeStatus) -> Iterator[tuple[str, Child]]:
    yield "clients dial", node.client
    if node.role == "DOWN":
        return
    if node.online is False:
        yield "switched", "OFFLINE"
    yield "lag", counted(node.lag or 0, "entry", "entries")
    if node.ahead_ms is not None:
        yield "clock", clock(node.ahead_ms)
    if node.host is not None:
        yield "memory", memory(node.host)
        yield "disk free", disk(node.host)
    yield "version", node.version


def clock(ahead_ms: int) -> str:
    """Return by how many milliseconds the clock of a node is ahead of this one's, in words."""
    return f"{ahead_ms:+} ms" if ahead_ms else "as here"


def memory(host: HostFigures) -> Child:
    """Return the memory that a node uses, with its mark and a bar if it has one."""
    used, mark = host.memory_used_bytes, host.memory_mark_bytes
    if not mark:
        return size(used)
    return [size(used), " ", tag("small", f"of {size(mark)}", class_="whole"), _meter(used, mark)]


def disk(host: HostFigures) -> Child:
    """Return the room that is left on the disk of a node, and how much of it the node needs, if that is known."""
    least = host.disk_free_bytes_min
    return [size(host.disk_free_bytes), [" ", tag("small", f"needs {size(least)}", class_="whole")] if least else None]


def _meter(used: int, mark: int) -> Markup:
    """Return a bar of the memory used: green, yellow from NEAR of the mark on, and red beyond it."""
    return tag("meter", min=0, max=round(mark * METER), low=round(mark * NEAR), high=mark, optimum=0, value=used,
               aria_label=f"{100 * used // mark}% of its mark")
