"""The few calls of the operating system that durable storage needs.

Journal and snapshots touch files through a Disk only, so that a simulation can put another one in its place: one that
forgets what was not synced, tears a write, flips bits, or is full. Every failure is an OSError.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from cluster.histogram import Histogram

IOV_MAX = 1024      # pieces one pwritev takes (Linux; POSIX grants only 16, `getconf IOV_MAX` tells)


class Disk:
    """Real files. A file is named by its descriptor; all reads and writes say where."""

    _thread: ThreadPoolExecutor | None = None       # for sync_beside()

    def make_directory(self, directory: Path) -> None:
        """Create the directory and its parents, if missing."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def names(self, directory: Path) -> list[str]:
        """Names of everything in a directory, in order."""
        return sorted(os.listdir(directory))

    def lock(self, path: Path) -> int | None:
        """Lock a file for this process until its descriptor is closed; None when another process holds it."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def open(self, path: Path, *, writable: bool = False) -> int:
        """Open an existing file."""
        return os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)

    def close(self, file: int) -> None:
        """Give the descriptor back. Says nothing about durability."""
        os.close(file)

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

    def sync_beside(self, file: int) -> Future[None]:
        """Begin to sync, and let the caller go on: the future ends when sync() would return, or has its error."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "sync")
        return self._thread.submit(self.sync, file)

    def forget(self, file: int, length: int, offset: int) -> None:
        """These synced bytes will hardly be read again: their place in memory is better used for what comes next."""
        os.posix_fadvise(file, offset, length, os.POSIX_FADV_DONTNEED)

    def sync_directory(self, directory: Path) -> None:
        """Names created, renamed or removed in the directory are durable when this returns."""
        file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, replacing what has it."""
        os.rename(old, new)

    def unlink(self, path: Path) -> None:
        """Remove a name; a reader that has the file open keeps it."""
        os.unlink(path)

    def random_bytes(self, count: int) -> bytes:
        """Bytes nobody can guess."""
        return os.urandom(count)


class TimedDisk(Disk):
    """A Disk that keeps how long its syncs of files took."""

    def __init__(self) -> None:
        self.syncs = Histogram()

    def sync(self, file: int) -> None:
        """See Disk."""
        begun = time.perf_counter()
        super().sync(file)
        self.syncs.observe(time.perf_counter() - begun)
