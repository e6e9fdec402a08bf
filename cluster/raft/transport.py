"""The transport that pysyncobj gets, with the rules that make it safe.

Everything the library sends goes through send(), everything peers send through receive(); the parts (append_entries,
elections, snapshot_transfer, voter_admission) let pass only what Raft allows. They use only
public names of the library; what needs its private fields is in pysyncobj_adapter.py (Replica).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from typing import Any

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.raft import lease
from sockpqd.cluster.raft.append_entries import Receiver, Sender
from sockpqd.cluster.raft.elections import Elections
from sockpqd.cluster.raft.lease import Lease
from sockpqd.cluster.raft.peer import Context, Network, Peer
from sockpqd.cluster.raft.pysyncobj_adapter import NOT_LEADER, QUORUM, PeerNode, Replica, WatchedTransport
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.raft.snapshot_transfer import Room, SnapshotTransfers
from sockpqd.cluster.raft.steady_lane import SteadyLane
from sockpqd.cluster.raft.voter_admission import Admission
from sockpqd.cluster.raft.voting_right import VotingRight
from sockpqd.cluster.settings import NodeSettings
from sockpqd.cluster.snapshots.snapshot_store import SnapshotStore
from sockpqd.cluster.wire import messages

log = logging.getLogger("sockpqd.cluster")


class RaftTransport(WatchedTransport):
    """Stands between one Replica and the network. bind() must be called before the first tick."""

    def __init__(
        self,
        settings: NodeSettings,
        journal: Journal,
        store: SnapshotStore,
        network: Network,
        rng: random.Random,
    ) -> None:
        super().__init__(None, None, [])
        self.context = Context(settings.name, journal, network, self._onMessageReceived)
        self.peers = self.context.peers
        self.quorum = Quorum(self.context)
        self.right = VotingRight(self.context, self.quorum)
        self.elections = Elections(
            self.context, self.quorum, self.right, rng, settings.election_min_ms / 1000,
            settings.election_max_ms / 1000,
        )
        self.admission = Admission(self.context, self.quorum, self.right, self.elections)
        self.lease = Lease(self.context, self.quorum, settings.election_min_ms / 1000)
        self._lease_ends = float("-inf")        # of the lease, at the last tick
        self._contact_s = settings.lease_ms / 1000
        self._transfers = SnapshotTransfers(self.context, store, self.quorum)
        self._sender = Sender(
            self.context, self.quorum, self._transfers, settings.heartbeat_ms / 1000, self._onReadonlyNodeConnected,
            self._onReadonlyNodeDisconnected,
        )
        self.lane = SteadyLane(self.context, self.quorum)
        self._receiver = Receiver(self.context, self.lane)
        self.members_leaving = False            # some peer is leaving
        self.leader_commit = 0                  # the commit index last reported by the present leader
        self._receive: dict[type, Callable[[Peer, Any], None]] = {
            messages.Info: self._info,
            messages.Append: self._append,
            messages.Heartbeat: self._heartbeat,
            messages.Ack: self._sender.acknowledged,
            messages.SnapshotChunk: self._snapshot_chunk,
            messages.PreVote: self.elections.pre_vote_requested,
            messages.PreVoteAnswer: self.elections.pre_vote_answered,
            messages.RequestVote: self.elections.vote_requested,
            messages.Vote: self.elections.vote_received,
            messages.StaleTerm: self._stale_term,
            messages.TimeoutNow: self.elections.timeout_now,
            messages.Admit: self.admission.admitted,
        }
        self._send: dict[str, Callable[[Peer, dict[str, Any]], None]] = {
            "append_entries": self._sender.append,
            "next_node_idx": self._receiver.library_answers,
            "response_vote": self._library_votes,
            "apply_command": self._library_forwards,
        }

    def bind(self, replica: Replica, now: float) -> None:
        """Connect this transport to the library's object, when the node starts. `now`: monotonic seconds."""
        self.context.replica = replica
        self.context.now = now
        self.right.started()
        self.elections.started()

    def use_room(self, room: Room) -> None:
        """Let `room` make room for snapshots of other nodes."""
        self._transfers.room = room

    def change_members(self, voters: Iterable[str], peers: Iterable[str], now: float, *, learns: bool) -> None:
        """Count `voters` and replicate to `peers`, which are all members but this one, learners included.

        `learns`: this node is the learner. A removed member keeps its connection for a while, so that it learns of its
        removal.
        """
        context = self.context
        for name in peers:
            if name not in context.peers:
                context.peers[name] = Peer(PeerNode(name))
        self.quorum.change(voters, learns=learns)
        if self.quorum.majority == 1:
            self._onNodeConnected(QUORUM)       # without a connection the library would not start an election
        else:
            self._onNodeDisconnected(QUORUM)    # so the library sends it nothing
        for name, peer in context.peers.items():
            leaving = name not in peers
            if leaving and not peer.leaving:
                peer.leaves_at = now + limits.FAREWELL_S
            peer.leaving = leaving
            self.members_leaving = self.members_leaving or leaving

    def meet(self, name: str) -> None:
        """Add a peer that this node does not know as a member; it does not count for majorities."""
        self.context.peers[name] = Peer(PeerNode(name))

    def remove_departed(self) -> list[str]:
        """Remove peers whose time to leave has come; returns their names, so that their connections can be closed."""
        context, leader = self.context, self.context.replica.leader_node
        gone = [
            peer.name for peer in context.peers.values()
            if peer.leaving and context.now >= peer.leaves_at and peer.node is not leader
        ]
        for name in gone:
            if context.peers[name].up:
                self.link_down(name)
            del context.peers[name]
        self.members_leaving = any(peer.leaving for peer in context.peers.values())
        return gone

    # From the library

    def send(self, node: PeerNode, message: dict[str, Any]) -> bool:
        """Handle a message that the library sends; kinds that it should never send are dropped."""
        if node is QUORUM:
            if message["type"] == "request_vote":
                self.elections.library_requests_votes(
                    message["term"], message["last_log_index"], message["last_log_term"])
            return True
        handler = self._send.get(message["type"])
        if handler is not None:
            handler(self.context.peers[node.id], message)
        return handler is not None

    def _library_votes(self, peer: Peer, message: dict[str, Any]) -> None:
        self.elections.vote_given()
        self.context.send(peer, messages.Vote(message["term"]))

    def _library_forwards(self, peer: Peer, message: dict[str, Any]) -> None:
        # Proposals are never forwarded, because clients talk to the leader: answer at once that it was not executed.
        if "request_id" in message:
            self._onMessageReceived(peer.node, {
                "type": "apply_command_response", "request_id": message["request_id"], "error": NOT_LEADER,
            })

    # From the network

    def link_up(self, name: str, hello: messages.Hello) -> None:
        """Record that this peer is connected in both directions."""
        peer = self.context.peers[name]
        log.info("connected to %s", name)
        peer.up = True
        peer.info = messages.Info(
            role="FOLLOWER", term=0, applied=0, lag=0, online=True, voter=hello.voter, empty=hello.empty, full=False,
            wall_ms=hello.wall_ms, version=hello.version, checkpoint=0, chain=b"", time_ms=hello.time_ms,
            level=hello.level, raise_to=hello.raise_to, cluster_level=hello.cluster_level,
        ) if peer.info is None else _restarted(peer.info, hello)
        peer.info_at = self.context.now
        peer.new_epoch()
        peer.choked = False
        self.right.greeted(peer, hello)
        self._onReadonlyNodeConnected(peer.node)

    def link_down(self, name: str) -> None:
        """Record that the connection to this peer is lost."""
        peer = self.context.peers[name]
        log.info("connection to %s lost", name)
        self._note_acknowledged(peer)
        peer.up = False
        peer.choked = False
        peer.forget_answers()                   # it may have voted for another node since
        peer.match = 0                          # it may have lost its disk
        peer.admit_target = None
        peer.new_epoch()
        self._transfers.connection_lost(peer)
        self._onReadonlyNodeDisconnected(peer.node)
        replica = self.context.replica
        if replica.leader_node is peer.node and not replica.is_leader:
            self.elections.leader_lost()

    def receiving(self, name: str, now: float) -> None:
        """Record that a large message is arriving from this peer, which shows that it is alive if it is the leader.

        `now`: monotonic seconds; the last turn may be a while ago.
        """
        self.context.now = now
        replica = self.context.replica
        if replica.leader_node is self.context.peers[name].node and not replica.is_leader:
            self.elections.leader_sends()

    def hand_over(self, peer: Peer) -> None:
        """Leader: ask a peer that has the complete log to start an election at once."""
        self.elections.hand_over(peer)

    def send_commit_index(self) -> None:
        """Leader: send the commit index now instead of with the next entry."""
        self._sender.send_commit_index()

    def receive(self, name: str, message: messages.Message) -> None:
        """Handle a message from a connected peer. Raises FailStop if this node must stop."""
        self._receive[type(message)](self.context.peers[name], message)

    def _info(self, peer: Peer, message: messages.Info) -> None:
        if message.voter and peer.info is not None and not peer.info.voter:
            # Acknowledgements by a node without the right to vote never count: it may have voted for a newer leader
            # before.
            peer.match = 0
            peer.forget_answers()
        peer.info, peer.info_at = message, self.context.now

    def _leader_heard(self, peer: Peer, commit: int, promise_ms: int) -> None:
        self.elections.leader_heard(promise_ms)
        self.right.leader_heard()
        self.leader_commit = commit
        # A leader commits nothing that is not durable on its own disk.
        self.context.journal.acknowledge(peer.name, commit)

    def _note_acknowledged(self, peer: Peer) -> None:
        context = self.context
        if context.leads() and peer.term == context.replica.term:
            # Committed entries are never removed from a log. A voter whose log ends before them has lost something.
            context.journal.acknowledge(peer.name, min(peer.match, context.replica.commit_index))

    def _append(self, peer: Peer, message: messages.Append) -> None:
        if message.term >= self.context.replica.term:
            self._leader_heard(peer, message.commit, message.promise_ms)
        self._receiver.append(peer, message)

    def _heartbeat(self, peer: Peer, message: messages.Heartbeat) -> None:
        if message.term >= self.context.replica.term:
            self._leader_heard(peer, message.commit, message.promise_ms)
        self._receiver.heartbeat(peer, message)

    def _snapshot_chunk(self, peer: Peer, message: messages.SnapshotChunk) -> None:
        if message.term < self.context.replica.term:
            return
        self._leader_heard(peer, message.commit, message.promise_ms)
        receiver = self._receiver
        receiver.begin(message)
        try:
            receiver.contact(peer, message.term, message.commit)
            receiver.mute()
            index = self._transfers.receive_chunk(peer, message)
            if index is None:
                receiver.answer_alive(peer)
            elif index:
                receiver.answer(peer, index + 1, success=True, snapshot=message.transfer)
            else:
                receiver.answer(peer, self.context.journal.last_index + 1, reset=True, snapshot=message.transfer)
        finally:
            receiver.end()

    def _stale_term(self, peer: Peer, message: messages.StaleTerm) -> None:
        self.context.adopt_term(peer, message.term)

    def broadcast(self, message: messages.Message) -> None:
        """Queue a message for all connected peers."""
        for peer in self.peers.values():
            self.context.send(peer, message)

    # Time

    def begin_turn(self, now: float) -> None:
        """Set the time of a turn, in which everything happens at once. `now`: monotonic seconds."""
        self.context.now = now

    def tick(self, now: float) -> None:
        """Do the housekeeping before the library's own tick. `now`: monotonic seconds."""
        context = self.context
        context.now = now
        for peer in self.peers.values():
            self._note_acknowledged(peer)
        self._transfers.send_chunks()
        self._sender.tick()
        self.right.tick()
        self.admission.found_cluster()
        self.admission.tick()
        if context.leads():
            self.lease.tick()
            self._lease_ends = self.lease_until()
        self.elections.tick()

    @property
    def beat_at(self) -> float:
        """Leader: when something was last sent to the peers that do keep up; monotonic seconds."""
        return max(self._sender.sent_at, self.lane.sent_at)

    @property
    def unsettled(self) -> bool:
        """True if a peer needs more than entries and heartbeats: a snapshot, patience, admission, a farewell."""
        return self.members_leaving or any(
            peer.choked or peer.sending is not None or (peer.up and (peer.info is None or not peer.info.voter))
            for peer in self.peers.values()
        )

    def in_contact_until(self) -> float:
        """Leader: the monotonic time, in seconds, until which it serves unless a majority answers again."""
        return self.quorum.acked_sent_at() + self._contact_s

    def lease_until(self) -> float:
        """Leader: the monotonic time, in seconds, until which no other node can have been elected; may be in the past.

        There is no lease in a term in which another node was asked to take over: it may still do so.
        """
        return float("-inf") if self.elections.offered else self.quorum.promised_until()

    def lapsed(self, now: float) -> bool:
        """Leader: return whether the lease has expired, when an acknowledgement arrives.

        `now`: monotonic seconds.
        """
        if now < self._lease_ends or not self.context.leads() or now < self.lease_until():
            return False
        self.lease.lapsed(now)
        return True

    def note_promise(self, name: str, ack: messages.Ack) -> None:
        """Leader: count the promise in an acknowledgement that has arrived and is not handled yet."""
        peer, context = self.context.peers.get(name), self.context
        if peer is not None and context.leads() and ack.term == context.replica.term == peer.term:
            lease.promised(peer, ack)


def _restarted(info: messages.Info, hello: messages.Hello) -> messages.Info:
    """Update what is known about a peer after its new greeting."""
    return messages.Info(
        role="FOLLOWER", term=info.term, applied=info.applied, lag=info.lag, online=info.online, voter=hello.voter,
        empty=hello.empty, full=info.full, wall_ms=hello.wall_ms, version=hello.version,
        checkpoint=0, chain=b"", time_ms=hello.time_ms, exhausted=info.exhausted, subscribed=info.subscribed,
        level=hello.level, raise_to=hello.raise_to, cluster_level=hello.cluster_level, host=info.host,
        prefer=info.prefer,
    )
