"""The transport pysyncobj is given, with the rules that make it safe inside.

Everything the library sends comes through send(), everything peers send through receive(); the parts (appending,
elections, transfer, admission) see to it that only what Raft allows passes. No private name of the library is used.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

from cluster.admission import Admission
from cluster.appending import Receiver, Sender
from cluster.context import Context, Network, Peer
from cluster.elections import Elections
from cluster.journal import Journal
from cluster.library import NOT_LEADER, PeerNode, Replica, Transport
from cluster.messages import (
    Ack,
    Admit,
    Append,
    Heartbeat,
    Hello,
    Info,
    Message,
    PreVote,
    PreVoteAnswer,
    RequestVote,
    SnapshotChunk,
    StaleTerm,
    TimeoutNow,
    Vote,
)
from cluster.settings import Settings
from cluster.snapshots import SnapshotStore
from cluster.transfer import Transfers

log = logging.getLogger("sockpqd.cluster")


class Guard(Transport):  # type: ignore[misc]
    """Stands between one Replica and the network. bind() must be called before the first tick."""

    def __init__(
        self,
        settings: Settings,
        nodes: list[PeerNode],
        journal: Journal,
        store: SnapshotStore,
        network: Network,
        rng: random.Random,
    ) -> None:
        super().__init__(None, None, nodes)
        self.context = Context(settings.name, [Peer(node) for node in nodes], journal, network, rng)
        self.context.deliver = self._onMessageReceived
        self.elections = Elections(self.context, settings.election_min_ms / 1000, settings.election_max_ms / 1000)
        self.admission = Admission(self.context, self.elections)
        self._lease_s = settings.lease_ms / 1000
        self._transfers = Transfers(self.context, store)
        self._sender = Sender(
            self.context, self._transfers, settings.heartbeat_ms / 1000, self._onNodeConnected,
            self._onNodeDisconnected,
        )
        self._receiver = Receiver(self.context)
        self.leader_commit = 0                  # what the present leader last called committed
        self._by_node = {peer.node: peer for peer in self.context.peers.values()}
        self._receive: dict[type, Callable[[Peer, Any], None]] = {
            Info: self._info,
            Append: self._append,
            Heartbeat: self._heartbeat,
            Ack: self._sender.acknowledged,
            SnapshotChunk: self._snapshot_chunk,
            PreVote: self.elections.asked_before,
            PreVoteAnswer: self.elections.answered_before,
            RequestVote: self.elections.asked,
            Vote: self.elections.vote_received,
            StaleTerm: self._stale_term,
            TimeoutNow: self.elections.handed_over,
            Admit: self.admission.admitted,
        }
        self._send: dict[str, Callable[[Peer, dict[str, Any]], None]] = {
            "append_entries": self._sender.append,
            "next_node_idx": self._receiver.library_answers,
            "request_vote": self._library_asks_vote,
            "response_vote": self._library_votes,
            "timeout_now": self._library_hands_over,
            "apply_command": self._library_forwards,
        }

    def bind(self, replica: Replica) -> None:
        """Name the library's object that this transport serves."""
        self.context.replica = replica

    # From the library

    def send(self, node: PeerNode, message: dict[str, Any]) -> bool:
        """The library's way out. Kinds that it should never send here are dropped."""
        handler = self._send.get(message["type"])
        if handler is not None:
            handler(self._by_node[node], message)
        return handler is not None

    def _library_asks_vote(self, peer: Peer, message: dict[str, Any]) -> None:
        self.elections.library_asks(peer, message["term"], message["last_log_index"], message["last_log_term"])

    def _library_votes(self, peer: Peer, message: dict[str, Any]) -> None:
        self.elections.voted()
        self.context.send(peer, Vote(message["term"]))

    def _library_hands_over(self, peer: Peer, message: dict[str, Any]) -> None:
        self.context.handed_over, self.context.handed_over_at = message["term"], self.context.now
        self.context.send(peer, TimeoutNow(message["term"]))

    def _library_forwards(self, peer: Peer, message: dict[str, Any]) -> None:
        # Proposals are never forwarded: clients talk to the leader. Answered at once: surely not executed.
        if "request_id" in message:
            self._onMessageReceived(peer.node, {
                "type": "apply_command_response", "request_id": message["request_id"], "error": NOT_LEADER,
            })

    # From the network

    def link_up(self, name: str, hello: Hello) -> None:
        """A connection to this peer is ready in both directions."""
        peer = self.context.peers[name]
        log.info("connected to %s", name)
        peer.up = True
        peer.info = Info(
            role="FOLLOWER", term=0, applied=0, lag=0, online=True, voter=hello.voter, empty=hello.empty, full=False,
            wall_ms=0, version=hello.version, checkpoint=0, chain=b"",
        ) if peer.info is None else _restarted(peer.info, hello)
        peer.new_epoch()
        peer.choked = False
        self._onNodeConnected(peer.node)
        lost = self.admission.lost_its_disk(peer, hello.journal)
        peer.journal = hello.journal
        peer.match = 0
        if lost:
            log.warning("%s has lost its disk: a new election makes us count what it really holds", name)
            self.context.adopt_term(peer, self.context.replica.term + 1)

    def link_down(self, name: str) -> None:
        """The connection to this peer is lost."""
        peer = self.context.peers[name]
        log.info("connection to %s lost", name)
        peer.up = False
        peer.choked = False
        peer.proof = float("-inf")              # it may have voted for another since
        peer.admit_target = None
        peer.new_epoch()
        self._transfers.connection_lost(peer)
        self._onNodeDisconnected(peer.node)
        replica = self.context.replica
        if replica.leader_node is peer.node and not replica.is_leader:
            self.elections.leader_lost()

    def receiving(self, name: str) -> None:
        """A large message of this peer is arriving; what a former leader says in passing does not count."""
        replica = self.context.replica
        if replica.leader_node is self.context.peers[name].node and not replica.is_leader:
            self.elections.leader_sends()

    def receive(self, name: str, message: Message) -> None:
        """A message from a connected peer. Raises FailStop when this node must not go on."""
        self._receive[type(message)](self.context.peers[name], message)

    def _info(self, peer: Peer, message: Info) -> None:
        peer.info, peer.info_at = message, self.context.now

    def _leader_heard(self, commit: int) -> None:
        self.elections.leader_heard()
        self.leader_commit = commit

    def _append(self, peer: Peer, message: Append) -> None:
        if message.term >= self.context.replica.term:
            self._leader_heard(message.commit)
        self._receiver.append(peer, message)

    def _heartbeat(self, peer: Peer, message: Heartbeat) -> None:
        if message.term >= self.context.replica.term:
            self._leader_heard(message.commit)
        self._receiver.heartbeat(peer, message)

    def _snapshot_chunk(self, peer: Peer, message: SnapshotChunk) -> None:
        if message.term < self.context.replica.term:
            return
        self._leader_heard(message.commit)
        receiver = self._receiver
        receiver.begin(message.term, message.epoch, message.sent)
        try:
            receiver.contact(peer, message.term, message.commit)
            receiver.mute()
            index = self._transfers.take(peer, message)
            if index is None:
                receiver.answer_alive(peer)
            elif index:
                receiver.answer(peer, index + 1, success=True, snapshot=message.transfer)
            else:
                receiver.answer(peer, self.context.journal.last_index + 1, reset=True, snapshot=message.transfer)
        finally:
            receiver.end()

    def _stale_term(self, peer: Peer, message: StaleTerm) -> None:
        self.context.adopt_term(peer, message.term)

    # Time

    def tick(self, now: float) -> None:
        """Once in each turn, before the library's own tick. `now`: monotonic seconds."""
        self.context.now = now
        self._transfers.pump()
        self._sender.tick()
        self.admission.found()
        self.admission.tick()
        self.elections.tick()

    def lease_until(self) -> float:
        """Monotonic seconds up to which no other node can have been elected by followers that heard us.

        The age of a proof is counted from the moment we SENT the message that was answered. A closed connection voids
        its proof. Safety does not rest on this (every answer is committed first); it makes a cut-off leader say so in
        time.
        """
        context = self.context
        needed = context.majority - 1
        if needed == 0:
            return float("inf")
        term = context.replica.term
        proofs = sorted((peer.proof for peer in context.peers.values() if peer.up and peer.term == term), reverse=True)
        return proofs[needed - 1] + self._lease_s if len(proofs) >= needed else float("-inf")


def _restarted(info: Info, hello: Hello) -> Info:
    """What was known of a peer, with what its new greeting says."""
    return Info(
        role="FOLLOWER", term=info.term, applied=info.applied, lag=info.lag, online=info.online, voter=hello.voter,
        empty=hello.empty, full=info.full, wall_ms=info.wall_ms, version=hello.version,
        checkpoint=0, chain=b"",
    )
