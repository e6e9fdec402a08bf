"""What a node still accepts: everything while there is room, then no jobs, then nothing from clients.

The disk is full when the journal cannot create its next segment; the room left in the present one decides what happens
(segments.py). When it gets scarce PUT is refused, as beyond the watermarks of memory and disk (watermarks.py). At last
everything that goes through the log is refused, except what Raft itself needs, so a node rarely reaches the point where
it can log nothing at all. Meanwhile the ballast is released, so that a snapshot can be written and the journal cut.

A lack of file descriptors is treated like a lack of space.
"""

from __future__ import annotations

import logging

from cluster import limits
from cluster.journal.journal import Journal
from cluster.raft.quorum import Quorum
from cluster.snapshots.snapshot_store import SnapshotStore
from cluster.storage.ballast import Ballast
from cluster.storage.errors import NoRoom

log = logging.getLogger("sockpqd.cluster")


class Capacity:
    """The room of one node. `marked`: beyond a watermark of memory or disk; `free_bytes`: last measured, of the disk.

    `exhausted`: commands of clients cannot be logged. `stuck`: not even the changes of the last turn can.
    """

    def __init__(self, journal: Journal, store: SnapshotStore, quorum: Quorum, ballast: Ballast) -> None:
        self.marked = False
        self.free_bytes = 0
        self.ballast = ballast
        self.exhausted = False
        self.stuck = False
        self._retry_at = float("-inf")
        self._journal = journal
        self._store = store
        self._quorum = quorum
        self._ballast_at = float("-inf")

    def update(self, now: float) -> None:
        """Reassess the room and adjust the ballast; `now`: monotonic seconds."""
        segments = self._journal.segments
        exhausted = segments.short and (segments.exhausted or (self.exhausted and segments.scarce))
        if exhausted != self.exhausted:
            self.exhausted = exhausted
            if exhausted:
                log.error("no room for the journal: this node logs nothing more for clients. "
                          "Free disk space; the node then continues by itself.")
            else:
                log.info("there is room for the journal again: commands are logged")
        segments.held_back = segments.short and self._snapshot_goes_first()
        if now >= self._ballast_at:
            self._ballast_at = now + limits.BALLAST_LOOK_S
            self._adjust_ballast()

    def _snapshot_goes_first(self) -> bool:
        """Is there space for the next segment or for a snapshot, behind which old segments can go, but not for both?"""
        left = self.free_bytes - self._snapshot_bytes()
        return 0 <= left < self._journal.segments.segment_bytes and self._journal.can_shrink and not self._store.failing

    def stand_still(self, now: float, error: NoRoom) -> None:
        """Pause, because there was no room for the changes of a turn."""
        if not self.stuck:
            self.stuck = True
            self._retry_at = now
            log.error("the disk has no room for what this node must write (%s): it pauses, and continues by itself "
                      "when there is room", error)

    def try_again(self, now: float) -> None:
        """Try to write again, at most every NO_ROOM_RETRY_S. Raises NoRoom if there is no room yet, or no attempt."""
        if now < self._retry_at:
            raise NoRoom
        self._retry_at = now + limits.NO_ROOM_RETRY_S
        self.relieve()
        self._journal.sync()
        self.stuck = False
        log.info("there is room again: this node continues")

    def _adjust_ballast(self) -> None:
        store, segments = self._store, self._journal.segments
        if store.lacked_space:
            self.relieve()
        elif not segments.short and not store.busy:
            # The room left in the journal may be filled with jobs before the full disk is noticed.
            wanted_bytes = self._snapshot_bytes() + segments.room_bytes + segments.segment_bytes
            self.ballast.keep(wanted_bytes, self.free_bytes - segments.segment_bytes)

    def _snapshot_bytes(self) -> int:
        """An upper estimate of the size of a snapshot written now."""
        return self._store.newest_bytes + self._journal.bytes_total

    def relieve(self) -> None:
        """Release the ballast, because its space is needed."""
        self._store.lacked_space = False
        if self.ballast.give_up():
            self._store.retry()
            log.warning("the disk is full: the ballast is released, so that the journal can be cut")

    def make_way(self) -> None:
        """Make room for a snapshot that is about to be written."""
        if self.free_bytes < self._snapshot_bytes() and self.ballast.bytes:
            self.relieve()

    @property
    def lacking(self) -> bool:
        """Is there no room for more jobs on this node?"""
        segments = self._journal.segments
        no_snapshot = self._store.lacks_space and self.free_bytes < self._snapshot_bytes() + segments.segment_bytes
        return self.marked or segments.scarce or no_snapshot

    def full(self) -> bool:
        """Is there no room for more jobs here, or on so many others that the rest is not a majority?"""
        return self.lacking or not self._enough(
            sum(peer.up and peer.info is not None and peer.info.full for peer in self._quorum.peers)
        )

    def halted(self) -> bool:
        """Can clients' commands not be logged here, or on so many others that the rest is not a majority?"""
        return self.exhausted or not self._enough(
            sum(peer.up and peer.info is not None and peer.info.exhausted for peer in self._quorum.peers)
        )

    def _enough(self, without: int) -> bool:
        return not without or len(self._quorum.voters) - without >= self._quorum.majority
