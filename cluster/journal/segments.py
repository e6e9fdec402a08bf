"""The files of the journal: preallocated segments, filled with frames one after another.

Segment n+1 is created, filled with zeros and synced as soon as segment n is in use, so a full disk is noticed while
there is still room to write. That is done in a thread, because it waits for the disk several times. The first record of
a segment (STATE) sums up the journal before it; older segments can therefore be deleted whole, and nothing is ever
rewritten in place.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal_format import SECTOR_BYTES
from sockpqd.cluster.journal.segment_head import SegmentHead, first_to_read, read_heads
from sockpqd.cluster.journal.segment_scan import Replay, Scan
from sockpqd.cluster.storage.disk import NO_SPACE, Disk, passes
from sockpqd.cluster.storage.errors import START_EMPTY, JournalDamaged, NoRoom

log = logging.getLogger("sockpqd.cluster")

_WIPE_BYTES = 1 << 20
_NAME = re.compile(r"journal-(\d{8})")


def numbers_of(names: Iterable[str]) -> tuple[list[int], list[int]]:
    """Return the numbers of the segments among these names, sorted, and those that are the journal.

    A crash during the deletion of old segments can leave some before a gap; these do not belong to the journal.
    """
    numbers = sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))
    oldest = max(0, len(numbers) - 1)
    while oldest > 0 and numbers[oldest - 1] == numbers[oldest] - 1:
        oldest -= 1
    return numbers, numbers[oldest:]


class WrittenSegment(NamedTuple):
    """A segment in use. `last`: its last frame. `end`: where that ends, or the file, if only the head was read."""

    number: int
    end: int
    last: int


class Segments:
    """The files of the journal: tracks the place of the next frame, and reads older ones."""

    def __init__(self, directory: Path, disk: Disk, segment_bytes: int) -> None:
        self.directory = directory
        self.journal_id = b""
        self.active = 0             # number of the segment in use
        self.active_bytes = 0       # its size
        self.position = 0           # where in it the next frame goes
        self.sequence = 0           # number of the last frame
        self.heads: dict[int, SegmentHead] = {}     # of the segments in use; without one, what is older is of no use
        self._disk = disk
        self._segment_bytes = segment_bytes
        self._oldest = 1
        self._files: dict[int, int] = {}            # segment -> descriptor, opened when needed
        self._spare_bytes = 0                       # size of segment active + 1, 0 while it is not complete
        self._preparing: tuple[int, int, Future[None]] | None = None    # its descriptor and size, while it is created
        self.short = False          # the last attempt to create the next segment found no space or no descriptor
        self.held_back = False      # a snapshot should have the space first (capacity.py)
        self._torn: tuple[int, int, int] | None = None      # where a part of a frame may be: segment, start, end
        self._before = (0, 0, 0)    # segment, size and position before the last advance()
        self._begun = False         # the first frame of the active segment may not be synced yet
        self._ends: dict[int, int] = {}             # earlier segment -> end of its last frame
        self._read_ahead: tuple[int, int, bytes] = (0, 0, b"")
        self._large: tuple[int, int, int] | None = None     # file, length and position of the last frame, if large

    def path(self, segment: int) -> Path:
        """The file of a segment."""
        return self.directory / f"journal-{segment:08d}"

    @property
    def room_bytes(self) -> int:
        """Bytes that can be written without allocating more space."""
        expected = self._begun or self._preparing is not None       # where nothing is known yet, the best is assumed
        spare = self._segment_bytes if expected and not self.short else self._spare_bytes
        return self.active_bytes - self.position + spare

    @property
    def scarce(self) -> bool:
        """True if there is no room for more jobs."""
        return self.room_bytes < self._segment_bytes * limits.JOURNAL_SCARCE

    @property
    def exhausted(self) -> bool:
        """True if the remaining room is reserved for entries in flight and for Raft itself."""
        return self.room_bytes < self._segment_bytes * limits.JOURNAL_EXHAUSTED

    @property
    def several(self) -> bool:
        """True if there are segments before the one in use."""
        return self._oldest < self.active

    @property
    def segment_bytes(self) -> int:
        """Size of a segment, unless a frame needs a larger one."""
        return self._segment_bytes

    @property
    def oldest(self) -> int:
        """Number of the oldest segment."""
        return self._oldest

    @property
    def disk_bytes(self) -> int:
        """Return the approximate size of all segments on the disk."""
        return (self.active - self._oldest) * self._segment_bytes + self.active_bytes + self._spare_bytes

    def written(self) -> list[WrittenSegment]:
        """All segments in use, with the end of what is written in each."""
        heads = {number: self.heads[number] for number in sorted(self.heads) if number >= self._oldest}
        found = [
            WrittenSegment(number, self._ends.get(number, head.size), heads[number + 1].sequence - 1)
            for number, head in heads.items() if number < self.active
        ]
        return [*found, WrittenSegment(self.active, self.position, self.sequence)]

    def takes(self, length: int) -> bool:
        """Return whether a frame of this length can be written without the reserve; allocates space if necessary."""
        if self._leaves_reserve(length):
            return True
        return not self.short and self.try_to_prepare(length + self._reserve_bytes)

    @property
    def _reserve_bytes(self) -> int:
        return int(self._segment_bytes * limits.JOURNAL_RESERVE)

    def _leaves_reserve(self, length: int) -> bool:
        if self._begun:             # the next segment cannot be created before a sync ends, so nothing is known yet
            return True
        rest = self.active_bytes - self.position
        left = rest - length + self._spare_bytes if length <= rest else self._spare_bytes - length
        return left >= self._reserve_bytes

    # Opening

    def recover(self, replay: Replay, needed_from: int) -> None:
        """Pass the frames of the segments from entry `needed_from` on to `replay`, and cut off an incomplete last one.

        Of older segments, which are kept for feeds only, just the heads are read.

        Raises JournalDamaged and JournalTooNew. Afterwards either `active` is 0 (there was never a frame), or the next
        frame can be appended.
        """
        numbers, run = numbers_of(self._disk.names(self.directory))
        if not numbers:
            return
        self._oldest = numbers[0]
        self._disk.trust(self.directory, [self.path(number).name for number in run])
        self.heads = read_heads(self._disk, run, self.path)
        if self.heads and (damaged := min(self.heads) - 1) in run:
            log.error("%s is damaged: its first frame has changed since it was written", self.path(damaged))
        begin = first_to_read(self.heads, run, needed_from)
        scan = Scan(self, replay)
        sizes = {number: scan.read(number, self._load(number)) for number in run if number >= begin}
        if scan.active == 0:
            self._never_used(numbers)
            return
        self.active, self.position, self.active_bytes = scan.active, scan.position, sizes[scan.active]
        self.heads.pop(self.active + 1, None)       # of an incomplete frame
        self._ends = scan.ends
        self._wipe(self.active, self.position)
        spare = self.active + 1
        if spare in sizes:
            self._keep_spare(spare, sizes[spare])

    def _load(self, segment: int) -> bytes:
        file = self._file(segment)
        return self._disk.read(file, self._disk.size(file), 0)

    def _never_used(self, numbers: list[int]) -> None:
        """Start from scratch after a crash before the first sync, which leaves one file without a frame."""
        if numbers != [1]:
            self.damaged(numbers[-1], 0, "it holds no frame, and the segments before it are missing")
        self._unlink(1)
        self._oldest = 1

    def _keep_spare(self, segment: int, size: int) -> None:
        if size < self._segment_bytes:              # a crash while it was created
            self._unlink(segment)
        else:
            self._wipe(segment, 0)
            self._spare_bytes = size

    def _wipe(self, segment: int, position: int) -> None:
        """Write zeros from `position` to the end, so that the part cut off can never look like a frame."""
        data = self._load(segment)
        if data.count(0, position) == len(data) - position:
            return
        end = len(data.rstrip(b"\0"))
        log.warning("%s: an incomplete write at offset %d is cut off. This is normal after a crash.",
                    self.path(segment), position)
        file = self._file(segment)
        for start in range(position, end, _WIPE_BYTES):
            self._disk.write(file, [bytes(min(_WIPE_BYTES, end - start))], start)
        self._disk.sync(file)

    def damaged(self, segment: int, offset: int, what: str, advice: str = START_EMPTY) -> None:
        raise JournalDamaged(f"journal {self.path(segment)} is damaged at offset {offset}: {what}. {advice}")

    # Writing

    def start(self, journal_id: bytes) -> None:
        """Begin a new journal with segment 1."""
        self.journal_id = journal_id
        self._begin_to_create(self._segment_bytes)
        self._end_creation()
        self.active_bytes, self._spare_bytes = self._spare_bytes, 0
        self.active, self.position, self.sequence = 1, 0, 0

    def fits(self, length: int) -> bool:
        """Return whether a frame of this length fits into the segment in use."""
        return self.position + length <= self.active_bytes

    def advance(self, length: int) -> None:
        """Switch to the next segment, with room for at least `length` bytes.

        Raises NoRoom, after which nothing has changed, and OSError if the disk fails.
        """
        self._mend()
        self.prepare(length)
        self._before = self.active, self.active_bytes, self.position
        self._ends[self.active] = self.position
        spare = self.active + 1
        self.active, self.active_bytes, self.position, self._spare_bytes = spare, self._spare_bytes, 0, 0
        self._begun = True

    def append(self, pieces: list[bytes], length: int, *, in_background: bool) -> Future[float] | None:
        """Write one frame and sync it. `in_background`: only start the sync, which must end before the next frame.

        Raises NoRoom if nothing was written for lack of space, and OSError if the disk fails.
        """
        self._mend()
        file, syncing = self._file(self.active), None
        try:
            self._disk.write(file, pieces, self.position)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            # Possible on copy-on-write file systems (btrfs), although the space was allocated.
            self._torn = self.active, self.position, min(self.position + length, self.active_bytes)
            if self.position == 0 and self._begun:
                self._spare_bytes, self._begun = self.active_bytes, False
                self.active, self.active_bytes, self.position = self._before
            raise NoRoom(str(error)) from error
        if in_background:
            syncing = self._disk.sync_in_background(file)
        else:
            self._disk.sync(file)
        self._large = (file, length, self.position) if length >= limits.FORGOTTEN_BYTES else None
        self.position += length
        self.sequence += 1
        return syncing

    def synced(self) -> None:
        """Record that the last frame is durable: prepare the next segment, and evict a large frame from the cache."""
        if self._begun:
            self._begun = False
            if self.held_back and not self.short:
                self.short = True
                log.info("the next segment of the journal waits for a snapshot, as there is no room for both")
            if not self.short:
                self._prepare_beside()
        elif self._preparing is not None:
            self._prepare_beside()
        if self._large is not None:
            self._disk.forget(*self._large)
            self._large = None

    def _mend(self) -> None:
        """Durably overwrite a partly written frame with zeros, so that it is not found after a later frame."""
        if self._torn is None:
            return
        segment, start, end = self._torn
        file = self._file(segment)
        try:
            for place in range(start, end, _WIPE_BYTES):
                self._disk.write(file, [bytes(min(_WIPE_BYTES, end - place))], place)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            raise NoRoom(str(error)) from error
        self._disk.sync(file)
        self._torn = None

    def prepare(self, length: int = 0, *, wait: bool = True) -> None:
        """Create the next segment, unless it exists and has room for a frame of this length.

        Without `wait` only start to create it, or check on its progress. Raises NoRoom, after which there may be no
        next segment, and OSError if the disk fails.
        """
        size = max(-(-length // SECTOR_BYTES) * SECTOR_BYTES, self._segment_bytes)
        if self._spare_bytes >= size:
            return
        self._mend()                    # the partly written frame may be in the file that is about to be removed
        try:
            if not self._spare_bytes:
                if self._preparing is None:
                    self._begin_to_create(size)
                if not wait and self._may_go_on():
                    return
                self._end_creation()
            if self._spare_bytes < size:
                self._enlarge(self.active + 1, size)
        except OSError as error:
            if not passes(error):
                raise
            if not self.short:
                log.error("no room for the next segment of the journal (%s), %d bytes are left: free disk space. "
                          "This node refuses what it cannot store, and continues by itself when there is room.",
                          error, self.room_bytes)
            self.short = True
            raise NoRoom(str(error)) from error
        if self.short:
            self.short = False
            log.info("there is room for the journal again")

    def try_to_prepare(self, length: int = 0) -> bool:
        """Like prepare(), but without raising NoRoom; returns whether the next segment exists.

        Without one the rest of the segment in use can still be written.
        """
        try:
            self.prepare(length)
        except NoRoom:
            return False
        return True

    def give_up_spare(self) -> bool:
        """Remove the next segment, because its space is needed; returns whether it could be done without."""
        left = self.active_bytes - self.position
        if not self._spare_bytes or self._torn is not None or left < self._reserve_bytes:
            return False
        self._spare_bytes = 0
        self._unlink(self.active + 1)
        self.short = True
        return True

    def _prepare_beside(self) -> None:
        """Like try_to_prepare(), but without waiting for the disk."""
        with contextlib.suppress(NoRoom):
            self.prepare(wait=False)

    def _may_go_on(self) -> bool:
        """Return whether the next segment is still being created and need not be known to fit on the disk yet."""
        assert self._preparing is not None
        left = self.active_bytes - self.position
        return not self._preparing[2].done() and left >= self._segment_bytes * limits.JOURNAL_EXHAUSTED

    def try_again(self) -> None:
        """Once a second: try to create the next segment, as there may be room now."""
        if not self.held_back:
            self._prepare_beside()

    def _begin_to_create(self, size: int) -> None:
        path = self.path(self.active + 1)
        file = self._disk.create(path)
        try:
            self._preparing = file, size, self._disk.prepare_in_background(file, size, self.directory)
        except OSError:
            self._give_up(path, file)
            raise

    def _end_creation(self) -> None:
        """Wait until the next segment has been created. After an OSError there is none."""
        if self._preparing is None:
            return
        file, size, over = self._preparing
        self._preparing = None
        try:
            over.result()
        except OSError:
            self._give_up(self.path(self.active + 1), file)
            raise
        self._keep_open(self.active + 1, file)
        self._spare_bytes = size

    def _give_up(self, path: Path, file: int) -> None:
        with contextlib.suppress(OSError):
            self._disk.close(file)
            self._disk.unlink(path)

    def _enlarge(self, segment: int, size: int) -> None:
        file = self._file(segment)
        try:
            self._disk.allocate(file, size)
        except OSError:
            self._spare_bytes = 0       # its length is uncertain now, so remove it
            self._unlink(segment)
            raise
        self._disk.sync(file)           # its length must be durable before the frame that states it
        self._spare_bytes = size

    def delete_one_before(self, segment: int) -> bool:
        """Remove the oldest segment if it is older than this one; returns whether there are more of them.

        Its contents must be superseded by synced frames in later segments. It is deleted in a thread, as freeing its
        space takes long, and only one at a time, as that keeps the disk busy. If it fails, the next process does it.
        """
        if self._oldest < segment:
            self._close_one(self._oldest)
            self._disk.unlink_in_background(self.path(self._oldest))
            self._ends.pop(self._oldest, None)
            self.heads.pop(self._oldest, None)
            self._oldest += 1
        return self._oldest < segment

    def _unlink(self, segment: int) -> None:
        self._close_one(segment)
        self._disk.unlink(self.path(segment))

    def _close_one(self, segment: int) -> None:
        file = self._files.pop(segment, None)
        if file is not None:
            self._disk.close(file)

    # Reading

    def read(self, segment: int, offset: int, length: int) -> bytes:
        """Read bytes of written frames, with read-ahead, as old entries are mostly read sequentially."""
        held, start, data = self._read_ahead
        if held != segment or offset < start or offset + length > start + len(data):
            # Never beyond the written part: the zeros there would be cached, and be wrong once a frame is written.
            written = self.position - offset if segment == self.active else limits.READ_AHEAD_BYTES
            data = self._disk.read(self._file(segment), max(length, min(limits.READ_AHEAD_BYTES, written)), offset)
            start = offset
            self._read_ahead = (segment, offset, data)
        return data[offset - start:offset - start + length]

    def open(self, segment: int) -> int:
        """Open a segment for one reader, which closes it with close_file(). Raises OSError."""
        return self._disk.open(self.path(segment))

    def close_file(self, file: int) -> None:
        """Close a file descriptor that open() returned."""
        self._disk.close(file)

    def _file(self, segment: int) -> int:
        file = self._files.get(segment)
        if file is None:
            file = self._disk.open(self.path(segment), writable=True)
            self._keep_open(segment, file)
        return file

    def _keep_open(self, segment: int, file: int) -> None:
        """Keep a segment open, so that using it again needs no descriptor; close the oldest if there are too many."""
        self._files[segment] = file
        if len(self._files) > limits.JOURNAL_FILES_MAX:
            oldest = min(number for number in self._files if number != segment)
            self._disk.close(self._files.pop(oldest))

    def close(self) -> None:
        """Close all files, waiting for the next segment if it is being created. Nothing else is synced."""
        with contextlib.suppress(OSError):
            self._end_creation()
        for file in self._files.values():
            self._disk.close(file)
        self._files.clear()
        self._disk.end_removals()       # before another process may open this journal
