"""The durable memory of a node: log entries, term, vote, commit index and the right to vote, in one ordered journal.

Changes are collected in memory and become durable together in sync(), as one frame (journal_format.py) in a segment
file (segments.py). Their order on disk is the order in which they were made, so a crash always leaves a state that the
node really had at the end of some turn. sync_in_background() syncs large frames in a thread while the caller continues;
changes made until it ends go into the next frame. Only the newest entries stay in memory; older ones are read back.

Entries are kept for longer than the Raft library asks: it removes the entries that a new snapshot covers
(deleteEntriesTo), but the journal removes only those that the previous snapshot covers. So the log reaches back to the
older of the two snapshots that are kept. A follower that was away for a moment still finds its entries, and a damaged
newest snapshot can be replaced by the older one and the log. A node that is short of room gives that up: release().
For copies in other regions `feed_bytes` more are kept; these are not shown to the library, are indexed only while a
feed reads them (archived_segments.py), and go first when room is short: release_feeds().
Segments without any kept entry are deleted, one at each sync.

The camel-case names are those that pysyncobj calls (`createJournal`). Positions count from the first entry; indexes are
Raft's.
"""
# ruff: noqa: N802   (pysyncobj's names)

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from pathlib import Path

from sockpqd.cluster import limits
from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.archived_segments import ArchivedSegments, Span, SpanIndex
from sockpqd.cluster.journal.journal_format import JournalRecord
from sockpqd.cluster.journal.journal_state import FrameReplay, JournalState, StateSummary
from sockpqd.cluster.journal.log_index import Entry, Stretch
from sockpqd.cluster.journal.log_view import LogView
from sockpqd.cluster.journal.segment_head import SegmentHead
from sockpqd.cluster.journal.segments import Segments
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import (
    IN_USE,
    ONLY_FOR_COPIES,
    START_EMPTY,
    JournalDamaged,
    JournalTooNew,
    StorageInUse,
)

log = logging.getLogger("sockpqd.cluster")

__all__ = ["Journal", "JournalDamaged", "JournalTooNew", "StorageInUse"]

# The maximum size of the other contents of a frame: a STATE record if it begins a segment, and acknowledgements.
_BESIDE_BYTES_MAX = 3072
_NAMES_MAX = 16                 # the acknowledgements of this many nodes are remembered, the highest ones


class Journal(LogView):
    """The log with the interface that pysyncobj expects, durable after sync().

    Read-only attributes: `first_index`, `last_index`, `last_term` (0 while there is none), `clears` (how often it was
    cleared), `segments` (its files), `bytes_total` (length of the commands after the newest snapshot, for compaction),
    `durable_index` (the last entry synced), `syncing` (the sync in the background), `sync_s` (the duration of the last
    of these, in seconds), `binds` (a term, a vote or the right to vote waits for sync()).

    An OSError means that the disk failed and the node must stop; after a failed write or sync every further change
    raises the same error, because the contents of the disk are unknown. NoRoom means that nothing was written, and
    sync() can be called again later.
    """

    @classmethod
    def open(
        cls, directory: Path, disk: Disk | None = None, *, segment_bytes: int = limits.SEGMENT_BYTES,
        window_bytes: int = limits.LOG_CACHE_BYTES, needed_from: int = 0,
    ) -> Journal:
        """Open the journal in `directory`, or create one.

        `needed_from`: an entry; segments that lie wholly before it are not read, and their entries are there for
        feeds only.

        Raises JournalDamaged (the node must not take part), JournalTooNew, StorageInUse and OSError.
        """
        journal = cls(directory, disk or Disk(), segment_bytes, window_bytes)
        try:
            journal._recover(needed_from)
        except BaseException:
            journal.close()
            raise
        return journal

    def __init__(self, directory: Path, disk: Disk, segment_bytes: int, window_bytes: int) -> None:
        super().__init__(window_bytes)
        self.last_term = 0
        self.durable_index = 0
        self.syncing: Future[float] | None = None
        self.sync_s = 0.0
        self.binds = False
        self.clears = self.bytes_total = 0
        self._state = JournalState()
        self._table = self._state.table
        self._commit = 0
        self._acknowledged: dict[str, int] = {}     # as in the state, and newer
        self._pending: list[JournalRecord] = []
        self._pending_bytes = 0                     # length of their bodies
        self._written = 0                           # the last entry in a frame, synced or not
        self._commit_due = False                    # write a frame even if only the commit index changed
        self._commit_written = 0                    # commit index in the last frame, synced or not
        self._leave = False                         # the next frame begins a new segment
        self._shrunk = False                        # there may be segments to delete
        self._failed: OSError | None = None
        self._disk = disk
        self.segments = Segments(directory, disk, segment_bytes)
        self._archive = ArchivedSegments(self.segments, disk)
        self._synced_state = self._state.restated()     # what a new segment begins with
        self._lock: int | None = None
        self.feed_bytes = 0                         # of segments to keep, beyond what this node needs itself
        self.forgetful = False                      # what was here before was set aside (damage/rejoin.py),
        self.deleted = False                        # or deleted, because the others have it

    # Opening

    def _recover(self, needed_from: int) -> None:
        directory = self.segments.directory
        self._disk.make_directory(directory)
        self._lock = self._disk.lock(directory / "lock")
        if self._lock is None:
            raise StorageInUse(f"{directory} {IN_USE}")
        replay = FrameReplay(self._state, self.segments.damaged)
        self.segments.recover(replay.frame, needed_from)
        self._commit = replay.commit_index
        self._synced_state = self._state.restated()
        if not replay.begun:        # a new journal: its first frame says that nothing is known
            self.segments.start(self._disk.random_bytes(8))
            self._write([self._state_record(self._synced_state)])
        self._find_archived(needed_from)
        self.first_index = self._table.indexed
        self.last_index = self.durable_index = self._written = self._table.next - 1
        self._recall_last()
        self.bytes_total = self._table.bytes_between(self._state.covered, self._table.next)
        self._commit_written = self._commit
        self._acknowledged = dict(self._state.acknowledged)
        self._shrunk = True                         # the last process may have died before it deleted them all
        self.segments.try_to_prepare()

    def _find_archived(self, needed_from: int) -> None:
        """Check that older segments have the entries that are not in memory; what only feeds need may be gone."""
        table = self._table
        if table.first == table.indexed:
            return
        if table.indexed > max(needed_from, 1):
            self.segments.damaged(
                self.segments.active, 0, f"entry {table.first} is missing: an older segment is gone")
        first = min(self._archive.first_in(0), table.indexed)
        if table.first < first:
            log.warning("entries %d to %d of the journal, which were kept for copies in other regions, are gone. A "
                        "replica that needs them starts again from a snapshot.", table.first, first - 1)
            self._change(journal_format.PREFIX, first, self._state.covered)

    # The log, as pysyncobj sees it

    def add(self, command: bytes, index: int, term: int) -> None:
        """Append an entry after the last one (a new or cleared journal accepts any index)."""
        if self._failed is not None:
            raise self._failed
        crc = journal_format.body_crc(index, command)
        self._table.append(index, term, len(command), crc)
        self._pending.append(JournalRecord(journal_format.ENTRY, index, term, command, crc))
        self._pending_bytes += len(command)
        self._cache.add(command, index, term)
        if index != self.last_index + 1:
            self._show_from(index)
        self.last_index = index
        self.last_term = term
        self.bytes_total += len(command)

    def clear(self) -> None:
        """Remove all entries. The next entry may have any index."""
        self.clears += 1
        kept = (journal_format.TERM, journal_format.VOTER)
        self._pending = [record for record in self._pending if record.kind in kept]
        self._change(journal_format.CLEAR)
        self.first_index, self.last_index = 1, 0
        self.durable_index = self._written = 0
        self.bytes_total = self._pending_bytes = 0
        self._shrunk = True
        self._cache.truncate(1)
        self._archive.clear()
        self._recall_last()

    def deleteEntriesFrom(self, position: int) -> None:
        """Remove the entry at `position` and all after it."""
        if (index := self.first_index + position) > self.last_index:
            return
        self.bytes_total -= self._table.bytes_between(max(index, self._state.covered), self._table.next)
        self._change(journal_format.TRUNCATE, index)
        self.last_index = index - 1
        self.durable_index, self._written = min(self.durable_index, index - 1), min(self._written, index - 1)
        self._shrunk = True
        self._cache.truncate(index)
        self._recall_last()

    def deleteEntriesTo(self, position: int) -> None:
        """Record a durable snapshot up to `position`, and remove the entries that the previous snapshot covers.

        Raises ValueError if no entry would be left, because a snapshot never reaches beyond the log.
        """
        if (index := self.first_index + position) > self.last_index:
            raise ValueError(f"entries before {index} are to be removed, the last one is {self.last_index}")
        covered = self._state.covered
        keep = max(self._table.indexed, min(covered, index))
        self.bytes_total -= self._table.bytes_between(covered, index)
        self._change(journal_format.PREFIX, self._kept_for_feeds(keep), max(covered, index))
        self._show_from(max(self.first_index, keep))
        self._archive_until(keep)
        self._shrunk = True

    def _archive_until(self, keep: int) -> None:
        """Drop from memory the entries before `keep` that were committed when the segment before its own began."""
        before = self.segments.heads.get(self._table.location(keep).segment - 1)
        if before is not None:
            self._table.forget(min(keep, before.commit_index + 1))

    def _kept_for_feeds(self, keep: int) -> int:
        """Return the first entry to keep if this node itself needs those from `keep` on."""
        if not self.feed_bytes:
            return keep
        segment = self._table.location(keep).segment - -(-self.feed_bytes // self.segments.segment_bytes)
        found = self._table.first_in(segment, keep)
        if found == self._table.indexed:
            found = max(self._table.first, min(found, self._archive.first_in(segment)))
        return found

    def release_feeds(self, keep: int) -> bool:
        """Remove the entries before `keep` that are kept only for feeds; returns whether there were any.

        `keep`: the first entry that this node itself needs.
        """
        keep = min(keep, self._state.covered, self.first_index)
        if keep <= self._table.first:
            return False
        self._change(journal_format.PREFIX, keep, self._state.covered)
        self._shrunk = True
        return True

    def release(self) -> None:
        """Remove all entries that the newest snapshot covers, because their segments are needed."""
        covered = self._state.covered
        self._change(journal_format.PREFIX, covered, covered)
        self._show_from(max(self.first_index, covered))
        self._shrunk = True

    def align(self, position: int) -> None:
        """Show the log only from `position` on. Nothing is removed from the disk."""
        self._show_from(self.first_index + position)

    def setRaftCommitIndex(self, index: int) -> None:
        """Remember the commit index; it is written with the next frame, within a second."""
        self._commit = index

    def getRaftCommitIndex(self) -> int:
        """The commit index, never above the last entry; 1 in a new journal, as pysyncobj expects."""
        return max(1, min(self._commit, self.last_index))

    def setCurrentTerm(self, term: int, vote: str | None) -> None:
        """Set the term and the candidate this node voted for in it (None: no vote yet)."""
        self._change(journal_format.TERM, term, 0 if vote is None else 1, (vote or "").encode())
        self.binds = True

    def acknowledge(self, name: str, index: int) -> None:
        """Remember that another node had all committed entries up to `index` on its disk, as setRaftCommitIndex()."""
        known = self._acknowledged
        if index > known.get(name, 0):
            if name not in known and len(known) == _NAMES_MAX:
                del known[min(known, key=known.__getitem__)]
            known[name] = index

    def acknowledged(self, name: str) -> int:
        """The index up to which that node is known to have had committed entries on its disk; 0: unknown."""
        return self._acknowledged.get(name, 0)

    def forget_acknowledged(self) -> None:
        """Forget what other nodes had on their disks: the cluster continues from this node's entries."""
        self._acknowledged.clear()

    def getCurrentTerm(self) -> int:
        """The term set last, 0 in a new journal."""
        return self._state.term

    def getVotedForNodeId(self) -> str | None:
        """The candidate this node voted for in the current term."""
        return self._state.vote

    def onOneSecondTimer(self) -> None:
        """Once a second: write a new commit index, check for space again, and delete a segment if the disk is idle."""
        self.keep_commit()
        if self.syncing is None:
            self.segments.try_again()
            if not self._pending:
                self._delete_superfluous()

    def _destroy(self) -> None:
        self.close()

    # For the rest of the cluster

    @property
    def voter(self) -> bool:
        """True if this node has the right to vote. Durable; False in a new journal."""
        return self._state.voter

    @property
    def identity(self) -> bytes:
        """Random bytes that distinguish this journal from any other."""
        return self.segments.journal_id

    @property
    def unsynced(self) -> bool:
        """True if changes wait for sync(). A new commit index alone does not count."""
        return bool(self._pending)

    @property
    def unsynced_bytes(self) -> int:
        """The length of the entries that wait for sync() and are in no frame yet."""
        return self._pending_bytes

    def bytes_from(self, index: int) -> int:
        """The total length of this entry and those after it."""
        return self._table.bytes_between(index, self._table.next)

    @property
    def empty(self) -> bool:
        """True if this journal never held more than pysyncobj's first entry (index 1, term 0), nor any term.

        No vote is given in term 0.
        """
        return not self.forgetful and self.last_index <= 1 and self._state.term == 0

    def has_room_for(self, entries: Sequence[Entry]) -> bool:
        """Return whether there is room for these entries besides unsynced changes and the reserve for Raft itself."""
        size = sum([len(entry[0]) for entry in entries]) + self._pending_bytes + _BESIDE_BYTES_MAX
        size += journal_format.SECTOR_BYTES
        return self.segments.takes(size + (len(entries) + len(self._pending)) * journal_format.RECORD.size)

    @property
    def can_release(self) -> bool:
        """True if segments could be deleted after release()."""
        return self._state.several_segments_covered()

    @property
    def can_shrink(self) -> bool:
        """True if segments could be deleted after another snapshot, or after the one following it."""
        much = self.bytes_total >= self.segments.segment_bytes * limits.JOURNAL_EXHAUSTED
        return (much and self.segments.several) or self._state.several_segments_covered()

    def term_at(self, index: int) -> int | None:
        """The term of the entry with this index, None if it is not in the log. Never reads the disk."""
        return self._table.term(index) if self.first_index <= index <= self.last_index else None

    def entry(self, index: int) -> Entry:
        """The entry with this index. Raises IndexError, OSError, and JournalDamaged if it reads back changed."""
        if not self.first_index <= index <= self.last_index:
            raise IndexError(f"entry {index} is not among {self.first_index}..{self.last_index}")
        recent = self._cache
        entry = recent.entries[index - recent.first] if index >= recent.first else self._read(index)
        if index == self.first_index:
            self._oldest = entry
        return entry

    def _read(self, index: int) -> Entry:
        segment, offset, length, crc = self._table.location(index)
        command = self.segments.read(segment, offset, length)
        if len(command) != length or journal_format.body_crc(index, command) != crc:
            self.segments.damaged(segment, offset, f"entry {index} has changed since it was written")
        return command, index, self._table.term(index)

    # For feeds (feed/log_feed.py)

    @property
    def oldest_index(self) -> int:
        """The first entry that is kept; those before `first_index` are there for feeds only."""
        return self._table.first

    def is_recent(self, index: int) -> bool:
        """Return whether the entries from this one on are in memory."""
        return index >= self._cache.first

    def recent(self, index: int, last: int, bytes_max: int) -> list[Entry]:
        """The entries from `index` to `last`, within about `bytes_max`; empty if the first is not in memory."""
        found: list[Entry] = []
        if index >= self._cache.first:
            for entry in islice(self._cache.entries, index - self._cache.first, last + 1 - self._cache.first):
                found.append(entry)
                bytes_max -= len(entry[0])
                if bytes_max <= 0:
                    break
        return found

    def unindexed(self, index: int) -> Span | None:
        """The segments to index before stretch() can be called with this index, which must be kept; None: it can be."""
        if index >= self._table.indexed or self._archive.has(index):
            return None
        return self._archive.span(index)

    @contextlib.contextmanager
    def to_index(self, span: Span) -> Iterator[Callable[[Callable[[], None]], SpanIndex]]:
        """Open segments; yields what indexes them, and may be called in a thread (see ArchivedSegments.read)."""
        with contextlib.ExitStack() as files:
            opened = []
            for number in span.segments:
                opened.append(self.segments.open(number))
                files.callback(self.segments.close_file, opened[-1])
            yield lambda rest: self._archive.read(span, opened, rest)

    def keep_index(self, index: SpanIndex) -> None:
        """Use an index made by the callable that to_index() yields."""
        self._archive.keep(index)

    def stretch(self, index: int, last: int, bytes_max: int) -> Stretch:
        """Return the places of the entries from `index` on, which must be kept and on the disk (see unindexed())."""
        if index < self._table.indexed:
            return self._archive.stretch(index, last, bytes_max)
        return self._table.stretch(index, last, bytes_max)

    def read_stretch(self, file: int, stretch: Stretch) -> list[Entry]:
        """Read entries from their segment, which is open as `file`; may be called in a thread.

        Raises OSError, and JournalDamaged if one reads back changed.
        """
        data = self._disk.read(file, stretch.length, stretch.offset)
        found: list[Entry] = []
        for index, term, start, length, crc in stretch.entries:
            command = data[start:start + length]
            if len(command) != length or journal_format.body_crc(index, command) != crc:
                self.segments.damaged(
                    stretch.segment, stretch.offset + start, f"entry {index} has changed since it was written",
                    ONLY_FOR_COPIES if index < self._table.indexed else START_EMPTY)
            found.append((command, index, term))
        return found

    def _recall_last(self) -> None:
        """Load the last entry into memory after later ones were removed, because it is needed constantly."""
        self._oldest = None
        self.last_term = 0
        if self.last_index >= self.first_index:
            self.last_term = self._table.term(self.last_index)
            if not self._cache.entries:
                self._cache.add(*self._read(self.last_index))

    def set_voter(self) -> None:
        """Give this node the right to vote for good; durable with the next sync()."""
        if not self._state.voter:
            self._change(journal_format.VOTER, 1)
            self.binds = True

    def keep_commit(self) -> None:
        """Make the next sync() write a new commit index and acknowledgements, even if nothing else has changed."""
        commit_changed = min(self._commit, self.last_index) != self._commit_written
        self._commit_due = commit_changed or self._acknowledged != self._state.acknowledged

    def leave_segment(self) -> None:
        """Begin a new segment with the next frame, because the one in use is damaged."""
        self._leave = True

    def sync(self, *, alone: bool = True) -> None:
        """Make all changes durable with one write and one fdatasync; does nothing if there are none.

        `alone`: write a new commit index even if there is nothing else. Raises NoRoom and OSError.
        """
        self.finish_sync()
        self._sync(None, alone=alone)

    def sync_in_background(self, *, alone: bool = True, from_bytes: int | None = None) -> bool:
        """Like sync(), but do not wait for the disk if there is much to sync. Returns whether everything is durable.

        If it is not, further calls are needed; the next one is useful once `syncing` has completed. `from_bytes`: the
        size from which a sync is done in the background, instead of BACKGROUND_SYNC_BYTES.
        """
        if self.syncing is None or self.poll_sync():
            self._sync(limits.BACKGROUND_SYNC_BYTES if from_bytes is None else from_bytes, alone=alone)
        return self.syncing is None

    def poll_sync(self) -> bool:
        """Complete a background sync that has finished; returns False if there is none or it is still running."""
        over = self.syncing is not None and self.syncing.done()
        if over:
            self.finish_sync()
        return over

    def _sync(self, from_bytes: int | None, *, alone: bool) -> None:
        if self._failed is not None:        # also if nothing is left to write: what was written is not durable
            raise self._failed
        if not self._pending and not (self._commit_due and alone):
            return
        beside = self._acknowledgements() if self._commit_due else []
        self._write([*beside, *self._pending], from_bytes)
        self._pending, self._pending_bytes, self.binds = [], 0, False
        if self.syncing is None:
            self._synced()

    def finish_sync(self) -> None:
        """Wait for the background sync, if there is one. Raises OSError."""
        syncing, self.syncing = self.syncing, None
        if syncing is None:
            return
        try:
            self.sync_s = syncing.result()
        except OSError as error:
            self._failed = error
            raise
        self._synced()

    def _synced(self) -> None:
        """Record that every frame written is durable."""
        self.durable_index = self._written
        self.segments.synced()
        if not self._pending:
            self._cache.evict()
            self._delete_superfluous()

    def _delete_superfluous(self) -> None:
        """Delete one segment without kept entries. All changes must be synced, the removal of its entries included."""
        if self._shrunk:
            self._shrunk = self.segments.delete_one_before(self._first_segment())

    def _first_segment(self) -> int:
        table = self._table
        if table.first < table.indexed:
            return self._archive.segment_of(table.first)
        if not table:
            return self.segments.active
        # A segment in which it was written again, after it had been removed, does not tell by its head that it has it.
        return min(table.location(table.first).segment, self._archive.segment_of(table.first))

    def close(self) -> None:
        """Close all files; unsynced changes are lost."""
        with contextlib.suppress(OSError):
            self.finish_sync()
        self.segments.close()
        if self._lock is not None:
            self._disk.close(self._lock)
            self._lock = None
        self._failed = OSError("the journal is closed")

    # Writing

    def _change(self, kind: int, a: int = 0, b: int = 0, body: bytes = b"") -> None:
        if self._failed is not None:
            raise self._failed
        self._pending.append(JournalRecord(kind, a, b, body, journal_format.body_crc(a, body)))
        self._state.apply(kind, a, b, body)

    def _acknowledgements(self) -> list[JournalRecord]:
        """Return records of changed acknowledgements: new indexes, and ones to forget."""
        known, written, records = self._acknowledged, self._state.acknowledged, []
        for name in dict.fromkeys((*written, *known)):
            index, body = known.get(name, 0), name.encode()
            if index != written.get(name, 0):
                crc = journal_format.body_crc(index, body)
                records.append(JournalRecord(journal_format.ACKNOWLEDGED, index, 0, body, crc))
        return records

    def _state_record(self, state: StateSummary) -> JournalRecord:
        """The first record of a segment: its size and number, and the state before the records that follow."""
        body, size = state.pack(), self.segments.active_bytes
        crc = journal_format.body_crc(size, body)
        return JournalRecord(journal_format.STATE, size, self.segments.active, body, crc)

    def _write(self, records: list[JournalRecord], from_bytes: int | None = None) -> None:
        """Write a frame with these records and sync it; if it has at least `from_bytes` bytes, only start the sync."""
        segments = self.segments
        commit, sequence = min(self._commit, self.last_index), segments.sequence + 1
        whole = None
        if len(records) == 1:
            whole = journal_format.encode_small(records[0], segments.journal_id, sequence, commit)
        if whole is None:
            pieces, length = journal_format.encode(records, segments.journal_id, sequence, commit)
        else:
            pieces, length = [whole], len(whole)
        try:
            if self._leave or not segments.fits(length):
                segments.advance(length + _BESIDE_BYTES_MAX)
                self._leave = False
                records = [self._state_record(self._synced_state), *records]
                pieces, length = journal_format.encode(records, segments.journal_id, sequence, commit)
            offset = segments.position + journal_format.HEADER.size + journal_format.RECORD.size * len(records)
            in_background = from_bytes is not None and length >= from_bytes
            self.syncing = segments.append(pieces, length, in_background=in_background)
        except OSError as error:
            self._failed = error
            raise
        for kind, index, _, body, _ in records:
            if kind == journal_format.ENTRY:
                self._table.put(index, segments.active, offset)
            elif kind == journal_format.ACKNOWLEDGED:
                self._state.apply(kind, index, 0, body)
            elif kind == journal_format.STATE:
                segments.heads[segments.active] = SegmentHead(
                    segments.active_bytes, segments.journal_id, sequence, commit, self._synced_state)
            offset += len(body)
        self._written = self.last_index
        self._commit_due = False
        self._commit_written = commit
        self._synced_state = self._state.restated()
