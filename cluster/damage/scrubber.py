"""Re-reads the files of a running node, so that damage is found while the other nodes are intact.

Files may rot unnoticed, because the journal is read only at a start, and snapshots only when they are loaded or sent. A
thread reads all of them every SCRUB_PAUSE_S, slowly, and bypasses the page cache, which would show what was written and
not what is on the disk. The journal is checked frame by frame as at a start (journal/segment_scan.py), except for parts
that the node has cut off or not written yet.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from sockpqd.cluster import limits
from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.segments import Segments
from sockpqd.cluster.snapshots import snapshot_file
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import StorageDamaged, StorageTooNew


class FileToRead(NamedTuple):
    """A file to read, up to `end`.

    `segment`: the number of a segment of the journal, 0 for a snapshot; `journal_id`: the id of its journal; `last`:
    its last frame.
    """

    path: Path
    segment: int
    journal_id: bytes
    end: int
    last: int = 0


class Finding(NamedTuple):
    """A damaged file; `segment`: its number in the journal, 0 for a snapshot."""

    path: Path
    segment: int
    what: str


class Stopped(Exception):
    """The scrubber was asked to stop."""


class PacedDisk(Disk):
    """Reads slowly, from the disk itself. `read_bytes`: the bytes read so far."""

    def __init__(self) -> None:
        self.read_bytes = 0
        self.stopping = threading.Event()

    def read(self, file: int, length: int, offset: int) -> bytes:
        """See Disk. Raises Stopped."""
        begin, end = offset - offset % mmap.PAGESIZE, offset + length
        self.forget(file, end + -end % mmap.PAGESIZE - begin, begin)        # of pages in part nothing is dropped
        data = super().read(file, length, offset)
        self.read_bytes += len(data)
        if self.stopping.wait(len(data) / limits.SCRUB_BYTES_PER_S):
            raise Stopped
        return data


def files_to_read(segments: Segments, snapshots: list[Path]) -> list[FileToRead]:
    """Return all files to read now."""
    return [
        *(FileToRead(segments.path(number), number, segments.journal_id, end, last)
          for number, end, last in segments.written()),
        *(FileToRead(path, 0, b"", 0) for path in snapshots),
    ]


def examine(disk: Disk, given: FileToRead, pages: Path | None = None) -> Finding | None:
    """Read a file, and for a snapshot the pages that it names; returns what is wrong with it.

    A file that was removed meanwhile is not damaged. `pages`: the directory of the pages.
    """
    try:
        if given.segment:
            _examine_segment(disk, given)
        else:
            snapshot_file.verify(disk, given.path, pages)
    except FileNotFoundError:
        return None
    except (OSError, StorageDamaged, StorageTooNew) as error:
        if given.path.name not in disk.names(given.path.parent):
            return None                 # and its pages with it
        return Finding(given.path, given.segment, str(error))
    return None


def _examine_segment(disk: Disk, given: FileToRead) -> None:
    """Check every frame. Raises StorageDamaged and OSError."""
    file = disk.open(given.path)
    try:
        position, sequence = 0, 0
        for length, header in _frames(disk, file, given):
            if sequence and header.sequence != sequence + 1:
                raise StorageDamaged(f"at offset {position} is frame {header.sequence}, not {sequence + 1}")
            position, sequence = position + length, header.sequence
            if sequence == given.last:
                return
        raise StorageDamaged(f"frame {given.last} is missing at offset {position}")
    finally:
        disk.close(file)


def _frames(disk: Disk, file: int, given: FileToRead) -> Iterator[tuple[int, journal_format.Header]]:
    position, data, start = 0, b"", 0
    while position < given.end:
        if position + journal_format.HEADER.size > start + len(data):
            data, start = disk.read(file, min(limits.READ_AHEAD_BYTES, given.end - position), position), position
        header = journal_format.read_header(data, position - start)
        if header is None or header.journal_id != given.journal_id or position + header.length > given.end:
            raise StorageDamaged(f"the frame at offset {position} has changed since it was written")
        if position + header.length > start + len(data):
            data, start = disk.read(file, max(header.length, limits.READ_AHEAD_BYTES), position), position
        if journal_format.read_records(data, position - start, header) is None:
            raise StorageDamaged(f"the frame at offset {position} has changed since it was written")
        yield header.length, header
        position += header.length


class Scrubber:
    """The thread. `found` is called in it, with each damaged file."""

    def __init__(
        self, files_now: Callable[[], list[FileToRead]], found: Callable[[Finding], None], pages: Path | None = None,
    ) -> None:
        """`files_now()`: the files to read, called in the thread. `pages`: the directory of pages of jobs."""
        self.disk = PacedDisk()
        self._pages = pages
        self._tasks_now = files_now
        self._found = found
        self._thread = threading.Thread(target=self._run, name="scrubber", daemon=True)

    def start(self) -> None:
        """Start to read after the first pause."""
        self._thread.start()

    def stop(self) -> None:
        """End at the next read."""
        self.disk.stopping.set()

    def _run(self) -> None:
        try:
            while not self.disk.stopping.wait(limits.SCRUB_PAUSE_S):
                for given in self._tasks_now():
                    if finding := examine(self.disk, given, self._pages):
                        self._found(finding)
        except (Stopped, RuntimeError):     # the loop is closed
            return
