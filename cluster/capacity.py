"""Decides what a node still accepts: everything while there is room, then no jobs, then nothing from clients.

The disk is full when the journal cannot create its next segment; the room left in the current one decides what happens
(segments.py). When it gets scarce, PUT is refused, as it is beyond the watermarks of memory and disk (watermarks.py).
In the end everything that goes through the log is refused, except what Raft itself needs, so a node rarely reaches the
point where it can log nothing at all. The ballast is released at that time, so that a snapshot can be written and the
journal cut.

Before that, the node deletes dispensable files, so that its own files do not fill the disk. When room is short, it
rewrites page files that are largely dead, and writes a snapshot to delete files that only an older one needs
(compaction.py); jobs leave memory only while the next segment and a snapshot still have room. When there is no room for
one of these two, it also deletes the snapshot before the newest one, with the part of the log that only that one needs.

Its own files can be all that fills the disk of a follower, while the others have long got rid of what is in them. Then
only the leader's state helps, which replaces them all. A reserve is kept for it; where that is too small, the follower
gives up one thing after another that it can do without (make_way()). In the end it gives up its own state, to come back
like a node with an empty disk (give_up_state()), if all it ever acknowledged is on the disks of a majority without it.

A lack of file descriptors is treated like a lack of space.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.snapshots.snapshot_store import SnapshotStore
from sockpqd.cluster.storage.ballast import Ballast
from sockpqd.cluster.storage.errors import NoRoom, StorageError

log = logging.getLogger("sockpqd.cluster")


class Holders(NamedTuple):
    """The bytes used on the disk of the data directory, by kind of file."""

    journal: int
    snapshots: int
    pages: int          # all files of pages,
    live: int           # the part of them that is needed,
    held: int           # and those that only a snapshot needs
    ballast: int
    others: int         # what is not this node's; 0 while the size of the disk is not known


class Capacity:
    """The room of one node. `marked`: a watermark of memory or disk is exceeded; `disk_marked`: the disk's is.

    `free_bytes`: free space when last measured, on a disk of `disk_bytes` (0: unknown). `short`: room should be made.
    `exhausted`: clients' commands cannot be logged. `stuck`: not even the changes of the last turn could be written.
    """

    def __init__(
        self, journal: Journal, store: SnapshotStore, quorum: Quorum, ballast: Ballast, reserve: Ballast,
        pages: PageFiles, hot_bytes: Callable[[], int],
    ) -> None:
        """`pages`: the jobs and records outside memory; `hot_bytes()`: the approximate memory of the others."""
        self.marked = False
        self.disk_marked = False
        self.free_bytes = 0
        self.disk_bytes = 0
        self.free_bytes_min = 0         # the watermark of the disk
        self.ballast = ballast
        self.reserve = reserve
        self.short = False
        self.exhausted = False
        self.stuck = False
        self._retry_at = float("-inf")
        self._journal = journal
        self._store = store
        self._quorum = quorum
        self._pages = pages
        self._hot_bytes = hot_bytes
        self._look_at = float("-inf")
        self._reported_at = float("-inf")
        self._lacked_bytes = 0          # what was free when a snapshot had no room
        # Decides durably that the next start deletes all files; returns the error with which this process must end.
        self.delete_state: Callable[[str], StorageError | None] = lambda why: None
        # Deletes what was set aside as damaged; returns whether there was any.
        self.delete_damaged: Callable[[], bool] = lambda: False

    def update(self, now: float, *, recovering: bool = False) -> None:
        """Reassess the room and adjust the ballast; `now`: monotonic seconds.

        A node that is `recovering` deletes nothing and leaves the ballast alone. It needs the entries after the
        snapshot from which it started, which may not be the newest one; and it may yet find an entry that it does not
        understand, in which case it must end without changing its files.
        """
        segments = self._journal.segments
        exhausted = segments.short and (segments.exhausted or (self.exhausted and segments.scarce))
        if exhausted != self.exhausted:
            self.exhausted = exhausted
            if exhausted:
                log.error("no room for the journal: this node logs nothing more for clients. "
                          "Free disk space; the node then continues by itself.")
            else:
                log.info("there is room for the journal again: commands are logged")
        segments.held_back = (segments.short or self.short) and (
            self._store.receiving or self._snapshot_goes_first())
        self._give_pages_room()
        if now >= self._look_at:
            self._look_at = now + limits.ROOM_LOOK_S
            if not recovering:
                self._make_room(now)
                self._adjust_ballast()

    def _give_pages_room(self) -> None:
        """Reserve room for the next segment, and for the part of a snapshot that exceeds the ballast.

        While room is short and another node's state comes in, all of it is kept for that.
        """
        if self._store.receiving and (self.short or self._journal.segments.short):
            self._pages.free_bytes = self._pages.room_bytes = 0
            return
        self._pages.free_bytes = self.free_bytes
        beside_ballast = max(0, self._expected_bytes() - self.ballast.bytes)
        self._pages.room_bytes = self.free_bytes - self._journal.segments.segment_bytes - beside_ballast

    def _make_room(self, now: float) -> None:
        """Delete dispensable files if room is short."""
        journal, store = self._journal, self._store
        needed = journal.segments.segment_bytes + self._expected_bytes()
        lacking = journal.segments.short or store.lacks_space
        self.short = lacking or self.disk_marked or self.free_bytes + self.ballast.bytes < needed
        room_bytes = limits.FEED_ROOM_SEGMENTS * journal.segments.segment_bytes
        if self.short or self.free_bytes < self.free_bytes_min + room_bytes:
            self._cut_feeds()
        if not self.short:
            return
        if now - self._reported_at >= limits.ROOM_REPORT_S:
            self._reported_at = now
            self._report()
        if store.lacks_space and self.free_bytes >= self._lacked_bytes + journal.segments.segment_bytes:
            self._lacked_bytes = self.free_bytes
            store.retry()
        if lacking:
            if journal.can_release:
                journal.release()
            if store.older_bytes:
                store.release()
        self._pages.make_room()

    def _cut_feeds(self) -> None:
        """Delete the part of the journal that is kept for copies in other regions."""
        if self._journal.feed_bytes and self._journal.release_feeds(self._store.needed_from):
            log.warning("the disk of node.data_dir is short of room: what feed.keep_bytes keeps of the journal is "
                        "deleted. A replica that needs it starts again from a snapshot.")

    @property
    def ballast_bytes(self) -> int:
        """The size of all ballast on the disk, which counts as free space."""
        return self.ballast.bytes + self.reserve.bytes

    def holders(self) -> Holders:
        """Return the current use of the disk."""
        pages, store = self._pages, self._store
        own = self._journal.segments.disk_bytes, store.newest_bytes + store.older_bytes
        held, live = pages.held_bytes, pages.live_bytes
        files = pages.bytes_total + held
        rest = self.disk_bytes - self.free_bytes - sum(own) - files - self.ballast_bytes
        return Holders(*own, files, live, held, self.ballast_bytes, max(0, rest) if self.disk_bytes else 0)

    def _report(self) -> None:
        now = self.holders()
        log.warning(
            "the disk of node.data_dir is short of room: %d bytes of %d are free. The journal has %d, snapshots %d, "
            "files of pages %d (of which %d are needed, and %d are in files that only a snapshot needs), the ballast "
            "%d, others %d.", self.free_bytes, self.disk_bytes, now.journal, now.snapshots, now.pages, now.live,
            now.held, now.ballast, now.others, extra={"fields": {"free": self.free_bytes, **now._asdict()}})

    def _snapshot_goes_first(self) -> bool:
        """Return whether a snapshot, which allows old segments to be deleted, must precede the next segment.

        That is so when there is space for either of them, but not for both.
        """
        if self._store.writing or self._store.failing:
            return self._store.writing
        left = self.free_bytes - self._expected_bytes()
        return 0 <= left < self._journal.segments.segment_bytes and self._journal.can_shrink

    def pause(self, now: float, error: NoRoom) -> None:
        """Pause, because there was no room to write the changes of a turn."""
        if not self.stuck:
            self.stuck = True
            self._retry_at = now
            log.error("the disk has no room for what this node must write (%s): it pauses, and continues by itself "
                      "when there is room", error)

    def try_again(self, now: float) -> None:
        """Try to write again, at most every NO_ROOM_RETRY_S.

        Raises NoRoom if there is still no room, or if it is too early to try.
        """
        if now < self._retry_at:
            raise NoRoom
        self._retry_at = now + limits.NO_ROOM_RETRY_S
        if self._store.older_bytes:
            self._store.release()
        self.relieve()
        self._journal.sync()
        self.stuck = False
        log.info("there is room again: this node continues")

    def _adjust_ballast(self) -> None:
        store, segments = self._store, self._journal.segments
        if store.lacked_space:
            self.relieve()
            return
        if store.receiving:
            return
        self.reserve.hold(limits.RESERVE_BYTES, self.free_bytes)
        if not segments.short and not store.busy:
            # The room left in the journal may be filled with jobs before the full disk is noticed.
            wanted_bytes = self._snapshot_bytes() + segments.room_bytes + segments.segment_bytes
            self.ballast.keep(wanted_bytes, self.free_bytes - segments.segment_bytes)

    def _snapshot_bytes(self) -> int:
        """An upper estimate of the size of a snapshot written now."""
        return self._store.newest_bytes + self._journal.bytes_total

    def _expected_bytes(self) -> int:
        """The approximate size of a snapshot written now, which has little more than the waiting jobs."""
        return min(self._snapshot_bytes(), self._hot_bytes())

    def relieve(self) -> None:
        """Release the ballast, as its space is needed."""
        self._store.lacked_space = False
        self._lacked_bytes = self.free_bytes
        if self.ballast.give_up():
            self._store.retry()
            log.warning("the disk is short of room: the ballast is released, so that a snapshot can be written and the "
                        "journal cut")

    def state_bytes(self) -> int:
        """Return the approximate size of a snapshot written now that names no pages."""
        return self._hot_bytes() + self._pages.live_bytes

    def make_way(self, missing: int, *, covered: bool) -> bool:
        """Give up one thing for another node's state, of which `missing` bytes have no room.

        Returns False if nothing is left to give up. Of the ballast only that much goes: this node needs the rest for
        its own snapshot, should the other state not come after all. `covered`: all that this node ever acknowledged is
        on the disks of a majority without it, so what it set aside as damaged is not needed to save anything. What this
        node vouches for stays: its newest snapshot with the pages that this names, and the log after it. So does a
        snapshot that it is writing, which will set free more than it takes, or be removed.
        """
        self._pages.free_bytes = self._pages.room_bytes = 0     # or jobs that leave memory would take it
        journal, store = self._journal, self._store
        if store.older_bytes:
            store.release()
        elif self.ballast.give(missing):
            log.warning("the disk is short of room: ballast is released for the state that another node sends")
        elif not journal.segments.give_up_spare() and not (covered and self.delete_damaged()):
            return self.reserve.give_up()
        return True

    def give_up_state(self, size: int) -> StorageError | None:
        """Decide durably that the next start deletes all files of this node, for another node's state of `size` bytes.

        Call it when nothing of that state is left on the disk, as the free space is measured here. The state needs
        its room twice: as it comes in, and as what this node then makes of it, the pages of the jobs outside memory
        and a snapshot of the others. Returns the error with which this process must end; None if that would not help,
        or may not be.
        """
        try:
            self.free_bytes = self._store.disk.free_space(self._pages.directory.parent)
        except OSError as error:
            log.warning("the free space of node.data_dir could not be measured: %s", error)
            return None
        own = self.holders()
        room = self.free_bytes + own.journal + own.snapshots + own.pages + own.ballast
        needed = 2 * size + 2 * self._journal.segments.segment_bytes + limits.RESERVE_BYTES
        if not size or room < needed:
            return None
        return self.delete_state(
            f"There is no room for the leader's state of {size} bytes beside this node's own files, whose contents the "
            "other nodes have.")

    def release_ballast(self) -> None:
        """Make room for a snapshot that is about to be written."""
        if self.free_bytes < self._snapshot_bytes() and self.ballast.bytes:
            self.relieve()

    @property
    def lacking(self) -> bool:
        """True if there is no room for more jobs on this node."""
        return self.marked or self._disk_lacks_room()

    def _disk_lacks_room(self) -> bool:
        """Return whether there is no room for more jobs on the disk of this node."""
        segments = self._journal.segments
        no_snapshot = self._store.lacks_space and self.free_bytes < self._snapshot_bytes() + segments.segment_bytes
        return self.disk_marked or segments.scarce or no_snapshot

    def displaced(self) -> bool:
        """Return whether another leader could accept jobs: this disk has no room, and a majority of nodes has.

        A lack of memory does not count: every node has the same jobs in memory.
        """
        return self._disk_lacks_room() and self._enough(1 + self._full_peers())

    def full(self) -> bool:
        """Return whether there is no room for more jobs here, or on too many others for a majority."""
        return self.lacking or not self._enough(self._full_peers())

    def _full_peers(self) -> int:
        return sum(peer.up and peer.info is not None and peer.info.full for peer in self._quorum.peers)

    def halted(self) -> bool:
        """Return whether clients' commands cannot be logged, here or on too many others for a majority."""
        return self.exhausted or not self._enough(
            sum(peer.up and peer.info is not None and peer.info.exhausted for peer in self._quorum.peers)
        )

    def _enough(self, without: int) -> bool:
        """Return whether the nodes that are up are a majority even without `without` of them, which have no room.

        Whether nodes that are down leave a majority is not decided here, but by the lease.
        """
        quorum = self._quorum
        return not without or sum(peer.up for peer in quorum.peers) + quorum.member - without >= quorum.majority
