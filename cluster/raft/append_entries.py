"""AppendEntries as in Raft's paper, around a library that sends too much and truncates too early.

Leader (Sender): each entry is sent once per connection instead of dozens of times (hazard H3); answers of an older term
or epoch are dropped (H2); a peer that does not keep up is choked instead of filling this node's memory.

Follower (Receiver): equal entries are skipped, and the log is cut only where it differs (H1); a mismatch steps back
over a whole term (H3b); the commit index never passes the compared entries (H9a); only kinds of entries that are known
to be safe are accepted (H5c, H10d). Entries that its journal has no room for are not accepted: the follower answers
that it is alive, so the leader keeps its lease, and asks for them again when there is room.
"""

from __future__ import annotations

from typing import Any

from sockpqd.cluster import limits
from sockpqd.cluster.errors import FailStop, RaftViolated
from sockpqd.cluster.raft import lease
from sockpqd.cluster.raft.peer import Context, Peer
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.raft.snapshot_transfer import SnapshotTransfers
from sockpqd.cluster.raft.steady_lane import ENTRY_KINDS, SteadyLane
from sockpqd.cluster.wire.messages import Ack, Append, Heartbeat, LogEntry, SnapshotChunk, StaleTerm


class Sender:
    """The leader's side: sends entries to its peers."""

    def __init__(
        self, context: Context, quorum: Quorum, transfers: SnapshotTransfers, heartbeat_s: float, connected: Any,
        disconnected: Any,
    ) -> None:
        self._context = context
        self._quorum = quorum
        self._heartbeat_s = heartbeat_s
        self._transfers = transfers
        self._connected = connected             # tell the library that a node is connected or not
        self._disconnected = disconnected
        self.sent_at = float("-inf")            # when the library last sent entries or a heartbeat, monotonic seconds

    def append(self, peer: Peer, message: dict[str, Any]) -> None:
        """Send the entries that the library wants to append at `peer`, except those already sent."""
        peer.lead(message["term"])
        self.sent_at = self._context.now
        if "transmission" in message:
            raise FailStop("an entry is larger than the library can send; data_bytes_max is too high")
        if "serialized" in message:
            self._transfers.begin(peer)
            self._choke(peer)
            self.beat(peer)
        elif not peer.choked:
            self._send_new(peer, message)

    def _send_new(self, peer: Peer, message: dict[str, Any]) -> None:
        journal = self._context.journal
        index, term, entries = message["prevLogIdx"], message["prevLogTerm"], message["entries"]
        if index is None:                       # the library looks beyond our log: probe at its end
            index, term, entries = journal.last_index, journal.last_term, []
        if peer.sent_up_to is not None and index < peer.sent_up_to[0]:
            entries = entries[peer.sent_up_to[0] - index:]
            index, term = peer.sent_up_to
        frame: list[LogEntry] = []
        size = 0
        buffered = self._context.network.buffered_bytes(peer.name) if entries else 0
        if buffered > limits.CHOKE_BYTES:
            self._choke(peer)
            return
        for entry in entries:
            if size >= limits.APPEND_BYTES:
                self._send(peer, message, index, term, frame)
                index, term = frame[-1][1], frame[-1][2]
                buffered += size
                frame, size = [], 0
                if buffered > limits.CHOKE_BYTES:
                    self._choke(peer)
                    return
            frame.append(entry)
            size += len(entry[0])
        self._send(peer, message, index, term, frame)

    def _send(self, peer: Peer, message: dict[str, Any], index: int, term: int, frame: list[LogEntry]) -> None:
        if frame:
            peer.sent_up_to = frame[-1][1], frame[-1][2]
        self._context.send(peer, Append(
            message["term"], peer.epoch, self._context.now, message["commit_index"], index, term, frame,
            self._context.promise_ms,
        ))

    def send_commit_index(self) -> None:
        """Send the commit index to all peers now; otherwise it travels with entries and heartbeats."""
        replica = self._context.replica
        for peer in self._context.peers.values():
            if peer.sent_up_to is not None and not peer.choked:
                self._send(peer, {"term": replica.term, "commit_index": replica.commit_index}, *peer.sent_up_to, [])

    def acknowledged(self, peer: Peer, ack: Ack) -> None:
        """Record an acknowledgement of our own term and serve its request for other entries; drop a stale one."""
        context = self._context
        if not context.leads() or ack.term != context.replica.term:
            return
        peer.lead(ack.term)
        peer.acked_sent_at = max(peer.acked_sent_at, ack.sent)
        lease.promised(peer, ack)
        self._quorum.heard()
        reset = ack.reset and ack.epoch == peer.epoch
        if reset:
            peer.new_epoch()                    # other rejections of the same epoch are stale
        if ack.success and not ack.reset:
            peer.match = max(peer.match, ack.next_index - 1)        # quorum.py counts it
        if ack.snapshot is not None:
            self._transfers.finished(peer, ack.snapshot, accepted=ack.success)
        if reset and not peer.choked:
            self._rewind(peer, ack.next_index)
            self._send_again(peer, ack.next_index)
        self._unchoke(peer)

    def _send_again(self, peer: Peer, next_index: int) -> None:
        """Send a peer the entries it asks for without waiting for the library's next heartbeat."""
        journal, replica = self._context.journal, self._context.replica
        term = journal.term_at(next_index - 1)
        if term is not None:                    # otherwise it needs a snapshot, which the library will ask for
            self._send_new(peer, {
                "term": replica.term, "commit_index": replica.commit_index, "prevLogIdx": next_index - 1,
                "prevLogTerm": term, "entries": journal[next_index - journal.first_index:],
            })

    def _rewind(self, peer: Peer, next_index: int) -> None:
        """Tell the library which entry to send next."""
        self._context.deliver(peer.node, {
            "type": "next_node_idx", "next_node_idx": next_index, "reset": True, "success": False,
        })

    def _choke(self, peer: Peer) -> None:
        if not peer.choked:
            peer.choked = True
            self._disconnected(peer.node)

    def _unchoke(self, peer: Peer) -> None:
        if not peer.choked or peer.sending is not None:
            return
        if self._context.network.buffered_bytes(peer.name) > limits.UNCHOKE_BYTES:
            return
        peer.choked = False
        self._connected(peer.node)
        known = peer.match if peer.sent_up_to is None else peer.sent_up_to[0]
        if self._context.leads() and known:
            self._rewind(peer, known + 1)

    def beat(self, peer: Peer) -> None:
        """Send our own heartbeat to a peer to which the library sends nothing at the moment."""
        context = self._context
        peer.beat_at = context.now
        replica = context.replica
        context.send(peer, Heartbeat(replica.term, peer.epoch, context.now, replica.commit_index, context.promise_ms))

    def tick(self) -> None:
        """Leader: send heartbeats to peers that receive the library's messages late or not at all.

        When this node no longer leads, release the choked ones.
        """
        context = self._context
        leads = context.leads()
        for peer in context.peers.values():
            if not peer.up:
                continue
            if not leads:
                if peer.choked:
                    self._unchoke(peer)
            elif context.now - peer.beat_at >= self._heartbeat_s:
                peer.beat_at = context.now
                if peer.choked or context.network.buffered_bytes(peer.name) > limits.CROWDED_BYTES:
                    self.beat(peer)


class Receiver:
    """The follower's side: receives entries and acknowledges them."""

    def __init__(self, context: Context, lane: SteadyLane) -> None:
        self._context = context
        self._lane = lane
        self._answering: tuple[int, int, float, int] | None = None      # of the message being handled; see Ack
        self._mute = False
        self._refuses = False           # there was no room for the last entries received

    def append(self, peer: Peer, message: Append) -> bool:
        """Handle AppendEntries; returns False if it was refused because its term is old."""
        if self._lane.follow(peer, message):
            self._refuses = False
            return True
        return self._handle(peer, message, lambda: self._append(peer, message))

    def heartbeat(self, peer: Peer, message: Heartbeat) -> bool:
        """Handle a heartbeat; returns False if it was refused because its term is old."""
        def alive() -> None:
            self.contact(peer, message.term, message.commit)
            self.answer_alive(peer)
        return self._handle(peer, message, alive)

    def _handle(self, peer: Peer, message: Any, handle: Any) -> bool:
        if message.term < self._context.replica.term:
            self._context.send(peer, StaleTerm(self._context.replica.term))
            return False
        self.begin(message)
        try:
            handle()
        finally:
            self.end()
        return True

    def begin(self, message: Append | Heartbeat | SnapshotChunk) -> None:
        """Begin to handle a message: answers sent until end() refer to it."""
        self._answering = (message.term, message.epoch, message.sent, message.promise_ms)

    def end(self) -> None:
        self._answering = None
        self._mute = False

    def mute(self) -> None:
        """Drop the library's own answers until end(): a snapshot install is answered by its outcome only (H9d)."""
        self._mute = True

    def library_answers(self, peer: Peer, message: dict[str, Any]) -> None:
        """Send the library's answer to the message it was given, unless mute() was called."""
        if not self._mute:
            self.answer(peer, message["next_node_idx"], reset=message["reset"], success=message["success"])

    def answer(
        self, peer: Peer, next_index: int, *, reset: bool = False, success: bool = False, snapshot: int | None = None,
    ) -> None:
        """Send an Ack for the message being handled."""
        if self._answering is not None:
            term, epoch, sent, promise_ms = self._answering
            self._context.send(peer, Ack(term, epoch, sent, next_index, reset, success, snapshot, promise_ms))

    def answer_alive(self, peer: Peer) -> None:
        """Acknowledge the message being handled without promising anything about the log."""
        self.answer(peer, 0)

    def contact(self, peer: Peer, term: int, commit: int, known: int | None = None) -> None:
        """Tell the library that this leader is alive, but nothing about the log.

        The library would accept any commit index up to the end of its own log, compared or not (H9a), so it is capped
        to `known`, by default the index already committed here.
        """
        known = self._context.replica.commit_index if known is None else known
        self._context.deliver(peer.node, {
            "type": "append_entries", "term": term, "serialized": None, "commit_index": min(commit, known),
        })

    def _append(self, peer: Peer, message: Append) -> None:
        journal = self._context.journal
        index, term, entries = message.prev_index, message.prev_term, message.entries
        if index < journal.first_index:
            # everything before our first entry is compacted, therefore committed, therefore equal
            entries = entries[journal.first_index - index:]
            index = journal.first_index
            term = journal.term_at(index) or 0
        if index > journal.last_index:
            self.contact(peer, message.term, message.commit)
            if self._refuses and journal.segments.short:
                self.answer_alive(peer)         # otherwise it would be sent again and again
            else:
                self.answer(peer, journal.last_index + 1, reset=True)
        elif journal.term_at(index) != term:
            self._step_back(peer, message, index)
        else:
            self._compare(peer, message, index, entries)

    def _step_back(self, peer: Peer, message: Append, index: int) -> None:
        """Ask for the log from the start of the conflicting term: a round for each term, not for each entry (H3b)."""
        journal, commit = self._context.journal, self._context.replica.commit_index
        if index <= commit:
            raise RaftViolated(f"leader {peer.name} disagrees about entry {index}, which is committed here ({commit})")
        conflict = journal.term_at(index)
        while index - 1 > commit and journal.term_at(index - 1) == conflict:
            index -= 1
        self.contact(peer, message.term, message.commit)
        self.answer(peer, index, reset=True)

    def _compare(self, peer: Peer, message: Append, index: int, entries: list[LogEntry]) -> None:
        journal, commit = self._context.journal, self._context.replica.commit_index
        equal = 0
        while equal < len(entries) and journal.term_at(index + equal + 1) == entries[equal][2]:
            equal += 1
        matched = index + equal
        rest = entries[equal:]
        for offset, (command, entry_index, _) in enumerate(rest):
            if command[:1] not in ENTRY_KINDS or entry_index != matched + 1 + offset:
                raise RaftViolated(f"leader {peer.name} sends entry {entry_index} of kind {command[:1]!r}")
        if rest and matched < journal.last_index and matched < commit:
            raise RaftViolated(f"leader {peer.name} wants to cut entry {matched + 1}, committed up to {commit} here")
        full = self._refuses = bool(rest) and not journal.has_room_for(rest)
        if full or (not rest and matched < journal.last_index):
            if full or journal.last_term != message.term:
                # Keep the uncompared tail and acknowledge only what was compared; a full disk accepts nothing more.
                self.contact(peer, message.term, message.commit, max(matched, commit))
                self.answer(peer, matched + 1, success=True)
                return
            matched = journal.last_index        # our last entry is of this very leader: log matching
        self._context.deliver(peer.node, {
            "type": "append_entries", "term": message.term, "commit_index": message.commit, "entries": rest,
            "prevLogIdx": matched, "prevLogTerm": journal.term_at(matched),
        })
