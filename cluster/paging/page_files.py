"""Pages of jobs in files of this node.

The files are a part of this process's memory that happens to be on the disk. They are not synced and mean nothing to
the next process, which removes them: the snapshot and the journal have every job. So a crash can lose nothing here, and
a page that cannot be read is mended by a restart.

    file `pages-<number>`: frames        (a segment, up to SEGMENT_BYTES; a larger page has one of its own)
    frame := number of the page 8 | length of its data 4 | CRC of both and the data 4 | data        (little-endian)

Pages are appended to the last segment, in pieces of WRITE_BYTES. A segment without live pages is removed; of one with
few the live ones are moved behind the others, a few in each turn, so a queue that stands still for long does not hold
whole files. A forked child inherits the descriptors, and so reads what it needs even if the node removes the file
meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import struct
import time
from pathlib import Path
from zlib import crc32

from cluster import limits
from cluster.metrics.histogram import Histogram
from cluster.storage.disk import Disk, passes
from core import PageLost

log = logging.getLogger("sockpqd.cluster")

PREFIX = "pages-"
HEADER = struct.Struct("<QII")
SEGMENT_BYTES = 256 << 20
WRITE_BYTES = 1 << 20
SPARSE_PERCENT = 30             # a segment with less than that alive is given up
SCANNED_FRAMES = 64             # of such a segment, in one step

_CHECKED = struct.Struct("<QI")


class _Segment:
    """A file. `size`: with what is still in the buffer; `live_bytes`: frames of pages that are needed."""

    __slots__ = ("file", "live_bytes", "number", "path", "scanned", "size", "written")

    def __init__(self, number: int, path: Path, file: int) -> None:
        self.number = number
        self.path = path
        self.file = file
        self.size = 0
        self.written = 0        # what is in the file,
        self.live_bytes = 0
        self.scanned = 0        # and how far it has been looked through for pages to move


class PageFiles:
    """The files of all spaces. `halted`: no more pages are written, because the disk is nearly full."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self.halted = False
        self.lost: PageLost | None = None       # the first page that could not be read: the node must stop
        self.reads = Histogram()                # how long the disk took to read a page
        self.bytes_total = 0
        self.disk = disk
        self.segments: dict[int, _Segment] = {}
        self._directory = directory
        self._made = False
        self._next = 1
        self._told = False                      # that there is no room
        self._spaces: list[FileSpace] = []

    def clear(self) -> None:
        """Remove what an earlier process has left. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            for name in self.disk.names(self._directory):
                if name.startswith(PREFIX):
                    self.disk.unlink(self._directory / name)

    def space(self) -> FileSpace:
        """An empty space."""
        space = FileSpace(self)
        self._spaces.append(space)
        return space

    def tidy(self) -> bool:
        """Move a few pages out of segments with little else; returns whether there may be more to do."""
        return any(space.tidy() for space in self._spaces)

    def descriptors(self) -> list[int]:
        """The descriptors that a forked child needs to read pages."""
        return [segment.file for segment in self.segments.values()]

    def new_segment(self) -> _Segment | None:
        """An empty segment; None: there is no room for one."""
        if len(self.segments) >= limits.PAGE_FILES_MAX:
            self.no_room(OSError(errno.EMFILE, f"there are {limits.PAGE_FILES_MAX} files of pages"))
            return None
        path = self._directory / f"{PREFIX}{self._next:08}"
        try:
            if not self._made:
                self.disk.make_directory(self._directory)
                self._made = True
            file = self.disk.create(path)
        except OSError as error:
            self.no_room(error)
            return None
        segment = self.segments[self._next] = _Segment(self._next, path, file)
        self._next += 1
        return segment

    def no_room(self, error: OSError) -> None:
        """A page could not be written. Raises the error if it is more than a lack of room."""
        if not passes(error):
            raise error
        if not self._told:
            self._told = True
            log.warning("jobs that should leave memory stay there, because their pages cannot be written: %s. Free "
                        "disk space.", error)

    def wrote(self, count: int) -> None:
        """So many bytes were written."""
        self.bytes_total += count
        if self._told:
            self._told = False
            log.info("jobs leave memory again")

    def remove(self, segment: _Segment) -> None:
        """The segment is not needed any more."""
        del self.segments[segment.number]
        self.bytes_total -= segment.written
        self.disk.close(segment.file)
        with contextlib.suppress(OSError):          # the next process removes it
            self.disk.unlink(segment.path)

    def forget(self, space: FileSpace) -> None:
        """The space was dropped."""
        self._spaces.remove(space)


class FileSpace:
    """The pages of one state."""

    def __init__(self, files: PageFiles) -> None:
        self._files = files
        self._disk = files.disk
        self._places: dict[int, int] = {}               # page -> segment, offset and length, see _packed
        self._segments: dict[int, _Segment] = {}
        self._last: _Segment | None = None              # the one that is appended to,
        self._buffer = bytearray()                      # and what of it is not in the file yet
        self._sparse: dict[int, None] = {}              # segments to give up
        self._next = 1

    def put(self, data: bytes) -> int | None:
        """Keep a page; returns its number, or None when there is no room."""
        if self._files.halted or not self._put(self._next, data):
            return None
        self._next += 1
        return self._next - 1

    def _put(self, number: int, data: bytes) -> bool:
        length = HEADER.size + len(data)
        if len(self._buffer) >= WRITE_BYTES and not self._write():
            return False
        segment = self._last
        if segment is None or segment.size + length > SEGMENT_BYTES:
            segment = self._begin()
            if segment is None:
                return False
        self._places[number] = _packed(segment.number, segment.size, length)
        checked = crc32(data, crc32(_CHECKED.pack(number, len(data))))
        self._buffer += HEADER.pack(number, len(data), checked)
        self._buffer += data
        segment.size += length
        segment.live_bytes += length
        return True

    def _begin(self) -> _Segment | None:
        """Begin another segment; None: there is no room."""
        if not self._write():
            return None
        full, segment = self._last, self._files.new_segment()
        if segment is None:
            return None
        self._segments[segment.number] = self._last = segment
        if full is not None:
            self._look_at(full)
        return segment

    def _write(self) -> bool:
        """Write the buffer; returns whether there was room."""
        segment = self._last
        if segment is None or not self._buffer:
            return True
        try:
            self._disk.write(segment.file, [bytes(self._buffer)], segment.written)
        except OSError as error:
            self._files.no_room(error)
            return False
        self._files.wrote(len(self._buffer))
        segment.written += len(self._buffer)
        self._buffer.clear()
        return True

    def get(self, number: int) -> bytes:
        """The bytes of the page. Raises PageLost."""
        try:
            return self._read(number)
        except PageLost as error:
            self._files.lost = self._files.lost or error
            raise

    def _read(self, number: int) -> bytes:
        segment, offset, length = self._place(number)
        frame = self._bytes(segment, offset, length)
        if len(frame) == length:
            found, size, checked = HEADER.unpack_from(frame)
            data = frame[HEADER.size:]
            if (found, size) == (number, len(data)) and checked == crc32(data, crc32(_CHECKED.pack(number, size))):
                return data
        raise _lost(segment, f"the page at {offset} is not as it was written")

    def _bytes(self, segment: _Segment, offset: int, length: int) -> bytes:
        if offset >= segment.written:
            return bytes(self._buffer[offset - segment.written:offset - segment.written + length])
        begun = time.perf_counter()
        try:
            return self._disk.read(segment.file, length, offset)
        except OSError as error:
            raise _lost(segment, str(error)) from error
        finally:
            self._files.reads.observe(time.perf_counter() - begun)

    def _place(self, number: int) -> tuple[_Segment, int, int]:
        place = self._places[number]
        return self._segments[place >> 64], place >> 32 & 0xFFFFFFFF, place & 0xFFFFFFFF

    def free(self, number: int) -> None:
        """The page is not needed any more."""
        segment, _, length = self._place(number)
        del self._places[number]
        segment.live_bytes -= length
        if segment is not self._last:
            self._look_at(segment)

    def _look_at(self, segment: _Segment) -> None:
        """Remove a segment without live pages; give up one with few."""
        if not segment.live_bytes:
            self._sparse.pop(segment.number, None)
            del self._segments[segment.number]
            self._files.remove(segment)
        elif segment.live_bytes * 100 < segment.size * SPARSE_PERCENT:
            self._sparse[segment.number] = None

    def tidy(self) -> bool:
        """Move a few pages out of a segment with little else; returns whether there may be more to do.

        Raises PageLost.
        """
        number = next(iter(self._sparse), None)
        if number is None or self._files.halted:
            return False
        segment = self._segments[number]
        for _ in range(SCANNED_FRAMES):
            head = self._bytes(segment, segment.scanned, HEADER.size)
            page, size, _ = HEADER.unpack(head) if len(head) == HEADER.size else (0, segment.size, 0)
            length = HEADER.size + size
            if segment.scanned + length > segment.size:     # some header on the way here is another one
                raise _lost(segment, f"no page ends where one should, at {segment.scanned} or before")
            if self._places.get(page) == _packed(number, segment.scanned, length):
                if not self._put(page, self.get(page)):
                    return False
                segment.scanned += length
                segment.live_bytes -= length
                if not segment.live_bytes:
                    self._look_at(segment)
                break
            segment.scanned += length
        return True

    def expect(self, number: int) -> None:
        """The page will be read soon."""
        segment, offset, length = self._place(number)
        if offset < segment.written:
            self._disk.expect(segment.file, length, offset)

    def drop(self) -> None:
        """Nothing of the space is needed any more."""
        for segment in self._segments.values():
            self._files.remove(segment)
        self._segments, self._places, self._sparse, self._last = {}, {}, {}, None
        self._buffer.clear()
        self._files.forget(self)


def _packed(segment: int, offset: int, length: int) -> int:
    """A place as one number: there may be millions."""
    return segment << 64 | offset << 32 | length


def _lost(segment: _Segment, what: str) -> PageLost:
    return PageLost(f"{segment.path}: {what}. This node stops, because jobs are missing in its memory. Start it again: "
                    "it makes its state anew from its snapshot and journal. Look at its disk.")
