"""The few system calls that durable storage needs.

Journal and snapshots access files only through a Disk, so a simulation can replace it with one that forgets unsynced
data, tears writes, flips bits, or is full. Every failure is an OSError.

Clients can use up the file descriptors of a process. The node's own files must not depend on them, so a Disk can hold a
few descriptors in reserve, and uses them when there are no others.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sockpqd.cluster.metrics.histogram import Histogram
from sockpqd.cluster.storage import page_cache

Result = TypeVar("Result")

IOV_MAX = 1024      # pieces one pwritev accepts on Linux (POSIX guarantees only 16; see `getconf IOV_MAX`)
NO_SPACE = frozenset((errno.ENOSPC, errno.EDQUOT))
NO_DESCRIPTOR = frozenset((errno.EMFILE, errno.ENFILE))
NO_ROOM = NO_SPACE | NO_DESCRIPTOR
# A directory that existed before may belong to another user, or to a file system that does not sync directories.
_NOT_OURS = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL, errno.ENOTSUP))


class SyncFailed(OSError):
    """It is unknown which bytes of a file are on the disk: reads still return all, and another sync may succeed.

    That includes ENOSPC: file systems and devices that allocate space only when they write have then lost the bytes.
    """


class NamesNotSynced(SyncFailed):
    """A directory could not be synced: its names may be gone after a loss of power."""


def passes(error: OSError) -> bool:
    """Return whether this is only a lack of space or descriptors, which may pass, and not a failure of the disk."""
    return error.errno in NO_ROOM and not isinstance(error, SyncFailed)


class Disk:
    """Real files, identified by their descriptors. All reads and writes take an offset."""

    _thread: ThreadPoolExecutor | None = None       # for sync_in_background(),
    _preparer: ThreadPoolExecutor | None = None     # for prepare_in_background(),
    _remover: ThreadPoolExecutor | None = None      # and for unlink_in_background()
    _held: list[int] | None = None                  # descriptors in reserve
    _hold = 0                                       # how many there should be

    def hold_descriptors(self, count: int) -> None:
        """Hold `count` descriptors in reserve from now on. Raises OSError."""
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
        """Make a call that needs a descriptor, releasing a reserved one if there is no other."""
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
        """Create the directory and its missing parents, and make all their names durable.

        That includes directories that exist: the process that made them may have been killed before it synced them.
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
        """The names of everything in a directory, sorted."""
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
        """Create a new file for reading and writing; raises FileExistsError."""
        return self._open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open(self, path: Path, *, writable: bool = False) -> int:
        return self._open(path, os.O_RDWR if writable else os.O_RDONLY)

    def close(self, file: int) -> None:
        """Close a file, without making anything durable."""
        os.close(file)
        self._refill()

    def size(self, file: int) -> int:
        """The length of a file in bytes."""
        return os.fstat(file).st_size

    def allocate(self, file: int, size: int) -> None:
        """Reserve space up to `size` bytes, which reads as zeros; writes there cannot fail for lack of space."""
        os.posix_fallocate(file, 0, size)

    def shorten(self, file: int, size: int) -> None:
        """Cut a file off after `size` bytes, whose space is free then."""
        os.ftruncate(file, size)

    def free_space(self, directory: Path) -> int:
        """Measure the free space for this process on the disk of a directory, in bytes. It blocks while that hangs."""
        status = os.statvfs(directory)
        return status.f_bavail * status.f_frsize

    def read(self, file: int, length: int, offset: int) -> bytes:
        """Read `length` bytes at `offset`; fewer only at the end of the file."""
        data = os.pread(file, length, offset)
        if len(data) == length or not data:
            return data
        pieces = [data]
        left = length - len(data)
        while left > 0 and (data := os.pread(file, left, offset + length - left)):
            pieces.append(data)
            left -= len(data)
        return b"".join(pieces)

    def read_cached(self, file: int, length: int, offset: int) -> bytes | None:
        """Read like read() if all of that is in the page cache; None: the disk has to be waited for.

        Where the system cannot tell, this waits.
        """
        data = bytearray(length)
        try:
            return bytes(data) if os.preadv(file, [data], offset, os.RWF_NOWAIT) == length else None
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return self.read(file, length, offset)

    def write(self, file: int, pieces: Sequence[bytes], offset: int) -> None:
        """Write the pieces one after another from `offset` on, without joining them."""
        for start in range(0, len(pieces), IOV_MAX):
            batch = pieces if len(pieces) <= IOV_MAX else pieces[start:start + IOV_MAX]
            offset += self._write_batch(file, batch, offset)

    def _write_batch(self, file: int, pieces: Sequence[bytes], offset: int) -> int:
        length = sum(map(len, pieces))
        done = os.pwritev(file, pieces, offset)
        if done < length:       # legal: seen on nearly full disks and with more than 2 GiB
            rest = memoryview(b"".join(pieces))
            while done < length:
                done += os.pwrite(file, rest[done:], offset + done)
        return length

    def sync(self, file: int) -> None:
        """Make the file's bytes durable. Raises SyncFailed, after which another sync proves nothing."""
        try:
            os.fdatasync(file)
        except OSError as error:
            raise SyncFailed(*error.args) from error

    def sync_in_background(self, file: int) -> Future[float]:
        """Start a sync in a thread; the future completes when the bytes are durable, or with sync()'s error.

        Its result: the seconds that the sync took.
        """
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "sync")
        return self._thread.submit(self._sync_timed, file)

    def _sync_timed(self, file: int) -> float:
        begun = time.perf_counter()
        self.sync(file)
        return time.perf_counter() - begun

    def prepare_in_background(self, file: int, size: int, directory: Path) -> Future[None]:
        """Start in a thread to allocate() a new file of the directory, and to make its length and its name durable.

        The future completes when that is done, or with the error. Raises OSError if it cannot begin.
        """
        if self._preparer is None:
            self._preparer = ThreadPoolExecutor(1, "prepare")
        names = self._open(directory, os.O_RDONLY | os.O_DIRECTORY)     # here: the reserve belongs to one thread
        return self._preparer.submit(self.prepare, file, size, names)

    def prepare(self, file: int, size: int, names: int) -> None:
        """Do the work of prepare_in_background() in its thread; closes `names`, a descriptor of the directory."""
        try:
            self.allocate(file, size)
            Disk.sync(self, file)               # not one that is timed
            _sync_names(names)
        finally:
            os.close(names)

    def trust(self, directory: Path, names: Iterable[str]) -> None:
        """Make reads of these files of an earlier process return what is on the disk; until then they cannot be relied
        on.

        That process may have ended because a sync failed, and Linux still shows what it wrote. So the directory and the
        files are synced first, because unwritten data stays in the page cache, and then dropped from the cache. What is
        read after that survives a loss of power. No other process may write these files. Raises OSError.
        """
        self.sync_directory(directory)
        for name in names:
            file = self.open(directory / name)
            try:
                self.sync(file)
                self.drop_cache(file)
            finally:
                self.close(file)

    def drop_cache(self, file: int) -> None:
        """Make reads of a file, all of which was synced, return what is on the disk."""
        page_cache.drop(file)

    def forget(self, file: int, length: int, offset: int) -> None:
        """Drop synced bytes from the page cache, because they will hardly be read again."""
        os.posix_fadvise(file, offset, length, os.POSIX_FADV_DONTNEED)

    def begin_sync(self, file: int, length: int, offset: int) -> None:
        """Let the system begin to write bytes to the disk, which will be synced later; does not wait for that."""
        # It also drops bytes from the page cache that are on the disk already, but not those being written.
        os.posix_fadvise(file, offset, length, os.POSIX_FADV_DONTNEED)

    def expect(self, file: int, length: int, offset: int) -> None:
        """Let the system read bytes into the page cache, because they will be read soon; does not wait for that."""
        os.posix_fadvise(file, offset, length, os.POSIX_FADV_WILLNEED)

    def sync_directory(self, directory: Path) -> None:
        """Make names created, renamed or removed in the directory durable. Raises NamesNotSynced and OSError."""
        file = self._open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _sync_names(file)
        finally:
            self.close(file)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file, replacing one that has the new name."""
        os.rename(old, new)

    def unlink(self, path: Path) -> None:
        """Remove a name; the file stays readable where it is open."""
        os.unlink(path)

    def unlink_in_background(self, path: Path) -> None:
        """Unlink in a thread, because freeing a large file takes long. Failures are ignored."""
        if self._remover is None:
            self._remover = ThreadPoolExecutor(1, "unlink")
        self._remover.submit(self.unlink, path)

    def end_removals(self) -> None:
        """Wait for all removals that unlink_in_background() has begun."""
        if self._remover is not None:
            self._remover.shutdown()
            self._remover = None

    def remove_directory(self, directory: Path) -> None:
        os.rmdir(directory)

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)


def _sync_names(directory: int) -> None:
    try:
        os.fsync(directory)
    except OSError as error:
        raise NamesNotSynced(*error.args) from error


def _nothing() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


class TimedDisk(Disk):
    """A Disk that records how long its syncs of files take, and preparing new ones."""

    def __init__(self) -> None:
        self.syncs = Histogram()
        self.preparations = Histogram()

    def sync(self, file: int) -> None:
        begun = time.perf_counter()
        super().sync(file)
        self.syncs.observe(time.perf_counter() - begun)

    def prepare(self, file: int, size: int, names: int) -> None:
        begun = time.perf_counter()
        super().prepare(file, size, names)
        self.preparations.observe(time.perf_counter() - begun)
