"""The pages of one state, in their files.

A file is a segment of up to SEGMENT_BYTES, less where the disk has little room; a larger page has one of its own. Pages
are appended to the last segment, in pieces of WRITE_BYTES. A segment without live pages is removed; if it has few, they
are moved to the end of the last segment, a few in each turn, so that an idle queue does not keep whole files. When room
is short, a segment is given up (its live pages are moved) as soon as a good part of it is dead, the last one included.

Pages are moved, instead of punching holes into the dead parts of a file (FALLOC_FL_PUNCH_HOLE), because a snapshot
names files, and a forked child reads what was alive when it was forked, so a hole would first have to wait for every
snapshot and every child that may still read there. A file that is removed as a whole stays readable for all of them.
Moving needs room for the live pages; so the files are small where there is little.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from sockpqd.cluster.metrics.histogram import Histogram
from sockpqd.cluster.paging.page_format import HEADER, Reference, data_of, header_of
from sockpqd.cluster.storage.disk import Disk
from sockpqd.core import PageLost

SEGMENT_BYTES = 256 << 20
SEGMENT_BYTES_MIN = 16 << 20    # where there is little room a segment has
ROOM_SHARE = 8                  # an eighth of that, and no less than SEGMENT_BYTES_MIN
WRITE_BYTES = 1 << 20
SPARSE_PERCENT = 30             # a segment with less than that alive is given up;
SHORT_SPARSE_PERCENT = 75       # when room is short, with less than that
SCANNED_FRAMES = 64             # of such a segment, in one step
SMALL_SHARE = 4                 # at a start one of less than a quarter of its usual size is given up, too
MANY_SEGMENTS = 32              # with more of them, one of less than a quarter of SEGMENT_BYTES is small

_MASK = 0xFFFFFFFF


class Segment:
    """A file of pages. `size`: its bytes, including those still buffered; `live_bytes`: those of pages that are needed.

    `doubtful`: a sync of it has failed.
    """

    __slots__ = ("doubtful", "file", "live_bytes", "number", "path", "rest", "scanned", "size", "synced", "written")

    def __init__(self, number: int, path: Path, file: int) -> None:
        self.number = number
        self.path = path
        self.file = file
        self.size = 0
        self.written = 0        # what is in the file,
        self.synced = 0         # and durably,
        self.doubtful = False
        self.live_bytes = 0
        self.scanned = 0        # and how far it has been looked through for pages to move
        self.rest: list[int] | None = None      # those that are to be moved, if that does not show in the file


class PageSegments(Protocol):
    """The files of all spaces: see PageFiles."""

    halted: bool
    room_bytes: int
    free_bytes: int
    lost: PageLost | None
    reads: Histogram
    misses: int
    expected: int
    moved: int
    bytes_total: int
    disk: Disk

    def old_segment(self, number: int) -> Segment:
        """Return the segment of an earlier process. Raises PageLost."""

    def new_segment(self) -> Segment | None:
        """Return an empty segment, None if there is no room for one."""

    def no_room(self, error: OSError) -> None:
        """Handle a page that could not be written; raise the error if it is more than a lack of room."""

    def wrote(self, count: int) -> None:
        """Record that `count` bytes were written."""

    def remove(self, segment: Segment) -> None:
        """Delete a segment that the state no longer needs."""

    def forget(self, space: FileSpace) -> None:
        """Forget a space that was dropped."""


class FileSpace:
    """The pages of one state."""

    def __init__(self, files: PageSegments, first: int) -> None:
        """`first`: its first number, greater than the numbers of all pages that it may adopt."""
        self._files = files
        self._disk = files.disk
        self._places: dict[int, int] = {}               # page -> where it is, see _packed
        self._segments: dict[int, Segment] = {}
        self._last: Segment | None = None              # the one that is appended to,
        self._buffer = bytearray()                      # and what of it is not in the file yet
        self._sparse: dict[int, None] = {}              # segments to give up
        self._next = first

    def put(self, data: bytes) -> int | None:
        """Keep a page; returns its number, or None when there is no room."""
        files = self._files
        if files.halted or len(data) + len(self._buffer) > files.room_bytes or not self._put(self._next, data):
            return None
        self._next += 1
        return self._next - 1

    def _put(self, number: int, data: bytes) -> bool:
        length = HEADER.size + len(data)
        if len(self._buffer) >= WRITE_BYTES and not self._write():
            return False
        segment = self._last
        if segment is None or segment.size + length > self._segment_bytes:
            segment = self._begin()
            if segment is None:
                return False
        header, crc = header_of(number, data)
        self._places[number] = _packed(Reference(segment.number, segment.size, length, number, crc))
        self._buffer += header
        self._buffer += data
        segment.size += length
        segment.live_bytes += length
        return True

    @property
    def _segment_bytes(self) -> int:
        """The size of a segment. It is small where room is short, as giving one up takes room for its live pages."""
        return min(SEGMENT_BYTES, max(SEGMENT_BYTES_MIN, self._files.room_bytes // ROOM_SHARE))

    def _begin(self) -> Segment | None:
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
        self._disk.begin_sync(segment.file, len(self._buffer), segment.written)     # or all is left to a snapshot
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
        reference = self._place(number)
        segment = self._segments[reference.segment]
        data = data_of(self._bytes(segment, reference.offset, reference.length), reference)
        if data is None:
            raise _lost(segment, f"the page at {reference.offset} is not as it was written")
        return data

    def _bytes(self, segment: Segment, offset: int, length: int) -> bytes:
        if offset >= segment.written:
            return bytes(self._buffer[offset - segment.written:offset - segment.written + length])
        begun = time.perf_counter()
        try:
            data = self._disk.read_cached(segment.file, length, offset)
            if data is None:
                self._files.misses += 1
                data = self._disk.read(segment.file, length, offset)
            return data
        except OSError as error:
            raise _lost(segment, str(error)) from error
        finally:
            self._files.reads.observe(time.perf_counter() - begun)

    def _place(self, number: int) -> Reference:
        place = self._places[number]
        return Reference(place >> 96, place >> 32 & _MASK, place & _MASK, number, place >> 64 & _MASK)

    def reference(self, number: int) -> bytes:
        """The reference by which a later process finds the page."""
        return self._place(number).packed()

    def adopt(self, reference: bytes) -> int:
        """Take over a page that an earlier process has left; returns its number. Raises PageLost."""
        place = Reference.unpacked(reference)
        segment = self._segments.get(place.segment)
        if segment is None:
            segment = self._segments[place.segment] = self._files.old_segment(place.segment)
        self._places[place.number] = _packed(place)
        segment.live_bytes += place.length
        end = place.offset + place.length
        if end > segment.size:
            self._files.bytes_total += end - segment.written
            segment.size = segment.written = segment.synced = end
        return place.number

    def settle(self) -> None:
        """Find segments to give up or delete, once all pages of an earlier process have been adopted."""
        many = len(self._segments) > MANY_SEGMENTS
        usual_bytes = SEGMENT_BYTES if many else min(SEGMENT_BYTES, SEGMENT_BYTES_MIN)
        for segment in list(self._segments.values()):
            if segment is not self._last:
                self._look_at(segment)
                if segment.size * SMALL_SHARE < usual_bytes and segment.live_bytes:
                    self._sparse[segment.number] = None

    def flush(self) -> None:
        """Write the buffer to the file. Raises OSError."""
        if not self._write():
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} for pages of jobs")

    def doubt(self, numbers: Collection[int]) -> None:
        """Give up the segments among these that could not be synced."""
        for number in numbers:
            segment = self._segments.get(number)
            if segment is None or segment.synced >= segment.written:
                continue
            segment.doubtful = True
            if segment is self._last and self._write():
                self._last = None
            if segment is not self._last:       # otherwise once it is full
                self._look_at(segment)

    def free(self, number: int) -> None:
        """Record that the page is no longer needed."""
        place = self._place(number)
        segment = self._segments[place.segment]
        del self._places[number]
        segment.live_bytes -= place.length
        if segment is not self._last:
            self._look_at(segment)
        elif not segment.live_bytes:
            self._nothing_in_last(segment)

    def _nothing_in_last(self, segment: Segment) -> None:
        """Remove the last segment, which has no live pages, or keep using it if its file is still empty."""
        self._buffer.clear()
        segment.size = segment.written
        if segment.written:
            self._last = None
            self._look_at(segment)

    def _look_at(self, segment: Segment) -> None:
        """Remove a segment without live pages; give up one with few, and one that could not be synced."""
        if not segment.live_bytes:
            self._sparse.pop(segment.number, None)
            del self._segments[segment.number]
            self._files.remove(segment)
        elif segment.live_bytes * 100 < segment.size * SPARSE_PERCENT or segment.doubtful:
            self._sparse[segment.number] = None

    def make_room(self) -> None:
        """Give up segments of which a good part is dead, as far as there is room for their live pages."""
        last, left = self._last, self._files.free_bytes
        if last is not None and _much_is_dead(last) and self._write():
            self._last = None
        for segment in sorted(self._segments.values(), key=lambda segment: segment.live_bytes / (segment.size or 1)):
            left -= segment.live_bytes
            if left < 0 or not _much_is_dead(segment):
                return
            if segment is not self._last:
                self._sparse[segment.number] = None

    def tidy(self) -> bool:
        """Move a few live pages out of a nearly dead segment; returns whether there may be more to do.

        Raises PageLost.
        """
        number = next(iter(self._sparse), None)
        if number is None:
            return False
        segment = self._segments[number]
        if segment.live_bytes > self._files.free_bytes:
            return False
        if segment.rest is not None:
            return self._move_rest(segment, segment.rest)
        for _ in range(SCANNED_FRAMES):
            head = self._bytes(segment, segment.scanned, HEADER.size)
            page, size, crc = HEADER.unpack(head) if len(head) == HEADER.size else (0, segment.size, 0)
            length = HEADER.size + size
            if segment.scanned + length > segment.size:     # some header on the way here is another one
                segment.rest = [page for page, place in self._places.items() if place >> 96 == number]
                return True
            if self._places.get(page) == _packed(Reference(number, segment.scanned, length, page, crc)):
                if not self._put(page, self.get(page)):
                    return False
                self._files.moved += 1
                segment.scanned += length
                segment.live_bytes -= length
                if not segment.live_bytes:
                    self._look_at(segment)
                break
            segment.scanned += length
        return True

    def _move_rest(self, segment: Segment, rest: list[int]) -> bool:
        """Move the live pages `rest` of a segment whose headers cannot be followed."""
        while rest:
            page = rest.pop()
            place = self._places.get(page, -1)
            if place >> 96 == segment.number:
                if not self._put(page, self.get(page)):
                    rest.append(page)
                    return False
                self._files.moved += 1
                segment.live_bytes -= place & _MASK
                if not segment.live_bytes:
                    self._look_at(segment)
                return True
        return True

    def expect(self, number: int) -> None:
        """Prepare for the page to be read soon."""
        place = self._place(number)
        segment = self._segments[place.segment]
        if place.offset < segment.written:
            self._files.expected += 1
            self._disk.expect(segment.file, place.length, place.offset)

    @property
    def rewriting(self) -> int:
        """The number of segments that are being given up."""
        return len(self._sparse)

    def drop(self) -> None:
        """Release all pages of the space."""
        for segment in self._segments.values():
            self._files.remove(segment)
        self._segments, self._places, self._sparse, self._last = {}, {}, {}, None
        self._buffer.clear()
        self._files.forget(self)


def _much_is_dead(segment: Segment) -> bool:
    """Return whether enough of the segment is dead to make giving it up worth the writing."""
    dead = segment.size - segment.live_bytes
    return dead >= WRITE_BYTES and segment.live_bytes * 100 < segment.size * SHORT_SPARSE_PERCENT


def _packed(place: Reference) -> int:
    """A place as one number: there may be millions."""
    return place.segment << 96 | place.crc << 64 | place.offset << 32 | place.length


def _lost(segment: Segment, what: str) -> PageLost:
    return PageLost(f"{segment.path}: {what}. This node stops, because jobs are missing in its memory. Start it again: "
                    "it rebuilds its state from what it has on its disk, or rejoins the others. Look at its disk.")
