"""Handlers of Promote, which makes the mirror of a replica the state of its cluster, and of Fence (spec/region 3)."""

from __future__ import annotations

from collections import deque

from msgspec.structs import force_setattr, replace

from sockpqd.core import limits
from sockpqd.core.clusters.cluster_map import ID_BYTES, ClusterLine, ClusterMap
from sockpqd.core.clusters.map_text import MapError, read_map
from sockpqd.core.handlers.cost import BASE_BYTES, JOB, Cost, of_names
from sockpqd.core.members.membership import Membership
from sockpqd.core.ops.cluster import Fence, Promote
from sockpqd.core.ops.replies import ACCEPTED, Mirrored, ReplicaRefused, Reply
from sockpqd.core.state import State
from sockpqd.core.store.job import Job

NO_MIRROR = ReplicaRefused("no mirror")
REPLICA = ReplicaRefused("replica")

# What stays of the replica's own state: of the cluster, and of the present entry.
_OWN = frozenset({
    "index", "term", "leader", "cluster_id", "membership", "servers", "online", "level", "mirror", "promoted", "fenced",
    "clock_ms", "before_ms", "seed", "spent", "effects", "undo", "put_item", "spread_left", "route_steps_left",
    "turned_items", "allowed", "opened", "watches",
})
_TAKEN_OVER = tuple(name for name in State.__slots__ if name not in _OWN)


def promote(state: State, operation: Promote, seed: int) -> Reply:
    """Make the mirror the state, with numbers and times that let it continue without the origin."""
    mirror = state.mirror
    # A snapshot may have only begun to arrive. And an origin that is a replica itself at this index has nothing in its
    # own state. A promotion cannot be taken back, so neither may become the service.
    if mirror is None or mirror.reached == 0 or mirror.state.mirror is not None:
        return NO_MIRROR
    other = mirror.state
    if mirror.arriving is not None:
        mirror.arriving.upload.drop()
    other.drop_clone()
    passed_ms = max(0, state.clock_ms - other.clock_ms)
    state.clock_ms = max(state.clock_ms, other.clock_ms)
    for name in _TAKEN_OVER:
        setattr(state, name, getattr(other, name))
    state.level = max(state.level, other.level)
    state.mirror, state.fragments, state.promoted = None, None, True
    state.online = True                 # also if following was stopped: a promotion is there to be served
    _rise(state)
    _postpone(state, passed_ms, min(max(0, operation.grace_ms), limits.DURATION_MS_MAX))
    for pulse in state.pulses.by_name.values():         # the origin may have given as many since
        pulse.window = deque([(state.clock_ms, pulse.now)])
    if state.fair is not None:
        state.fair.now_ms = state.clock_ms
    if state.cluster_map is not None:
        state.cluster_map = _own_map(state.cluster_map, other.cluster_id, state)
    state.effects.restored = True
    state.events.of_entry = []
    return Mirrored(other.index)


def promote_cost(operation: Promote) -> Cost:
    """Return the bytes and work of a Promote, which gets an entry of its own."""
    return BASE_BYTES, limits.OPERATION_WORK_MAX


def fence(state: State, operation: Fence, seed: int) -> Reply:
    """Switch the service off, unless this is a replica; nothing switches it on again."""
    if state.mirror is not None:
        return REPLICA
    state.fenced = operation.replica
    state.online = False
    return ACCEPTED


def fence_cost(operation: Fence) -> Cost:
    """Return the bytes and work of a Fence."""
    return BASE_BYTES + of_names(operation.replica), JOB


def _rise(state: State) -> None:
    """Raise all numbers beyond those that the origin may have given out after the mirror's last entry."""
    state.next_id += limits.PROMOTED_BEYOND
    state.items.next_item += limits.PROMOTED_BEYOND
    state.sessions.next_session += limits.PROMOTED_BEYOND
    state.pulses.next_ticket += limits.PROMOTED_BEYOND
    state.events.seq += limits.PROMOTED_BEYOND
    beyond = (state.clock_ms + limits.PROMOTED_BEYOND_MS) << limits.SEQ_BITS
    if state.next_seq < beyond <= limits.SEQ_MAX:
        state.next_seq = beyond


def _postpone(state: State, passed_ms: int, grace_ms: int) -> None:
    """Give everything that a worker or client must do in time the time that it had left, plus the grace.

    While the origin was offline, some times ran out without taking effect: these get the grace only.
    """
    by_ms, least_ms = passed_ms + grace_ms, state.clock_ms + grace_ms
    state.leases.postpone(by_ms)
    state.items.holds.postpone(by_ms)
    state.sessions.postpone(by_ms)
    state.grant_grace(grace_ms, once=False)
    for keys in (state.remembered_keys, state.retained_keys):       # a Put that was in doubt may be repeated only now
        keys.postpone(state.clock_ms - passed_ms, by_ms)
    ends: list[tuple[int, int, Job | str]] = []
    for end_ms, seq, due in state.ttls:
        if isinstance(due, str):            # the end of a pause, which was set to a time
            ends.append((end_ms, seq, due))
            continue
        # Its place, key and number stay, so no other list has to know; there may be a million.
        assert due.extras is not None
        later_ms = max(end_ms + by_ms, least_ms)
        force_setattr(due, "extras", replace(due.extras, expires_at_ms=later_ms))
        ends.append((later_ms, seq, due))
    state.ttls.replace(ends)


def _own_map(known: ClusterMap, origin: bytes | None, state: State) -> ClusterMap:
    """Return the map with this cluster in the origin's place, if the origin has one, as this cluster sees it.

    A node that restores a snapshot reads the text again, with the id of this cluster: all nodes must agree on `own`.
    """
    line = _line_of(known, origin)
    if line is not None and state.cluster_id is not None:
        version = min(known.version + 1, limits.MAP_VERSION_MAX)
        own = _line_of(known, state.cluster_id)
        names = {line.name} if own is None else {line.name, own.name}
        # The addresses may be unknown, or such as a map cannot have: then the origin's stay.
        for servers in (_servers(state.membership), ",".join(line.servers)):
            cluster = f"CLUSTER {line.name} {state.cluster_id[:ID_BYTES].hex()} {servers}"
            try:
                return read_map(version, _joined(known, line.name, names, cluster), state.cluster_id)
            except MapError:
                continue
    return read_map(known.version, known.text, state.cluster_id)


def _line_of(known: ClusterMap, cluster_id: bytes | None) -> ClusterLine | None:
    return next((one for one in known.clusters if one.id == (cluster_id or b"")[:ID_BYTES]), None)


def _joined(known: ClusterMap, name: str, names: set[str], cluster: str) -> bytes:
    """Return the text of the map with the line `cluster` in place of the lines of all these names, where the first was.

    What the other names own belongs to `name`, and a move from one of them to another has ended.
    """
    ended = {prefix for prefix, move in known.moving.items() if {move.source, move.to} <= names}
    lines: dict[str, None] = {}         # the line of the cluster comes once
    for text in known.text.decode("ascii").splitlines():
        kind, first, *clusters = text.split(" ")
        if kind == "CLUSTER":
            lines[cluster if first in names else text] = None
        elif kind == "MOVING" and first in ended:
            lines[f"RULE {first} {name}"] = None
        elif kind != "RULE" or first not in ended:
            lines[" ".join([kind, first, *[name if one in names else one for one in clusters]])] = None
    return "".join(f"{text}\n" for text in lines).encode()


def _servers(membership: Membership) -> str:
    return ",".join(address.client for address in membership.addresses.values() if address.client)
