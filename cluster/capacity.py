"""What a node still takes: as long as there is room everything, then no jobs, then nothing of clients.

The disk is full when the journal cannot make its next segment; what is left of the present one tells how far things
have come (segments.py). Without much of it PUT is refused, as at the marks of memory and disk (watermarks.py); at last
all that goes through the log is, but what Raft itself needs. So a node that could log nothing at all is rare. Meanwhile
the ballast is given up, so that a snapshot can be written and the journal cut.

Descriptors can be missing as well as space; nothing is different then.
"""

from __future__ import annotations

import logging

from cluster import limits
from cluster.raft.quorum import Quorum
from cluster.storage.ballast import Ballast
from cluster.storage.errors import NoRoom
from cluster.storage.journal import Journal
from cluster.storage.snapshot_store import SnapshotStore

log = logging.getLogger("sockpqd.cluster")



class Capacity:
    """Of one node. `marked`: a mark of memory or disk is reached; `free_bytes`: of the disk, as it was seen last.

    `exhausted`: what clients want cannot be logged. `stuck`: nor can what the last turn has changed.
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
        """Look anew; `now`: monotonic seconds."""
        segments = self._journal.segments
        exhausted = segments.short and (segments.exhausted or (self.exhausted and segments.scarce))
        if exhausted != self.exhausted:
            self.exhausted = exhausted
            if exhausted:
                log.error("no room for the journal: nothing more is logged here but what the nodes need themselves. "
                          "Make room on the disk; this node goes on by itself then.")
            else:
                log.info("there is room for the journal: commands are logged again")
        segments.held_back = segments.short and self._snapshot_goes_first()
        if now >= self._ballast_at:
            self._ballast_at = now + limits.BALLAST_LOOK_S
            self._adjust_ballast()

    def _snapshot_goes_first(self) -> bool:
        """Is there space for the next segment or for a snapshot, behind which old segments can go, but not for both?"""
        left = self.free_bytes - self._snapshot_bytes()
        return 0 <= left < self._journal.segments.segment_bytes and self._journal.can_shrink and not self._store.failing

    def stand_still(self, now: float, error: NoRoom) -> None:
        """There was no room for what a turn has changed."""
        if not self.stuck:
            self.stuck = True
            self._retry_at = now
            log.error("the disk has no room for what this node must write (%s): it stands still, and goes on by itself "
                      "when there is", error)

    def try_again(self, now: float) -> None:
        """Raises NoRoom when there is still none, or nobody has looked."""
        if now < self._retry_at:
            raise NoRoom
        self._retry_at = now + limits.NO_ROOM_RETRY_S
        self.relieve()
        self._journal.sync()
        self.stuck = False
        log.info("there is room: this node goes on")

    def _adjust_ballast(self) -> None:
        store, segments = self._store, self._journal.segments
        if store.lacked_space:
            self.relieve()
        elif not segments.short and not store.busy:
            # What the journal can still take may become jobs before anybody knows that the disk is full.
            wanted_bytes = self._snapshot_bytes() + segments.room_bytes + segments.segment_bytes
            self.ballast.keep(wanted_bytes, self.free_bytes - segments.segment_bytes)

    def _snapshot_bytes(self) -> int:
        """A snapshot that is written now has hardly more."""
        return self._store.newest_bytes + self._journal.bytes_total

    def relieve(self) -> None:
        """The space of the ballast is needed."""
        self._store.lacked_space = False
        if self.ballast.give_up():
            self._store.retry()
            log.warning("the disk is full: the ballast is given up, so that the journal can be cut")

    def make_way(self) -> None:
        """A snapshot is about to be written."""
        if self.free_bytes < self._snapshot_bytes() and self.ballast.bytes:
            self.relieve()

    @property
    def lacking(self) -> bool:
        """Is there no room for further jobs here?"""
        segments = self._journal.segments
        no_snapshot = self._store.lacks_space and self.free_bytes < self._snapshot_bytes() + segments.segment_bytes
        return self.marked or segments.scarce or no_snapshot

    def full(self) -> bool:
        """Would a further job lack room here, or on so many others that the rest is no majority?"""
        return self.lacking or not self._enough(
            sum(peer.up and peer.info is not None and peer.info.full for peer in self._quorum.peers)
        )

    def halted(self) -> bool:
        """Can nothing of clients be logged here, or on so many others that the rest is no majority?"""
        return self.exhausted or not self._enough(
            sum(peer.up and peer.info is not None and peer.info.exhausted for peer in self._quorum.peers)
        )

    def _enough(self, without: int) -> bool:
        return not without or len(self._quorum.voters) - without >= self._quorum.majority
