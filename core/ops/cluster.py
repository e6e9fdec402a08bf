"""Operations on the cluster: leadership, time, members, service, and CLONE (which replaces all jobs by a snapshot)."""

from __future__ import annotations

from sockpqd.core.ops.jobs import Then
from sockpqd.core.ops.logged import Logged


class Tick(Logged, tag=6, frozen=True):
    """Nothing: its entry carries the clock forward."""


class Address(Logged, frozen=True):
    """Where a node can be reached: "host:port" for the other nodes and for clients, "" if unknown."""

    name: str
    peer: str = ""
    client: str = ""


class Lead(Logged, tag=7, frozen=True):
    """`node` leads from here on: the first operation of each leadership (spec/cluster 4.4).

    `members`: all configured nodes in name order. They, `cluster_id` (16 random bytes) and `expire_default` only count
    in the first Lead of an empty cluster. `addresses`: used for members whose address is unknown.

    `grace_ms`, and `silence_ms` without a leader: from now each lease lasts at least for the two together, or for
    its own length instead of a longer `grace_ms`, once per hand-out (spec/state-machine 3.3).
    """

    node: str
    term: int
    members: tuple[str, ...]
    cluster_id: bytes
    grace_ms: int
    expire_default: Then = Then.LATER
    addresses: tuple[Address, ...] = ()
    silence_ms: int = 0


class CloneBegin(Logged, tag=8, frozen=True):
    """A snapshot of `total_bytes` follows in chunks; an unfinished earlier one is discarded."""

    clone: int          # chosen by the proposer, to distinguish the chunks of two clients
    total_bytes: int


class CloneChunk(Logged, tag=9, frozen=True):
    """The next bytes of the clone."""

    clone: int
    data: bytes


class CloneEnd(Logged, tag=10, frozen=True):
    """Verify the collected snapshot and replace the state by it."""

    clone: int


class AddLearner(Logged, tag=11, frozen=True):
    """`node` joins the cluster, at first without a vote (spec/cluster 7.2); `peer` and `client`: as in Address."""

    node: str
    peer: str
    client: str


class PromoteLearner(Logged, tag=12, frozen=True):
    """The learner `node` becomes a voter, if the voters are still those of `configuration`."""

    node: str
    configuration: int


class RemoveMember(Logged, tag=13, frozen=True):
    """`node` leaves the cluster: a voter if the voters are still those of `configuration`, a learner in any case."""

    node: str
    configuration: int


class RaiseLevel(Logged, tag=78, frozen=True):
    """The cluster has this feature level from here on (levels.py), if its members are still these; never a lower one.

    `members`: voters and learner, in name order, all of which have told that they know the level.
    """

    level: int
    members: tuple[str, ...]


class SwitchService(Logged, tag=14, frozen=True):
    """The whole service goes online or offline, independently of who leads. While it is offline no lease ends.

    `grace_ms`: when it goes online, leases that would end sooner are extended to clock + grace_ms, once per hand-out,
    so that workers can report what they have finished in the meantime.
    """

    online: bool
    grace_ms: int = 0


class Resume(Logged, tag=42, frozen=True):
    """For a while nothing could be logged, because of full disks for example: no client could use leases or sessions.

    Those that would end sooner are extended to clock + `grace_ms`, even after a failover grace, which this does not use
    up (spec/state-machine 3.4). It must be the first operation of its entry; nothing ends before it.
    """

    grace_ms: int
