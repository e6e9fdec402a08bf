"""The files of the journal: preallocated segments, filled one behind the other with frames.

Segment n+1 is created, full of zeros and synced, as soon as segment n is in use, so that a full disk is noticed while
there is still room to write. The first record of a segment (STATE) restates what the journal was when the segment
began; older segments can therefore be deleted whole, and nothing is ever rewritten in place.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import re
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from cluster import frames
from cluster.disk import Disk
from cluster.frames import Header, PlacedRecord
from cluster.storage_errors import START_EMPTY, START_NEWER, JournalDamaged, JournalTooNew

log = logging.getLogger("sockpqd.cluster")

SEGMENT_BYTES = 32 << 20
READ_AHEAD_BYTES = 256 << 10
# A synced frame of this size is not kept in the operating system's memory: large frames one behind the other would take
# new pages for ever, and a page that is used for the first time costs a virtual machine several times a warm one.
FORGOTTEN_BYTES = 1 << 20
_WIPE_BYTES = 1 << 20
_NAME = re.compile(r"journal-(\d{8})")

# (segment number, contents of its file, frame's header, frame's records)
Replay = Callable[[int, bytes, Header, list[PlacedRecord]], None]


class Segments:
    """Where the next frame goes, and how older frames are read."""

    def __init__(self, directory: Path, disk: Disk, segment_bytes: int) -> None:
        self.directory = directory
        self.journal_id = b""
        self.active = 0             # number of the segment in use
        self.active_bytes = 0       # its size
        self.position = 0           # where in it the next frame goes
        self.sequence = 0           # number of the last frame
        self._disk = disk
        self._segment_bytes = segment_bytes
        self._oldest = 1
        self._files: dict[int, int] = {}            # segment -> descriptor, opened when needed
        self._spare_bytes = 0                       # size of segment active + 1, 0 while it does not exist
        self._begun = False         # the first frame of the active segment may not be synced yet
        self._read_ahead: tuple[int, int, bytes] = (0, 0, b"")
        self._large: tuple[int, int, int] | None = None     # file, length and position of the last frame, if it is

    def path(self, segment: int) -> Path:
        """The file of a segment."""
        return self.directory / f"journal-{segment:08d}"

    @property
    def room_bytes(self) -> int:
        """Bytes that can be written without asking the disk for more space."""
        spare = self._segment_bytes if self._begun else self._spare_bytes
        return self.active_bytes - self.position + spare

    # Opening

    def recover(self, replay: Replay) -> None:
        """Hand every sound frame to `replay`, in order, and cut an incomplete last one off.

        Raises JournalDamaged and JournalTooNew. Afterwards either `active` is 0 (there was never a frame), or the next
        frame can be appended.
        """
        numbers = [int(match[1]) for name in self._disk.names(self.directory) if (match := _NAME.fullmatch(name))]
        if not numbers:
            return
        oldest = len(numbers) - 1
        while oldest > 0 and numbers[oldest - 1] == numbers[oldest] - 1:
            oldest -= 1
        run = numbers[oldest:]      # a crash while old segments were deleted can leave some before a gap
        self._oldest = numbers[0]
        scan = _Scan(self, replay)
        sizes = {number: scan.read(number, self._load(number)) for number in run}
        if scan.active == 0:
            self._never_used(numbers)
            return
        self.active, self.position, self.active_bytes = scan.active, scan.position, sizes[scan.active]
        self._wipe(self.active, self.position)
        # A killed process leaves frames that only the operating system's memory holds. Whoever reads them may vouch for
        # them, so they must be on disk first.
        self._disk.sync(self._file(self.active))
        spare = self.active + 1
        if spare in sizes:
            self._keep_spare(spare, sizes[spare])
        self._disk.sync_directory(self.directory)

    def _load(self, segment: int) -> bytes:
        file = self._file(segment)
        return self._disk.read(file, self._disk.size(file), 0)

    def _never_used(self, numbers: list[int]) -> None:
        """A crash before the first frame was synced leaves one file without a frame: start anew."""
        if numbers != [1]:
            self.damaged(numbers[-1], 0, "it holds no frame, and the segments before it are missing")
        self._unlink(1)
        self._oldest = 1

    def _keep_spare(self, segment: int, size: int) -> None:
        if size < self._segment_bytes:              # a crash while it was created
            self._unlink(segment)
        else:
            self._wipe(segment, 0)
            self._disk.sync(self._file(segment))    # its length, which its first frame will tell, must be durable
            self._spare_bytes = size

    def _wipe(self, segment: int, position: int) -> None:
        """Zeros again from `position` to the end, so that what was cut off can never look like a frame."""
        data = self._load(segment)
        if data.count(0, position) == len(data) - position:
            return
        end = len(data.rstrip(b"\0"))
        log.warning("%s: an incomplete write at offset %d is cut off. After a crash this is as it should be.",
                    self.path(segment), position)
        file = self._file(segment)
        for start in range(position, end, _WIPE_BYTES):
            self._disk.write(file, [bytes(min(_WIPE_BYTES, end - start))], start)
        self._disk.sync(file)

    def damaged(self, segment: int, offset: int, what: str) -> None:
        """Raise JournalDamaged."""
        raise JournalDamaged(f"journal {self.path(segment)} is damaged at offset {offset}: {what}. {START_EMPTY}")

    # Writing

    def start(self, journal_id: bytes) -> None:
        """Begin a new journal with segment 1."""
        self.journal_id = journal_id
        self.active_bytes = self._create(1)
        self.active, self.position, self.sequence = 1, 0, 0

    def fits(self, length: int) -> bool:
        """Is there room for a frame of this length in the segment in use?"""
        return self.position + length <= self.active_bytes

    def advance(self, length: int) -> None:
        """Go to the next segment and make room for `length` bytes there; nothing has changed if that fails."""
        self.prepare()
        spare = self.active + 1
        if length > self._spare_bytes:
            file = self._file(spare)
            self._disk.allocate(file, length)
            self._disk.sync(file)       # the frame that says how long the file is must not be durable before it is
            self._spare_bytes = length
        self.active, self.active_bytes, self.position, self._spare_bytes = spare, self._spare_bytes, 0, 0
        self._begun = True

    def append(self, pieces: list[bytes], length: int, *, beside: bool) -> Future[None] | None:
        """Write one frame and sync it. `beside`: the sync only begins; it must have ended before the next frame."""
        file, syncing = self._file(self.active), None
        self._disk.write(file, pieces, self.position)
        if beside:
            syncing = self._disk.sync_beside(file)
        else:
            self._disk.sync(file)
        self._large = (file, length, self.position) if length >= FORGOTTEN_BYTES else None
        self.position += length
        self.sequence += 1
        return syncing

    def synced(self) -> None:
        """The last frame is: the next segment may exist, and the operating system need not keep what is large."""
        if self._begun:
            self._begun = False
            self.try_to_prepare()
        if self._large is not None:
            self._disk.forget(*self._large)
            self._large = None

    def prepare(self) -> None:
        """Create the next segment, unless it exists."""
        if not self._spare_bytes:
            self._spare_bytes = self._create(self.active + 1)

    def try_to_prepare(self) -> None:
        """As prepare(), but a full disk is only logged: the rest of the segment in use can still be written."""
        try:
            self.prepare()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            log.warning("no space for the next journal segment, %d bytes left: %s. Make room on the disk; "
                        "this node goes on by itself then.", self.room_bytes, error)

    def _create(self, segment: int) -> int:
        path = self.path(segment)
        file = self._disk.create(path)
        try:
            self._disk.allocate(file, self._segment_bytes)
            self._disk.sync(file)
            self._disk.sync_directory(self.directory)
        except OSError:
            with contextlib.suppress(OSError):
                self._disk.close(file)
                self._disk.unlink(path)
            raise
        self._files[segment] = file
        return self._segment_bytes

    def delete_one_before(self, segment: int) -> bool:
        """Remove the oldest segment if it is older than this one; returns whether there are more of them.

        What it says must be superseded by synced frames in later segments. One at a time, because the file system takes
        its time for each, and the node stands still meanwhile.
        """
        if self._oldest < segment:
            with contextlib.suppress(FileNotFoundError):        # gone since a crash in an earlier deletion
                self._unlink(self._oldest)
            self._oldest += 1
        return self._oldest < segment

    def _unlink(self, segment: int) -> None:
        file = self._files.pop(segment, None)
        if file is not None:
            self._disk.close(file)
        self._disk.unlink(self.path(segment))

    # Reading

    def read(self, segment: int, offset: int, length: int) -> bytes:
        """Bytes of written frames. Neighbours are read ahead: who wants one old entry mostly wants the next as well."""
        held, start, data = self._read_ahead
        if held != segment or offset < start or offset + length > start + len(data):
            # Never beyond what is written: it would be held as zeros and be wrong when a frame has come there.
            written = self.position - offset if segment == self.active else READ_AHEAD_BYTES
            data = self._disk.read(self._file(segment), max(length, min(READ_AHEAD_BYTES, written)), offset)
            start = offset
            self._read_ahead = (segment, offset, data)
        return data[offset - start:offset - start + length]

    def _file(self, segment: int) -> int:
        file = self._files.get(segment)
        if file is None:
            file = self._files[segment] = self._disk.open(self.path(segment), writable=True)
        return file

    def close(self) -> None:
        """Close all files. Nothing is synced."""
        for file in self._files.values():
            self._disk.close(file)
        self._files.clear()


class _Scan:
    """Reads segments in order, and decides where the journal ends and whether it can be trusted (frames.py)."""

    def __init__(self, segments: Segments, replay: Replay) -> None:
        self.active = 0             # segment of the last sound frame
        self.position = 0           # behind that frame
        self._segments = segments
        self._replay = replay
        self._torn: tuple[int, int] | None = None       # where an incomplete frame stands
        self._blank: int | None = None                  # the first segment without a frame

    def read(self, number: int, data: bytes) -> int:
        """Take the next segment; returns its size."""
        position = 0
        while position < len(data) and self._torn is None:
            if frames.is_blank(data, position):
                break
            header = frames.read_header(data, position)
            if header is not None:
                self._check_header(number, position, header)
            records = None if header is None else frames.read_records(data, position, header)
            if header is None or records is None:
                self._unsound(number, position, data, header)
                break
            self._accept(number, position, data, header, records)
            position += header.length
        self._check_rest(number, position, data)
        if position == 0:
            self._empty(number)
        return len(data)

    def _check_header(self, number: int, position: int, header: Header) -> None:
        """A sound header must be that of the next frame of this journal, whatever is behind it."""
        segments = self._segments
        if header.version > frames.VERSION:
            raise JournalTooNew(
                f"journal {segments.path(number)} has format {header.version}; this version of sockpqd reads"
                f" formats up to {frames.VERSION}. {START_NEWER}"
            )
        if not segments.journal_id:
            segments.journal_id, segments.sequence = header.journal_id, header.sequence - 1
        if header.journal_id != segments.journal_id:
            segments.damaged(number, position, "the frame there belongs to another journal")
        expected = segments.sequence + 1
        if header.sequence != expected:
            segments.damaged(number, position, f"frame {header.sequence} is there, frame {expected} should be")

    def _accept(self, number: int, position: int, data: bytes, header: Header, records: list[PlacedRecord]) -> None:
        if position == 0:
            self._check_first(number, data, records)
        self._segments.sequence = header.sequence
        self.active, self.position = number, position + header.length
        self._replay(number, data, header, records)

    def _check_first(self, number: int, data: bytes, records: list[PlacedRecord]) -> None:
        first = records[0] if records else None
        if first is None or first.kind != frames.STATE or first.b != number:
            self._segments.damaged(number, 0, "it does not begin as a segment of this number does")
        elif first.a != len(data):
            self._segments.damaged(number, len(data), f"it is {len(data)} bytes long and should be {first.a}")

    def _unsound(self, number: int, position: int, data: bytes, header: Header | None) -> None:
        if not frames.is_torn(data, position, header):
            self._segments.damaged(number, position, "the frame there has changed since it was written")
        self._torn = (number, position)

    def _check_rest(self, number: int, position: int, data: bytes) -> None:
        """Behind the end there must be no later frame. (An old one may be: a job can be a copy of a journal.)"""
        segments = self._segments
        segment, end = self._torn or (number, position)
        for offset, header in frames.later_headers(data, position):
            expected = segments.sequence + 1
            if header.journal_id == segments.journal_id and header.sequence > expected:
                found = f"{segments.path(number).name} has frame {header.sequence} at {offset}"
                segments.damaged(segment, end, f"frame {expected} is missing or incomplete, but {found}")

    def _empty(self, number: int) -> None:
        if self._blank is not None:
            name = self._segments.path(number).name
            self._segments.damaged(self._blank, 0, f"it holds no frame, and {name} is only made when it does")
        self._blank = number
