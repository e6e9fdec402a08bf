"""The peers of a node with their snapshot transfers, and the context shared by the parts of the Raft transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode, Replica
from sockpqd.cluster.snapshots.transfers import IncomingSnapshot, OutgoingSnapshot
from sockpqd.cluster.wire.messages import Info, Message


class Network(Protocol):
    """Carries messages to peers: sockets in a node, queues in a simulation."""

    def send(self, name: str, message: Message) -> None:
        """Queue a message for a peer until the driver flushes; it is lost without a connection."""

    def buffered_bytes(self, name: str) -> int:
        """Bytes queued for this peer that the operating system has not accepted yet."""


class OutgoingTransfer:
    """A snapshot being sent to a peer; the open file stays readable when a newer one replaces it."""

    def __init__(self, number: int, source: OutgoingSnapshot) -> None:
        self.number = number
        self.source = source
        self.offset = 0
        self.sent_at: float | None = None       # when the last chunk was sent

    def close(self) -> None:
        """Close the file, whether or not the transfer is complete."""
        self.source.close()


class IncomingTransfer:
    """A snapshot being received into a file of its own."""

    def __init__(self, number: int, sink: IncomingSnapshot) -> None:
        self.number = number
        self.sink = sink

    def close(self) -> None:
        """Abort the transfer and remove what was received."""
        self.sink.abort()


class Peer:
    """Another node, and what is known about it from the current connection."""

    __slots__ = (
        "acked_sent_at", "admit_after", "admit_target", "beat_at", "choked", "epoch", "info", "info_at", "leaves_at",
        "leaving", "match", "name", "node", "promised_until", "receiving", "sending", "sent_up_to", "term", "up",
    )

    def __init__(self, node: PeerNode) -> None:
        self.node = node
        self.name: str = node.id
        self.up = False
        self.leaving = False                    # no longer a member; its connection is kept
        self.leaves_at = 0.0                    # until then
        self.info: Info | None = None           # its last Info, kept when the connection is lost
        self.info_at = 0.0                      # when that arrived by our clock, seconds
        self.term = -1                          # the leadership that the fields below belong to
        self.epoch = 0                          # rises with each connection, leadership and reset of the peer's log
        self.sent_up_to: tuple[int, int] | None = None      # (index, term) of the last entry sent in this epoch
        self.match = 0                          # our log and the peer's are equal up to this index, on this connection
        self.acked_sent_at = float("-inf")      # when we sent the newest message of this term that it acknowledged
        self.promised_until = float("-inf")     # it elects nobody else before this time, by our clock (lease.py)
        self.beat_at = 0.0                      # when we last sent it a heartbeat of our own
        self.choked = False                     # the library believes it disconnected, so no entries are sent
        self.sending: OutgoingTransfer | None = None
        self.receiving: IncomingTransfer | None = None
        self.admit_target: int | None = None    # voter_admission.py
        self.admit_after = 0.0

    def lead(self, term: int) -> None:
        """Reset what belongs to an earlier leadership of ours, if this term is a new one."""
        if self.term != term:
            self.term = term
            self.match = 0
            self.forget_answers()
            self.admit_target = None
            self.new_epoch()

    def forget_answers(self) -> None:
        """Forget all acknowledgements so far: they may be of another term, or of a node without the right to vote."""
        self.acked_sent_at = self.promised_until = float("-inf")

    def new_epoch(self) -> None:
        """Start a new epoch: messages sent so far may be lost, and late answers to them show the old epoch."""
        self.epoch += 1
        self.sent_up_to = None


class Context:
    """The state that the parts of the transport share; RaftTransport.bind sets `replica` before anything runs."""

    replica: Replica

    def __init__(
        self, name: str, journal: Journal, network: Network,
        deliver: Callable[[PeerNode | None, dict[str, Any]], None],
    ) -> None:
        """`deliver(node, message)`: gives the library a message as if it came from this node."""
        self.name = name
        self.peers: dict[str, Peer] = {}
        self.journal = journal
        self.network = network
        self.now = 0.0                          # monotonic seconds, set at the start of each turn
        self.promise_ms = 0                     # leader: what messages to followers ask for (lease.py)
        self.deliver = deliver

    def send(self, peer: Peer, message: Message) -> None:
        """Queue a message for a peer if it is connected."""
        if peer.up:
            self.network.send(peer.name, message)

    def leads(self) -> bool:
        """Return whether this node believes that it is the leader of the current term."""
        return self.replica.is_leader

    def adopt_term(self, peer: Peer, term: int) -> None:
        """Adopt a higher term through a vote request that cannot win, the only way the library offers."""
        if term > self.replica.term:
            self.deliver(peer.node, {
                "type": "request_vote", "term": term, "last_log_index": 0, "last_log_term": -1,
            })
