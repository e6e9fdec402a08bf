"""The few calls of the operating system that durable storage needs.

Journal and snapshots touch files through a Disk only, so that a simulation can put another one in its place: one that
forgets what was not synced, tears a write, flips bits, or is full. Every failure is an OSError.

Clients can use up all file descriptors of a process. The files of the node must not depend on that: a Disk may hold a
few descriptors at hand, and opens with them when there are no others.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from cluster.metrics.histogram import Histogram

Result = TypeVar("Result")

IOV_MAX = 1024      # pieces one pwritev takes (Linux; POSIX grants only 16, `getconf IOV_MAX` tells)
NO_SPACE = frozenset((errno.ENOSPC, errno.EDQUOT))
NO_DESCRIPTOR = frozenset((errno.EMFILE, errno.ENFILE))
# A directory that was there before may be somebody else's, or of a file system that does not sync directories.
_NOT_OURS = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL, errno.ENOTSUP))


def passes(error: OSError) -> bool:
    """Is this no failure of the disk, but a lack of space or of descriptors, which may be over in a moment?"""
    return error.errno in NO_SPACE or error.errno in NO_DESCRIPTOR


class Disk:
    """Real files. A file is named by its descriptor; all reads and writes say where."""

    _thread: ThreadPoolExecutor | None = None       # for sync_in_background()
    _held: list[int] | None = None                  # descriptors at hand
    _hold = 0                                       # how many there should be

    def hold_descriptors(self, count: int) -> None:
        """Keep so many descriptors at hand from now on. Raises OSError."""
        self._held, self._hold = [], count
        while len(self._held) < count:
            self._held.append(_nothing())

    def _refill(self) -> None:
        held = self._held
        while held is not None and len(held) < self._hold:
            try:
                held.append(_nothing())
            except OSError:
                return

    def _at_hand(self, call: Callable[[], Result]) -> Result:
        """Do what needs a descriptor, with one of those at hand if there are no others."""
        self._refill()
        try:
            return call()
        except OSError as error:
            if error.errno not in NO_DESCRIPTOR or not self._held:
                raise
        os.close(self._held.pop())
        return call()

    def _open(self, path: Path, flags: int) -> int:
        return self._at_hand(lambda: os.open(path, flags | os.O_CLOEXEC, 0o600))

    def make_directory(self, directory: Path) -> None:
        """Create the directory and its parents, if missing, and make all their names durable.

        Those that are there as well: the process that made them may have been killed before it had synced them.
        """
        missing = []
        for place in (directory, *directory.parents):
            if place.is_dir():
                break
            missing.append(place)
        for place in reversed(missing):
            place.mkdir(mode=0o700 if place == directory else 0o777, exist_ok=True)
        made = {place.resolve() for place in missing}
        below = directory.resolve()
        for place in below.parents:
            try:
                self.sync_directory(place)
            except OSError as error:
                if below in made or error.errno not in _NOT_OURS:
                    raise
            below = place

    def names(self, directory: Path) -> list[str]:
        """Names of everything in a directory, in order."""
        return sorted(self._at_hand(lambda: os.listdir(directory)))

    def lock(self, path: Path) -> int | None:
        """Lock a file for this process until its descriptor is closed; None when another process holds it."""
        file = self._open(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return None
            raise
        return file

    def create(self, path: Path) -> int:
        """Create a file that must not exist, for reading and writing."""
        return self._open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open(self, path: Path, *, writable: bool = False) -> int:
        """Open an existing file."""
        return self._open(path, os.O_RDWR if writable else os.O_RDONLY)

    def close(self, file: int) -> None:
        """Give the descriptor back. Says nothing about durability."""
        os.close(file)
        self._refill()

    def size(self, file: int) -> int:
        """Length in bytes."""
        return os.fstat(file).st_size

    def allocate(self, file: int, size: int) -> None:
        """Reserve space up to `size` bytes, reading as zeros: later writes there cannot fail for lack of space."""
        os.posix_fallocate(file, 0, size)

    def read(self, file: int, length: int, offset: int) -> bytes:
        """`length` bytes from `offset`, fewer only at the end of the file."""
        data = os.pread(file, length, offset)
        if len(data) == length or not data:
            return data
        pieces = [data]
        left = length - len(data)
        while left > 0 and (data := os.pread(file, left, offset + length - left)):
            pieces.append(data)
            left -= len(data)
        return b"".join(pieces)

    def write(self, file: int, pieces: Sequence[bytes], offset: int) -> None:
        """Write the pieces one behind the other from `offset` on, without joining them."""
        for start in range(0, len(pieces), IOV_MAX):
            batch = pieces if len(pieces) <= IOV_MAX else pieces[start:start + IOV_MAX]
            offset += self._write_batch(file, batch, offset)

    def _write_batch(self, file: int, pieces: Sequence[bytes], offset: int) -> int:
        length = sum(map(len, pieces))
        done = os.pwritev(file, pieces, offset)
        if done < length:       # legal, and seen on nearly full disks and with more than 2 GiB
            rest = memoryview(b"".join(pieces))
            while done < length:
                done += os.pwrite(file, rest[done:], offset + done)
        return length

    def sync(self, file: int) -> None:
        """The file's bytes are durable when this returns. After an error nothing is known: never try again."""
        os.fdatasync(file)

    def sync_in_background(self, file: int) -> Future[None]:
        """Begin to sync, and let the caller go on: the future ends when sync() would return, or has its error."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "sync")
        return self._thread.submit(self.sync, file)

    def forget(self, file: int, length: int, offset: int) -> None:
        """These synced bytes will hardly be read again: their place in memory is better used for what comes next."""
        os.posix_fadvise(file, offset, length, os.POSIX_FADV_DONTNEED)

    def sync_directory(self, directory: Path) -> None:
        """Names created, renamed or removed in the directory are durable when this returns."""
        file = self._open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(file)
        finally:
            self.close(file)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, replacing what has it."""
        os.rename(old, new)

    def unlink(self, path: Path) -> None:
        """Remove a name; a reader that has the file open keeps it."""
        os.unlink(path)

    def random_bytes(self, count: int) -> bytes:
        """Bytes nobody can guess."""
        return os.urandom(count)


def _nothing() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


class TimedDisk(Disk):
    """A Disk that keeps how long its syncs of files took."""

    def __init__(self) -> None:
        self.syncs = Histogram()

    def sync(self, file: int) -> None:
        """See Disk."""
        begun = time.perf_counter()
        super().sync(file)
        self.syncs.observe(time.perf_counter() - begun)
