"""Pages of jobs in files of this node.

A page written since the newest snapshot is only an extension of this process's memory: the journal has its jobs, so a
crash may lose it. A snapshot by reference names the pages of its state instead of reading them. They are synced before
the snapshot gets its own name; from then on they belong to it, and their files stay as long as it does, whatever
happens to the jobs. The next process adopts these pages and removes all other files.

When a file cannot be synced it is unknown which of its bytes are on the disk, even if a later attempt succeeds. So its
pages are written again, to another file, and until then snapshots are whole.

A forked child inherits the descriptors, so it can read a file even after the node has removed it.
page_format.py has the bytes, file_space.py how pages get to their places.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Collection
from pathlib import Path

from sockpqd.cluster import limits
from sockpqd.cluster.metrics.histogram import Histogram
from sockpqd.cluster.paging.file_space import FileSpace, Segment
from sockpqd.cluster.paging.page_format import PREFIX, path_of
from sockpqd.cluster.storage.disk import Disk, passes
from sockpqd.core import PageLost

log = logging.getLogger("sockpqd.cluster")

UNKNOWN_BYTES = 1 << 62         # of room, before it was measured


class PagesNotSynced(OSError):
    """Pages to be named by a snapshot could not be made durable."""


class PageFiles:
    """The files of all spaces. `halted`: no more jobs leave memory, because the disk is nearly full.

    `room_bytes`: the disk space that pages of jobs leaving memory may take; `free_bytes`: the space for pages moved to
    give up files. `named`: the files with the pages that each snapshot names, by its index, whether it is kept or being
    written.
    """

    def __init__(self, directory: Path, disk: Disk) -> None:
        self.halted = False
        self.room_bytes = self.free_bytes = UNKNOWN_BYTES
        self.written_bytes = 0                  # ever
        self.lost: PageLost | None = None       # the first page that could not be read: the node must stop
        self.reads = Histogram()                # how long it took to read a page from its file,
        self.misses = 0                         # reads of it that had to wait for the disk,
        self.expected = 0                       # pages that the system was asked to have in memory in time,
        self.moved = 0                          # and those that were written again, to give up their files
        self.bytes_total = 0
        self.disk = disk
        self.segments: dict[int, Segment] = {}
        self.named: dict[int, frozenset[int]] = {}
        self.directory = directory
        self._left: dict[int, int] = {}         # files that the present state does not need, and their sizes
        self._made = False
        self._next = 1
        self._reported = False                  # that there is no room
        self._spaces: list[FileSpace] = []

    def begin(self, named: dict[int, frozenset[int]]) -> None:
        """Find the files of an earlier process, and make sure that files named by snapshots are read from the disk.

        `named`: the numbers of these files, by the index of the snapshot. Raises OSError.
        """
        self.named, self._left = named, {}
        with contextlib.suppress(FileNotFoundError):
            numbers = [name.removeprefix(PREFIX) for name in self.disk.names(self.directory) if name.startswith(PREFIX)]
            self._left = {int(number): 0 for number in numbers if number.isdecimal()}
            self.disk.trust(
                self.directory, [path_of(Path(), number).name for number in self._left if self._is_named(number)])
        self._next = max(self._left, default=0) + 1

    def settle(self) -> None:
        """Delete files that the loaded state does not need, and begin to empty those that it hardly needs."""
        for space in self._spaces:
            space.settle()
        self._sweep()
        for number in self._left:
            self._left[number] = self._size_of(path_of(self.directory, number))

    def _size_of(self, path: Path) -> int:
        file = self.disk.open(path)
        try:
            return self.disk.size(file)
        finally:
            self.disk.close(file)

    @property
    def nameable(self) -> bool:
        """True if a snapshot may name pages: there are some, and all can be made durable."""
        segments = self.segments.values()
        return bool(segments) and not any(segment.doubtful for segment in segments)

    def name(self, index: int) -> dict[int, int]:
        """Prepare a snapshot up to this entry, which will name all pages; return the sizes of their files.

        Raises OSError.
        """
        for space in self._spaces:
            space.flush()
        self.named[index] = self.named.get(index, frozenset()) | frozenset(self.segments)
        return {number: segment.written for number, segment in self.segments.items()}

    def sync(self, numbers: Collection[int]) -> None:
        """Make these files durable, as they are; in a forked child. Raises PagesNotSynced and NamesNotSynced."""
        try:
            for number in sorted(numbers):
                segment = self.segments.get(number)
                if segment is None:             # no longer needed; only where there is no child
                    self._sync_file(path_of(self.directory, number))
                elif segment.synced < segment.written:
                    self.disk.sync(segment.file)
        except OSError as error:
            raise PagesNotSynced(error.errno, error.strerror) from error
        self.disk.sync_directory(self.directory)

    def _sync_file(self, path: Path) -> None:
        file = self.disk.open(path, writable=True)
        try:
            self.disk.sync(file)
        finally:
            self.disk.close(file)

    def synced(self, sizes: dict[int, int]) -> None:
        """Record that a child process has synced these files up to their sizes."""
        for number, size in sizes.items():
            segment = self.segments.get(number)
            if segment is not None:
                segment.synced = max(segment.synced, size)

    def not_synced(self, numbers: Collection[int]) -> None:
        """Record that a child could not sync all of these files."""
        for space in self._spaces:
            space.doubt(numbers)

    def keep(self, indexes: Collection[int]) -> None:
        """Record that these snapshots are kept, and no others."""
        self.named = {index: segments for index, segments in self.named.items() if index in indexes}
        self._sweep()

    def _sweep(self) -> None:
        """Remove the files that nothing needs."""
        for number in [number for number in self._left if not self._is_named(number)]:
            del self._left[number]
            self.disk.unlink_in_background(path_of(self.directory, number))     # if not, the next process does

    def _is_named(self, number: int) -> bool:
        return any(number in segments for segments in self.named.values())

    @property
    def held_bytes(self) -> int:
        """Size of the files that exist only because a snapshot names pages in them."""
        return sum(self._left.values())

    @property
    def live_bytes(self) -> int:
        """The bytes of all files that are pages of the current state."""
        return sum(segment.live_bytes for segment in self.segments.values())

    @property
    def rewriting(self) -> int:
        """The number of files being given up because little of them is needed."""
        return sum(space.rewriting for space in self._spaces)

    @property
    def count(self) -> int:
        """The number of page files."""
        return len(self.segments) + len(self._left)

    def old_segment(self, number: int) -> Segment:
        """A file of an earlier process. Raises PageLost."""
        path = path_of(self.directory, number)
        try:
            segment = Segment(number, path, self.disk.open(path, writable=True))
        except OSError as error:
            raise PageLost(f"{path}: {error.strerror}") from error
        self.segments[number] = segment
        self._left.pop(number, None)
        self._made = True
        return segment

    def space(self) -> FileSpace:
        # A page is never in a file older than its number. So all pages in the current files have smaller numbers.
        space = FileSpace(self, self._next << 32)
        self._spaces.append(space)
        return space

    def tidy(self) -> bool:
        """Move a few live pages out of nearly dead segments; returns whether there may be more to do."""
        return any(space.tidy() for space in self._spaces)

    def make_room(self) -> None:
        """Give up files that are largely dead, because room is short."""
        for space in self._spaces:
            space.make_room()

    def descriptors(self) -> list[int]:
        """The descriptors that a forked child needs to read pages."""
        return [segment.file for segment in self.segments.values()]

    def new_segment(self) -> Segment | None:
        """An empty segment; None: there is no room for one."""
        if len(self.segments) >= limits.PAGE_FILES_MAX:
            self.no_room(OSError(errno.EMFILE, f"there are {limits.PAGE_FILES_MAX} files of pages"))
            return None
        path = path_of(self.directory, self._next)
        try:
            if not self._made:
                self.disk.make_directory(self.directory)
                self._made = True
            file = self.disk.create(path)
        except OSError as error:
            self.no_room(error)
            return None
        segment = self.segments[self._next] = Segment(self._next, path, file)
        self._next += 1
        return segment

    def no_room(self, error: OSError) -> None:
        """Handle a page that could not be written; raises the error if it is more than a lack of room."""
        if not passes(error):
            raise OSError(error.errno, error.strerror, str(self.directory)) from error
        if not self._reported:
            self._reported = True
            log.warning("jobs that should leave memory stay there, because their pages cannot be written: %s. Free "
                        "disk space.", error)

    def wrote(self, count: int) -> None:
        """Record that `count` bytes were written."""
        self.bytes_total += count
        self.written_bytes += count
        self.room_bytes -= count
        self.free_bytes -= count
        if self._reported:
            self._reported = False
            log.info("jobs leave memory again")

    def remove(self, segment: Segment) -> None:
        """Delete a segment that the state does not need any more."""
        del self.segments[segment.number]
        self.bytes_total -= segment.written
        self.disk.close(segment.file)
        self._left[segment.number] = segment.written
        self._sweep()

    def forget(self, space: FileSpace) -> None:
        """Forget a space that was dropped."""
        self._spaces.remove(space)
