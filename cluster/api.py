"""The interface between gateway and cluster: what the gateway may call, and the callbacks it gets.

The gateway is written against these protocols, and its tests implement them with a small in-memory cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from sockpqd.cluster.limits import BACKLOG_BYTES_MAX as BACKLOG_BYTES_MAX
from sockpqd.cluster.metrics.histogram import Histogram
from sockpqd.core import (
    Accepted,
    ChangeInProgress,
    Effects,
    Event,
    Joined,
    LastNode,
    Machine,
    Mirrored,
    NodeExists,
    NotYet,
    Operation,
    ReplicaRefused,
    Reply,
    ServiceFenced,
    UnknownNode,
)

Channels = tuple[list[str], list[str], int]     # names, prefixes, and how many subscribers listen to these

# The replies to CLUSTER ADD and REMOVE.
AddNodeReply = Joined | NodeExists | ChangeInProgress
RemoveNodeReply = Accepted | UnknownNode | LastNode | ChangeInProgress
# The replies to CLUSTER ONLINE, PROMOTE and FENCED. NotYet: not all nodes of the cluster know it.
SwitchServiceReply = Accepted | ServiceFenced
PromoteReply = Mirrored | ReplicaRefused | NotYet
FenceReply = Accepted | ReplicaRefused | NotYet


class NotLeader(Exception):
    """This node is not the leader; the command was not executed."""


class OutcomeUnknown(Exception):
    """It is unknown whether the command was or will be executed."""


class NotPossible(Struct, frozen=True):
    """An administrative command would do harm or cannot succeed now; `word` is the reason, in one word."""

    word: str


class Pending(Protocol):
    """Receives the outcome of a proposed operation: exactly one of the methods is called, once, on the loop.

    The methods must not raise, because they run inside the apply loop.
    """

    def applied(self, reply: Reply) -> None:
        """Handle the machine's answer to the operation, which is committed on a majority and executed.

        NotYet may come at once, if the operation was not proposed.
        """

    def refused(self) -> None:
        """Handle the refusal of the operation: it was certainly not executed and never will be."""

    def unknown(self) -> None:
        """Handle an unknown outcome: the leader was deposed, or did not answer in time."""


class ClientPending(Pending, Protocol):
    """A Pending for a client's operation, which may also be overdue."""

    def overdue(self) -> None:
        """Like refused(), but this node serves: it is overloaded, so the operation has waited too long."""


class RunningCall(Protocol):
    """A forwarded call that the leader is executing."""

    def cancel(self) -> None:
        """Make the call end soon; its outcome is still reported."""


class ClusterListener(Protocol):
    """The cluster's callbacks into the gateway, always called on the event loop."""

    def effects(self, effects: Effects) -> None:
        """Handle the effects of an entry applied while this node serves, after the replies to its operations."""

    def serving_changed(self, serving: bool) -> None:
        """Handle the beginning or the end of serving on this node."""

    def events(self, events: list[Event]) -> None:
        """Handle the events of recorded types in an applied entry, on any node. Must not raise."""

    def recording(self, types: frozenset[str]) -> None:
        """Handle a change of the recorded types: from now on, these (spec/events 3.1)."""

    def notice(self, channel: str, data: bytes) -> None:
        """Send a message of NOTIFY to the subscribers of this node."""

    def notices_lost(self) -> None:
        """Inform subscribers that messages of NOTIFY may have been lost on their way to this node."""

    def state_replaced(self) -> None:
        """Handle the replacement of the state by another node's snapshot: the events in between are unknown."""

    async def execute_command(self, user: str | None, address: str, command: bytes) -> bytes | None:
        """Execute a command of another node's client, as the leader: see Cluster.forward_command.

        Returns the answer, or None if the command was not executed.
        """

    def execute_call(
        self, user: str | None, address: str, data: bytes, on_outcome: Callable[[bytes | None], None],
    ) -> RunningCall:
        """Execute a call for a client of another node, as the leader.

        `on_outcome` is called once with the outcome, possibly before this returns.
        """

    def turn_ended(self) -> None:
        """Write the answers to committed operations, now that the turn's entries have been sent to the other nodes."""


class HostFigures(Struct, frozen=True):
    """The memory and the disk of a member, and the port of its dashboard, 0 if it has none; sizes in bytes."""

    memory_used_bytes: int = 0
    memory_mark_bytes: int = 0
    disk_free_bytes: int = 0
    disk_free_bytes_min: int = 0
    http_port: int = 0


class NodeStatus(Struct, frozen=True):
    """A member, as known to this node; None where a value is unknown (CLUSTER STATUS)."""

    server_id: int | None
    name: str
    client: str                 # "host:port" that clients dial
    role: str                   # LEADER, FOLLOWER, CANDIDATE, LEARNER (does not count yet, up or not) or DOWN
    online: bool | None
    term: int | None
    applied: int | None         # index of the last applied log entry
    lag: int | None             # entries after the leader's commit index
    version: str | None
    ahead_ms: int | None        # how far its clock is ahead of this node's, estimated from messages
    level: int | None = None    # the feature level that it knows
    cluster_level: int | None = None    # of the cluster, as far as it has applied the log
    host: HostFigures | None = None     # None also from older versions


class PeerFigures(Struct, frozen=True):
    """The figures of another member, for monitoring."""

    name: str
    up: bool
    lag: int | None             # entries after the leader's commit index, as last reported


class PagingFigures(Struct, frozen=True):
    """Waiting jobs that are outside memory, and large bodies of any jobs, for monitoring."""

    jobs: int                   # on the disk, at least their bodies,
    data_bytes: int             # and their data
    bodies: int                 # on the disk without their jobs, which may wait, run or be buried,
    body_bytes: int             # and their size
    file_bytes: int             # of the files they are in
    files: int
    live_bytes: int             # of these, the pages that the present state needs
    rewriting: int              # files that are being given up, because little of them is needed
    read: int                   # pages and such bodies, since the last snapshot was loaded
    written: int
    expected: int               # pages that the system was asked to read ahead
    misses: int                 # reads of a file that had to wait for the disk
    moved: int                  # pages written again, out of files that are being given up
    reads: Histogram            # seconds it took to read a page from its file: everything else waits for it


class Figures(Struct, frozen=True):
    """The state of a node for monitoring; sizes in bytes. Counters start at 0 with the process."""

    role: str                   # LEADER, FOLLOWER, CANDIDATE or LEARNER
    term: int
    commit_index: int
    applied_index: int
    lag: int                    # entries committed and not applied here
    leader_changes: int
    elections: int              # that this node started
    commit_latency: Histogram   # seconds from the proposal of an entry's first operation until it was applied
    fsync: Histogram            # seconds per sync of the journal
    preparations: Histogram     # seconds per segment of the journal, created in the background
    turns: Histogram            # seconds per turn of the loop, from its first event to its end
    turn_longest_s: float       # in the last one to two minutes
    journal_bytes: int          # of entries that the newest snapshot does not cover
    journal_room: int           # bytes the journal can write without allocating more space
    snapshot_index: int         # of the newest snapshot, 0 if there is none
    snapshot_bytes: int
    snapshot_s: float           # time it took to write the last snapshot
    proposals: int              # operations without an outcome
    backlog_bytes: int
    memory_bytes: int           # resident
    memory_used_bytes: int      # the part of it that counts against the mark
    memory_mark_bytes: int
    memory_reached: bool
    disk_free_bytes: int
    disk_free_bytes_min: int
    disk_reached: bool
    journal_reached: bool       # the journal's last room is reserved for Raft: nothing of clients is logged here
    full: bool                  # PUT is refused
    clock_ahead_ms: int | None  # this node's wall clock ahead of the median of the voters', None if unknown
    time_ahead_ms: int | None   # replicated time ahead of that median
    level: int                  # the feature level that it knows
    cluster_level: int          # of the cluster
    rejoining: bool             # it has set damaged files aside, and does not vote yet
    damaged_files: int          # found while it runs
    scrubbed_bytes: int         # read again to look for damage
    peers: tuple[PeerFigures, ...]
    hot_bytes: int = 0          # of waiting jobs in memory, about
    hot_bytes_max: int = 0      # the budget for that; 0: none
    paging: PagingFigures | None = None
    disk_held: tuple[tuple[str, int], ...] = ()     # who holds the disk of the data directory


class Frame(Struct, frozen=True):
    """An entry of the origin's log, for a replica (spec/region 1.2).

    `data`: its bytes as in the origin's journal, in which `now_ms` (Unix time in milliseconds) and `seed` are as well.
    """

    index: int
    now_ms: int
    seed: int
    data: bytes


class Checkpoint(Struct, frozen=True):
    """The hash of a cluster's log and replies up to an entry; see `state_hash`."""

    index: int
    hash: bytes


class FeedRefusal(Enum):
    """A reason why a node cannot feed a copy from the requested entry."""

    TOO_OLD = "its journal does not reach back that far"
    TOO_NEW = "it has not executed the entries before that yet"
    DIFFERENT = "it has another hash at that checkpoint: the copy is one of another log"


class FeedSlice(Struct, frozen=True):
    """Some entries of the log, in order, and the index from which to read on.

    Indexes are missing between them where the Raft library has entries of its own.
    """

    frames: list[Frame]
    next: int


class Feed(Protocol):
    """The log of a node as copies in other regions read it."""

    @property
    def executed(self) -> int:
        """The index of the last entry that this node has executed: frames are there up to it."""

    def refusal(self, index: int, checkpoint: Checkpoint | None) -> FeedRefusal | None:
        """Return why this node cannot feed a copy from this entry on; None: it can.

        `checkpoint`: of the copy, at or before the entry that precedes; None: it has none yet. One at which this node
        knows no hash is not compared.
        """

    def checkpoints(self, after: int, up_to: int) -> list[Checkpoint]:
        """The checkpoints with `after` < index <= `up_to`, in order, as far as they are computed and kept."""

    async def read(self, index: int) -> FeedSlice | None:
        """Read the entries from this one on, about FEED_SLICE_BYTES of them, none if none is executed yet, or the
        node stops.

        Waits for the disk if they are not in memory. None: they are gone from the journal, or cannot be read.
        """


class MirrorPosition(Struct, frozen=True):
    """The index of a replica's mirror, and the newest checkpoint of the origin's chain at or before it.

    Before the first checkpoint after a snapshot `at` is the index of the snapshot. All are 0 or empty before anything
    has come.
    """

    index: int
    at: int
    hash: bytes


class Mirror(Protocol):
    """The mirror of a replica, as the puller of the origin's feed uses it (spec/region 5)."""

    @property
    def active(self) -> bool:
        """True if this node leads a replica that can take frames now. Only then is anything to be pulled."""

    @property
    def halted(self) -> str | None:
        """The reason, as a sentence, why this replica takes nothing, if a person has to act; otherwise None."""

    @property
    def origin(self) -> bytes | None:
        """The id of the cluster that the mirror is a copy of; None before anything has come."""

    def position(self) -> MirrorPosition:
        """Return the position after which the next frames must begin."""

    async def offer(self, frames: Sequence[Frame]) -> bool:
        """Log consecutive frames, which follow the position, or the frames offered before.

        Returns True once they are committed and executed here. False: they were not, or that is unknown; stop pulling,
        and begin again at the position when the mirror is active. Raises ValueError if they are not entries of a log.
        """

    async def install(self, path: Path, index: int, chain: bytes) -> str | None:
        """Replace the mirror with a snapshot of the origin: a file with the stream that FEED SNAPSHOT sends.

        `index`, `chain`: the entry after which it was taken, and the hash of the origin's chain there. Begins again
        from the file when an outcome is lost while the mirror is active. Returns None once the mirror has reached that
        entry, or else why it has not, as a sentence: if the mirror is active nevertheless, this snapshot is of no use.
        Raises OSError if the file cannot be read.
        """


class Cluster(Protocol):
    """A replicated state machine and its cluster."""

    name: str                   # of this node
    machine: Machine            # the applied state; read-only, and valid only until the next call
    feed: Feed                  # its log, for copies in other regions

    @property
    def serving(self) -> bool:
        """True if this node may execute queue commands now (spec/cluster 1.2)."""

    @property
    def holds_lease(self) -> bool:
        """True if this node serves and no other can at this moment; `serving` may lag by milliseconds."""

    @property
    def is_replica(self) -> bool:
        """True if this cluster serves nobody because it follows an origin in another region, or is going to."""

    @property
    def mirror(self) -> Mirror:
        """The mirror, for the puller of a replica."""

    @property
    def online(self) -> bool:
        """True if this node is switched online (OFFLINE, ONLINE)."""

    def propose(self, operation: Operation, pending: Pending) -> None:
        """Propose an operation on behalf of the node itself."""

    def propose_for(
        self, client: object, operation: Operation, pending: ClientPending, behind: bool = False,
    ) -> bool:
        """Propose an operation for a client. The operations of one client stay in the order of their proposal.

        When more is queued than the next entry can hold, clients take turns. `behind`: the operation must directly
        follow the previous proposal, which was for the same client. Returns True when this client's queued operations
        take up its share of memory, or all clients' together do (BACKLOG_BYTES_MAX): the client should then propose
        nothing until one of its operations has an outcome.
        """

    @property
    def collecting(self) -> int:
        """The number of the entry for which operations are being collected; 0 while clients take turns.

        An operation proposed while this number is unchanged follows earlier ones in their entry, if there is room.
        """

    def withdraw(self, client: object) -> None:
        """Drop the operations of a disconnected client that wait for a turn; their outcome is overdue()."""

    @property
    def share(self) -> int:
        """The maximum number of operations that one client should have proposed, so that all are served soon."""

    @property
    def time_ms(self) -> int:
        """Replicated time now, as far as this node knows it; the machine's time changes only with entries."""

    @property
    def full(self) -> bool:
        """True if jobs are refused for lack of room on disk or in memory, here or on too many nodes.

        Jobs can still be removed then.
        """

    @property
    def backlog_bytes(self) -> int:
        """Memory of operations that are proposed and not yet applied, see BACKLOG_BYTES_MAX."""

    def subscribed(self, types: frozenset[str]) -> None:
        """Set the types of events subscribed on this node. All nodes will record them, this one at once."""

    def listen(self, channels: list[Channels]) -> None:
        """Announce to the other nodes the channels of NOTIFY that this node's subscribers hear (spec/events 5)."""

    @property
    def listening_known(self) -> bool:
        """True if the leader knows the channels last announced by `listen`."""

    def notify(self, channel: str, data: bytes) -> int:
        """Send a message to all subscribers, on this node and the others; returns how many, as far as is known.

        Only while this node serves.
        """

    def leader(self) -> str | None:
        """The name of the leader, None when this node knows none."""

    def interconnect_id(self) -> int:
        """The number that INTERCONNECT reports (spec/cluster 5): minimal only on the serving leader."""

    def status(self) -> list[NodeStatus]:
        """All members, ordered by server id."""

    def figures(self) -> Figures:
        """The state of this node for monitoring."""

    def age_s(self) -> float:
        """The maximum age of the applied state: seconds since it was known to contain all committed entries.

        0 on a leader that is in contact with a majority; infinite on a node that has not heard a leader yet.
        """

    def state_hash(self) -> tuple[int, bytes]:
        """CLUSTER HASH: the index of the last executed entry and a hash of the log and its replies up to it.

        In a replica these are the origin's, and 0 before anything has come from it.
        """

    async def go_offline(self) -> None:
        """OFFLINE: stop serving, finish what was proposed, hand leadership over. Returns within 5 s."""

    def go_online(self) -> None:
        """ONLINE: allow this node to lead and serve again."""

    async def export_snapshot(self, path: Path, *, users: bool = False) -> None:
        """Write the applied state to a new file at `path` while the loop continues. Raises OSError.

        `users`: with the users that are kept in the log, and their keys.
        """

    async def export_for_copy(self, path: Path) -> tuple[int, bytes]:
        """Write the applied state, with users, to a new file as export_snapshot() does, for a copy to begin with.

        Returns the index of its last executed entry, and the hash of the chain there. Raises OSError.
        """

    async def add_node(self, name: str, peer: str, client: str) -> AddNodeReply:
        """CLUSTER ADD: start replicating to `name`, and make it a voter once it has caught up.

        `peer` and `client` are its addresses ("host:port"). Raises NotLeader and OutcomeUnknown.
        """

    async def remove_node(self, name: str) -> RemoveNodeReply | NotPossible:
        """CLUSTER REMOVE: remove `name` from the members; returns once a majority of the others has applied that.

        NotPossible("quorum"): too few of the remaining nodes are running. Raises NotLeader and OutcomeUnknown.
        """

    async def transfer(self, name: str | None) -> NodeStatus | NotPossible:
        """CLUSTER TRANSFER: hand leadership to `name`, or to any suitable node (None). Returns the new leader.

        Words of NotPossible: unknown, learner, down, offline, full, behind, alone, busy (another transfer is in
        progress), timeout. Raises NotLeader.
        """

    async def switch_service(self, online: bool) -> SwitchServiceReply:
        """CLUSTER OFFLINE and ONLINE: switch the whole service permanently. Raises NotLeader and OutcomeUnknown."""

    async def promote(self, grace_ms: int) -> PromoteReply:
        """CLUSTER PROMOTE: make the mirror of this replica the state of its cluster (spec/region 3).

        Raises NotLeader and OutcomeUnknown.
        """

    async def fence(self, replica: str) -> FenceReply:
        """CLUSTER FENCED: switch the service off for good, in favour of the replica with this id (spec/region 4).

        Raises NotLeader and OutcomeUnknown.
        """

    async def forward_command(self, user: str | None, address: str, command: bytes) -> bytes:
        """Let the leader execute a command of the protocol, with its data, as this user; returns the whole answer.

        `address`: of the client, for logs. The leader looks up the user's rights. Raises NotLeader if it was not
        executed, and OutcomeUnknown.
        """

    def forward_call(
        self, user: str | None, address: str, data: bytes, on_outcome: Callable[[bytes | None], None],
    ) -> int | None:
        """Let the leader execute a call for a client of this node; `data` is for the leader's gateway.

        `on_outcome` is called once with the outcome, or with None if that is lost: the call may or may not have been
        executed. Returns a number for `cancel_call`; if no other node leads, or too much is queued for it, returns None
        and never calls `on_outcome`. Raises ValueError if `data` exceeds CALL_BYTES_MAX, which also limits outcomes.
        """

    def cancel_call(self, number: int) -> None:
        """Make a forwarded call end soon; its outcome is still reported."""

    async def compact(self) -> int:
        """CLUSTER SNAPSHOT: write a snapshot on this node and cut its log; returns the snapshot's index.

        Raises OSError if the snapshot cannot be written.
        """
