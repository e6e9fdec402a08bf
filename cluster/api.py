"""The face of the cluster as its users see it: what the gateway may ask, and what it is told.

The gateway is written against these protocols; its tests bring a small in-memory cluster of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from msgspec import Struct

from cluster.limits import BACKLOG_BYTES_MAX as BACKLOG_BYTES_MAX
from cluster.metrics.histogram import Histogram
from core import (
    Accepted,
    ChangeInProgress,
    Effects,
    Joined,
    LastNode,
    Machine,
    NodeExists,
    Operation,
    Reply,
    UnknownNode,
)


class NotLeader(Exception):  # noqa: N818  (the field's word for it)
    """This node cannot execute what only a leader can: it was surely not executed."""


class OutcomeUnknown(Exception):  # noqa: N818
    """Nobody knows whether it was or will be executed."""


class NotPossible(Struct, frozen=True):
    """An administrative command that would do harm or cannot succeed now; `word` says why in one word."""

    word: str


class Pending(Protocol):
    """Where the outcome of one proposed operation goes: exactly one of the three is called, once, on the loop.

    The methods must not raise: they run inside the apply loop.
    """

    def applied(self, reply: Reply) -> None:
        """The operation is committed on a majority and executed; `reply` is the machine's answer."""

    def refused(self) -> None:
        """The operation was surely not executed and never will be."""

    def unknown(self) -> None:
        """Nobody knows whether it was or will be executed (leader deposed, no answer in time)."""


class ClientPending(Pending, Protocol):
    """The same for an operation that was proposed for a client; there is a fourth outcome."""

    def overdue(self) -> None:
        """As refused(), but this node serves: it has too much to do, and the client had no turn for too long."""


class Listener(Protocol):
    """What a cluster tells the gateway, always on the loop."""

    def effects(self, effects: Effects) -> None:
        """An entry was applied while this node serves; the replies of its operations were given out before."""

    def serving_changed(self, serving: bool) -> None:
        """This node begins or ceases to serve."""

    def turn_ended(self) -> None:
        """The entries of the turn are sent to the others: write out the answers to committed operations now."""


class NodeStatus(Struct, frozen=True):
    """One node as this node knows it; None where nothing is known (CLUSTER STATUS)."""

    server_id: int | None
    name: str
    client: str                 # "host:port" clients dial
    role: str                   # LEADER, FOLLOWER, CANDIDATE, LEARNER (does not count yet, up or not) or DOWN
    online: bool | None
    term: int | None
    applied: int | None         # index of the last applied log entry
    lag: int | None             # entries behind the leader's commit index
    version: str | None
    ahead_ms: int | None        # how far its clock is ahead of this node's, as far as messages tell


class PeerFigures(Struct, frozen=True):
    """Another member, for those who watch."""

    name: str
    up: bool
    lag: int | None             # entries behind the leader's commit index, as it told last


class Figures(Struct, frozen=True):
    """How a node is, for those who watch; sizes in bytes. Counters begin at 0 when the process does."""

    role: str                   # LEADER, FOLLOWER, CANDIDATE or LEARNER
    term: int
    commit_index: int
    applied_index: int
    lag: int                    # entries committed and not applied here
    leader_changes: int
    elections: int              # that this node started
    commit_latency: Histogram   # seconds from the proposal of an entry's first operation until it was applied
    fsync: Histogram            # seconds a sync of the journal took
    turns: Histogram            # seconds a turn of the loop took, from its first event to its end
    turn_longest_s: float       # of the last one to two minutes
    journal_bytes: int          # of the entries that the newest snapshot does not cover
    journal_room: int           # bytes the journal can take without asking the disk for space
    snapshot_index: int         # of the newest snapshot, 0: there is none
    snapshot_bytes: int
    snapshot_s: float           # how long writing the last of our own took
    proposals: int              # operations that have no outcome yet
    backlog_bytes: int
    memory_bytes: int           # resident
    memory_used_bytes: int      # and what counts of it against the mark
    memory_mark_bytes: int
    memory_reached: bool
    disk_free_bytes: int
    disk_free_bytes_min: int
    disk_reached: bool
    journal_reached: bool       # its room is kept for Raft itself: nothing of clients is logged here
    full: bool                  # PUT is refused
    clock_ahead_ms: int | None  # of this node's wall clock, beyond the median of the voters'; None: not known
    time_ahead_ms: int | None   # the same of replicated time
    peers: tuple[PeerFigures, ...]


class Cluster(Protocol):
    """A replicated machine."""

    name: str                   # of this node
    machine: Machine            # the applied state; read only, and only between two calls

    @property
    def serving(self) -> bool:
        """May this node execute queue commands now (spec/cluster 1.2)?"""

    @property
    def online(self) -> bool:
        """The administrative switch of this node (OFFLINE, ONLINE)."""

    def propose(self, operation: Operation, pending: Pending) -> None:
        """Put an operation of this node itself into the log."""

    def propose_for(
        self, client: object, operation: Operation, pending: ClientPending, behind: bool = False,
    ) -> bool:
        """Put an operation into the log for a client. Those of one client keep the order in which they are proposed.

        When there is more than the next entry can hold, clients take turns. `behind`: the operation stands right behind
        the one proposed just before it, which was for the same client. True: what this client has queued takes up its
        share of memory, or all have together (BACKLOG_BYTES_MAX), and it should propose nothing before something of it
        has an outcome.
        """

    def withdraw(self, client: object) -> None:
        """The client has gone: what it has waiting for a turn is not executed, and told so by `overdue`."""

    @property
    def share(self) -> int:
        """Operations that one client should have proposed at most, so that all clients together are served soon."""

    @property
    def time_ms(self) -> int:
        """Replicated time now, as far as this node knows it; that of `machine` stands still between two entries."""

    @property
    def full(self) -> bool:
        """Is there no room for further jobs, on disk or in memory, here or on too many? What removes jobs goes on."""

    @property
    def backlog_bytes(self) -> int:
        """Memory of what is proposed and not yet applied, see BACKLOG_BYTES_MAX."""

    def leader(self) -> str | None:
        """Name of the leader this node knows of, None when it knows none."""

    def interconnect_id(self) -> int:
        """The number INTERCONNECT answers (spec/cluster 5): minimal on the serving leader only."""

    def status(self) -> list[NodeStatus]:
        """All members in order of their server id."""

    def figures(self) -> Figures:
        """How this node is, for those who watch."""

    def state_hash(self) -> tuple[int, bytes]:
        """CLUSTER HASH: index of the last executed entry, and a hash of all up to it, equal on nodes that are equal."""

    async def go_offline(self) -> None:
        """OFFLINE: stop serving, finish what was proposed, give leadership away; returns after 5 s at the latest."""

    def go_online(self) -> None:
        """ONLINE: clear the switch."""

    async def export_snapshot(self, path: Path) -> None:
        """Write the applied state to a new file at `path`, without stopping the loop; raises OSError."""

    async def add_node(self, name: str, peer: str, client: str) -> Joined | NodeExists | ChangeInProgress:
        """CLUSTER ADD: `name` gets the log from now on, and counts as soon as it has caught up.

        `peer` and `client` are its addresses ("host:port"). Raises NotLeader and OutcomeUnknown.
        """

    async def remove_node(
        self, name: str,
    ) -> Accepted | UnknownNode | LastNode | ChangeInProgress | NotPossible:
        """CLUSTER REMOVE: `name` counts no more, and a majority of the others knows that.

        NotPossible("quorum"): too few of those that would remain are running. Raises NotLeader and OutcomeUnknown.
        """

    async def transfer(self, name: str | None) -> NodeStatus | NotPossible:
        """CLUSTER TRANSFER: hand leadership to this node, or to the one that is best prepared. Returns the new leader.

        Words of NotPossible: unknown, learner, down, offline, full, behind, alone, busy (another transfer is under
        way), timeout. Raises NotLeader.
        """

    async def switch_service(self, online: bool) -> None:
        """CLUSTER OFFLINE and ONLINE: the lasting switch of the whole service. Raises NotLeader and OutcomeUnknown."""

    async def compact(self) -> int:
        """CLUSTER SNAPSHOT: write a snapshot on this node and cut its log; returns the snapshot's index.

        Raises OSError when it cannot be written.
        """
