"""Operations on the cluster: leadership, time, members, service, the map of clusters, CLONE, and replicas."""

from __future__ import annotations

from enum import IntEnum

from sockpqd.core.ops.jobs import Then
from sockpqd.core.ops.logged import Logged


class Tick(Logged, tag=6, frozen=True):
    """Do nothing; the entry carries the clock forward."""


class Address(Logged, frozen=True):
    """The addresses of a node: "host:port" for the other nodes and for clients, "" if unknown."""

    name: str
    peer: str = ""
    client: str = ""


class Lead(Logged, tag=7, frozen=True):
    """Begin a leadership, as its first operation: from here on `node` leads (spec/cluster 4.4).

    `members`: all configured nodes in name order. They, `cluster_id` (16 random bytes) and `expire_default` only count
    in the first Lead of an empty cluster. `addresses`: used for members whose address is unknown.

    `silence_ms`: the time without a leader. From now on each lease lasts at least `silence_ms` plus the smaller of
    `grace_ms` and its own length, once per hand-out (spec/state-machine 3.3).
    """

    node: str
    term: int
    members: tuple[str, ...]
    cluster_id: bytes
    grace_ms: int
    expire_default: Then = Then.LATER
    addresses: tuple[Address, ...] = ()
    silence_ms: int = 0


class CloneChunk(Logged, tag=9, frozen=True):
    """The next bytes of the snapshot of a CLONE (spec/cluster 8.6).

    `total_bytes`: a snapshot of this many bytes begins, and an unfinished earlier one is discarded. `last`: it ends, is
    verified, and replaces the state.

    Replies: Accepted; InvalidSnapshot; NotYet, if it has a feature level that the cluster has not reached.
    """

    clone: int          # chosen by the proposer, to distinguish the chunks of two clients
    data: bytes = b""
    total_bytes: int | None = None
    last: bool = False


class MemberChange(IntEnum):
    """The steps by which the members of a cluster change (spec/cluster 7)."""

    JOIN = 0        # at first without a vote, as the learner
    PROMOTE = 1     # the learner becomes a voter
    REMOVE = 2


class ChangeMember(Logged, tag=11, frozen=True):
    """Let `node` join the cluster, make it a voter, or remove it.

    `configuration`: PROMOTE, and REMOVE of a voter, only happen if the voters are still those of this configuration.
    `peer` and `client`: of a node that joins, as in Address.

    Replies: Joined, NodeExists; Accepted, ChangeInProgress, UnknownNode, LastNode.
    """

    node: str
    change: MemberChange
    configuration: int = 0
    peer: str = ""
    client: str = ""


class RaiseLevel(Logged, tag=78, frozen=True):
    """Raise the feature level of the cluster (levels.py), if its members are still these; it is never lowered.

    `members`: voters and learner, in name order, all of which have reported that they know the level.
    """

    level: int
    members: tuple[str, ...]


class SetMap(Logged, tag=120, frozen=True):
    """MAP SET: replace the map of clusters by this version (spec/state-machine 13).

    Replies: Accepted, even if this is the current map; MapChanged; BadSetting, if the text is not a map.
    """

    version: int
    text: bytes


class SwitchService(Logged, tag=14, frozen=True):
    """Switch the whole service online or offline, independently of the leader. While it is offline no lease expires.

    `grace_ms`: when it goes online, leases that would end sooner are extended to clock + grace_ms, once per hand-out,
    so that workers can report what they have finished in the meantime.
    """

    online: bool
    grace_ms: int = 0


class Resume(Logged, tag=42, frozen=True):
    """Resume after a time in which nothing could be logged, for example because disks were full.

    As clients could not renew leases or sessions, those that would end sooner are extended to clock + `grace_ms`. That
    is independent of the failover grace (spec/state-machine 3.4). Must be the first operation of its entry; nothing
    ends before it.
    """

    grace_ms: int


class MirrorFrame(Logged, frozen=True):
    """An entry of the origin: its index, and its bytes as in the origin's journal."""

    index: int
    data: bytes


class MirrorEntries(Logged, tag=121, frozen=True):
    """Execute these consecutive entries of the origin on the mirror; those at or below its index are skipped.

    `after`: the index of the frame before the first one, 0 if there is none. A mirror that has not reached it executes
    nothing. The first operation on a mirror creates it. A frame that is too large for one entry comes alone, in parts:
    its data begin at `offset`; those at 0 discard an earlier frame's, and with `last` they end, and it is executed.

    Replies: Mirrored, ReplicaRefused.
    """

    after: int
    frames: tuple[MirrorFrame, ...]
    offset: int = 0
    last: bool = True


class MirrorChunk(Logged, tag=124, frozen=True):
    """The bytes at `offset` of the snapshot of the origin taken at `index`; the last ones make it the mirror.

    `total_bytes`, without bytes: a snapshot of this many begins, taken where the origin's chain has this `hash`, unless
    the mirror is there already; an earlier one that is incomplete is discarded.

    Replies: Mirrored; ReplicaRefused; NotYet, if the snapshot has a feature level that this cluster has not reached;
    InvalidSnapshot.
    """

    index: int
    offset: int
    data: bytes
    total_bytes: int | None = None
    hash: bytes = b""               # read with total_bytes only


class Promote(Logged, tag=125, frozen=True):
    """Make the mirror the state of this cluster (spec/region 3).

    `grace_ms`: what leases, sessions, holds and TTLs get beyond the time that they had left. Replies: Mirrored, with
    the index of the origin's last entry; ReplicaRefused, if there is no mirror, if it has nothing yet, or if it is the
    mirror of a replica.
    """

    grace_ms: int


class Fence(Logged, tag=126, frozen=True):
    """Switch the service off for good, in favour of the cluster with this id (spec/region 4).

    Replies: Accepted; ReplicaRefused, if this is a replica.
    """

    replica: str
