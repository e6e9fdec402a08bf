"""Snapshot transfer without the library: in chunks, with flow control, checked before it replaces anything.

The library would move the commit index with every chunk (H9a), replace a good file with a broken one (H9c), acknowledge
an install that failed (H9d), flood the network while a snapshot is being written (H9e) and leave the leader without
answers during a transfer (H9f). Here it sees one empty marker; the bytes travel in SnapshotChunk messages, each is
answered, and the install is acknowledged only when the machine has the new state.
"""

from __future__ import annotations

import logging
from typing import Protocol

from sockpqd.cluster import limits
from sockpqd.cluster.raft.peer import Context, IncomingTransfer, OutgoingTransfer, Peer
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.snapshots.snapshot_store import SnapshotDamaged, SnapshotStore
from sockpqd.cluster.storage.disk import NO_ROOM, NO_SPACE, passes
from sockpqd.cluster.storage.errors import StorageError
from sockpqd.cluster.wire.messages import SnapshotChunk

log = logging.getLogger("sockpqd.cluster")

NEVER = float("-inf")
ALL = 1 << 62       # bytes: a leader of an earlier version does not say how large its snapshot is


class Room(Protocol):
    """Makes room for a snapshot of another node (capacity.py)."""

    def make_way(self, missing: int, *, covered: bool) -> bool:
        """Give up one thing that this node can do without, for `missing` bytes; returns False if nothing is left.

        `covered`: see SnapshotChunk.
        """

    def state_bytes(self) -> int:
        """Return the approximate size of a snapshot written now."""

    def give_up_state(self, size: int) -> StorageError | None:
        """Decide durably that the next start deletes all files of this node, which are in the way of `size` bytes.

        Returns the error with which this process must end; None if the files stay.
        """


class SnapshotTransfers:
    """Sends snapshots to peers and receives them. `room`: makes room for them; None: nothing can be given up."""

    def __init__(self, context: Context, store: SnapshotStore, quorum: Quorum) -> None:
        self._context = context
        self._store = store
        self._quorum = quorum
        self.room: Room | None = None
        self._lacked_since = self._lacked_at = NEVER    # when there was no room for a snapshot, first and last,
        self._lacked_applied = 0                        # and the entry that was applied then
        self._numbers = 0
        self._not_before: dict[str, float] = {}     # when a peer that could not use a snapshot may get another

    def begin(self, peer: Peer) -> None:
        """Leader: start sending the newest snapshot, unless one is being sent or was refused just before."""
        if peer.sending is None and self._context.now >= self._not_before.get(peer.name, 0.0):
            try:
                source = self._store.open_newest()
            except OSError as error:
                if not passes(error):
                    raise
                log.warning("the snapshot for %s could not be opened: %s. This node will try again.", peer.name, error)
                self._not_before[peer.name] = self._context.now + limits.SNAPSHOT_REFUSED_S
                return
            if source is None:          # it is being written
                return
            self._numbers += 1
            peer.sending = OutgoingTransfer(self._numbers, source)
            peer.sent_up_to = None
            log.info("sending a snapshot of %d bytes to %s", peer.sending.source.size, peer.name)

    def finished(self, peer: Peer, number: int, *, accepted: bool) -> None:
        """Leader: end a transfer whose last chunk the peer has answered."""
        if peer.sending is not None and peer.sending.number == number:
            size = peer.sending.source.size
            self.stop_sending(peer)
            if not accepted:
                self._not_before[peer.name] = self._context.now + limits.SNAPSHOT_REFUSED_S
                if peer.info is not None and peer.info.full:
                    self._had_no_room(peer, size)
                    return
                log.warning("%s could not use our snapshot; writing a new one. If this repeats, its log says why.",
                            peer.name)
                self._context.replica.compact()

    def _had_no_room(self, peer: Peer, size: int) -> None:
        """Leader: let another snapshot be written if the state is much smaller than when one of `size` bytes was."""
        smaller = self.room is not None and size > limits.SMALLER_FACTOR * self.room.state_bytes()
        log.warning("%s has no room for our snapshot; %s", peer.name,
                    "a newer one, which is smaller, will be sent" if smaller else "it will be sent again")
        if smaller and not self._store.busy:
            self._store.whole_for_peer = True
            self._context.replica.compact()

    def stop_sending(self, peer: Peer) -> None:
        """Leader: close the outgoing transfer to this peer, if there is one."""
        if peer.sending is not None:
            peer.sending.close()
            peer.sending = None

    def connection_lost(self, peer: Peer) -> None:
        """Abort the transfers in both directions: they do not survive their connection."""
        self.stop_sending(peer)
        if peer.receiving is not None:
            peer.receiving.close()
            peer.receiving = None

    def send_chunks(self) -> None:
        """Leader: send as many chunks as the connections accept."""
        for peer in self._context.peers.values():
            if peer.sending is None:
                continue
            if not self._context.leads() or peer.term != self._context.replica.term:
                self.stop_sending(peer)
            elif peer.sending.sent_at is None:
                self._send_to(peer, peer.sending)
            elif self._context.now - peer.sending.sent_at > limits.SNAPSHOT_ANSWER_S:
                self.stop_sending(peer)         # the library asks again

    def _send_to(self, peer: Peer, outgoing: OutgoingTransfer) -> None:
        context = self._context
        room = limits.SNAPSHOT_WINDOW_BYTES - context.network.buffered_bytes(peer.name)
        while room > 0 and outgoing.sent_at is None:
            data = outgoing.source.read(limits.SNAPSHOT_CHUNK_BYTES)
            last = outgoing.offset + len(data) >= outgoing.source.size
            context.send(peer, SnapshotChunk(
                peer.term, peer.epoch, context.now, context.replica.commit_index, outgoing.number, outgoing.offset,
                data, last, context.promise_ms, outgoing.source.size, self._quorum.covers(peer),
            ))
            outgoing.offset += len(data)
            room -= len(data)
            if last:
                outgoing.sent_at = context.now

    def receive_chunk(self, peer: Peer, chunk: SnapshotChunk) -> int | None:
        """Follower: store a chunk, and install the snapshot with the last one.

        Returns None while the snapshot is incomplete, otherwise the index up to which this log is now known to equal
        the leader's (0: the snapshot could not be used, or there is no room for it).
        """
        try:
            complete = self._store_chunk(peer, chunk)
        except SnapshotDamaged as error:
            log.error("snapshot from %s refused: %s. It will send another; if this repeats, check the disks of both.",
                      peer.name, error)
            return self._give_up(peer)
        except OSError as error:
            if error.errno not in NO_ROOM:      # of a sync, too: nothing of the file is used
                raise
            log.warning("no room for the snapshot from %s: %s. Free disk space; it will be sent again.", peer.name,
                        error)
            self._store.lack_space()
            self._give_up(peer)
            if error.errno in NO_SPACE:
                self._look_whether_stuck(chunk)
            return 0
        return None if complete is None else self._install(peer, chunk, *complete)

    def _look_whether_stuck(self, chunk: SnapshotChunk) -> None:
        """End this process for the snapshot, if it has had no room for a while and the others have all that is here.

        This node then has the rights of one whose disk was lost, none, until it has the leader's state. Raises
        StorageError.
        """
        now, applied = self._context.now, self._context.replica.applied_index
        if now - self._lacked_at > limits.NO_ROOM_KNOWN_FOR_S or applied != self._lacked_applied:
            self._lacked_since = now            # it had room meanwhile
        self._lacked_at, self._lacked_applied = now, applied
        if self.room is None or not chunk.covered or now - self._lacked_since < limits.NO_ROOM_FOR_STATE_S:
            return
        if self._context.journal.last_index > chunk.commit:
            return          # the leader may count an entry after those that it spoke of, which this node acknowledged
        ended = self.room.give_up_state(chunk.size)
        if ended is not None:
            raise ended

    @staticmethod
    def _give_up(peer: Peer) -> int:
        if peer.receiving is not None:
            peer.receiving.close()
            peer.receiving = None
        return 0

    def _store_chunk(self, peer: Peer, chunk: SnapshotChunk) -> tuple[IncomingTransfer, int, int] | None:
        """Store a chunk, and check the whole snapshot with the last one.

        Returns None, or the complete transfer with index and term of its last entry. Raises SnapshotDamaged,
        SnapshotTooNew and OSError.
        """
        while True:
            try:
                incoming = self._write_chunk(peer, chunk)
                break
            except OSError as error:
                missing = chunk.size - chunk.offset if chunk.size else ALL
                if error.errno not in NO_SPACE or not passes(error):
                    raise
                if self.room is None or not self.room.make_way(missing, covered=chunk.covered):
                    raise
        return (incoming, *incoming.sink.finish()) if incoming is not None and chunk.last else None

    def _write_chunk(self, peer: Peer, chunk: SnapshotChunk) -> IncomingTransfer | None:
        """Write a chunk to the file of its transfer; None: the start of it was not seen. Raises OSError."""
        if chunk.offset == 0:
            for other in self._context.peers.values():
                self._give_up(other)            # what an earlier leader began to send takes room
            peer.receiving = IncomingTransfer(chunk.transfer, self._store.begin_incoming(peer.name))
        incoming = peer.receiving
        if incoming is None or incoming.number != chunk.transfer or incoming.sink.offset != chunk.offset:
            return None
        incoming.sink.write(chunk.data)
        return incoming

    def _install(self, peer: Peer, chunk: SnapshotChunk, incoming: IncomingTransfer, index: int, term: int) -> int:
        context, journal = self._context, self._context.journal
        peer.receiving = None
        if index <= context.replica.commit_index or journal.term_at(index) == term:
            incoming.close()                    # all of it is here already: keep our own log, which is longer
            self._lacked_at = NEVER
            return max(index, journal.first_index)
        journal.finish_sync()       # acknowledgements that wait for it must not leave once their entries are cleared
        self._store.expect(incoming.sink)
        context.deliver(peer.node, {
            "type": "append_entries", "term": chunk.term, "commit_index": context.replica.commit_index,
            "serialized": (b"", True, True),
        })
        if journal.last_index != index or context.replica.applied_index != index:
            log.error("snapshot from %s could not be loaded: %s", peer.name, self._store.load_error)
            return 0
        self._lacked_at = NEVER
        log.info("state taken over from %s up to entry %d", peer.name, index)
        return index
