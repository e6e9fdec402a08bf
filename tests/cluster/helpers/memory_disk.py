"""A Disk in memory, with the page cache of Linux: what was not synced is gone after crash(), and only then.

It may fail, be full, or the process be without descriptors.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import count as count_up
from pathlib import Path

from sockpqd.cluster.storage.disk import Disk, SyncFailed
from tests.cluster.helpers.cached_file import CachedFile

PLENTY_BYTES = 1 << 50
_numbers = count_up(1)      # no two disks have the same random bytes


class MemoryDisk(Disk):
    """Files by path. Names are durable at once; contents when synced.

    `failing`: raised by every write and sync. `failing_syncs`: the number of next syncs below `failing_folder` that
    have something to write raise `sync_error`. Then the bytes can be read until drop_cache() or crash(), but they are
    not on the disk.
    """

    def __init__(self) -> None:
        self._files: dict[str, CachedFile] = {}
        self._open: dict[int, CachedFile] = {}
        self._locks: dict[int, str] = {}
        self._next = 1000
        self.failing: OSError | None = None
        self.failing_syncs = 0
        self.failing_folder = "/"
        self.sync_error = OSError(errno.EIO, os.strerror(errno.EIO))
        self.free_bytes = PLENTY_BYTES
        self.files_max: int | None = None       # so many files can be open at once

    def crash(self) -> None:
        """Kill the process and cut the machine's power."""
        for file in self._files.values():
            file.data, file.unsynced, file.failed = file.on_disk(), [], {}
        self.end_process()

    def end_process(self) -> None:
        """Kill the process; the machine stays up."""
        self._open.clear()
        self._locks.clear()

    def file(self, path: Path) -> bytearray:
        """Return the bytes of a file, to be damaged."""
        return self._files[str(path)].data

    def make_directory(self, directory: Path) -> None:
        pass

    def sync_in_background(self, file: int) -> Future[float]:
        over: Future[float] = Future()
        self.sync(file)
        over.set_result(0.0)
        return over

    def prepare_in_background(self, file: int, size: int, directory: Path) -> Future[None]:
        over: Future[None] = Future()
        try:
            self.allocate(file, size)
            self.sync(file)
            self.sync_directory(directory)
        except OSError as error:
            over.set_exception(error)
        else:
            over.set_result(None)
        return over

    def names(self, directory: Path) -> list[str]:
        prefix = f"{directory}".rstrip("/") + "/"
        return sorted(name[len(prefix):] for name in self._files if name.startswith(prefix))

    def lock(self, path: Path) -> int | None:
        if str(path) in self._locks.values():
            return None
        self._files.setdefault(str(path), CachedFile())
        file = self.open(path)
        self._locks[file] = str(path)
        return file

    def create(self, path: Path) -> int:
        if str(path) in self._files:
            raise FileExistsError(errno.EEXIST, "exists", str(path))
        self._files[str(path)] = CachedFile()
        try:
            return self.open(path)
        except OSError:
            del self._files[str(path)]
            raise

    def open(self, path: Path, *, writable: bool = False) -> int:
        if str(path) not in self._files:
            raise FileNotFoundError(errno.ENOENT, "missing", str(path))
        if self.files_max is not None and len(self._open) >= self.files_max:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._next += 1
        self._open[self._next] = self._files[str(path)]
        return self._next

    def close(self, file: int) -> None:
        self._open.pop(file, None)
        self._locks.pop(file, None)

    def size(self, file: int) -> int:
        return len(self._open[file].data)

    def allocate(self, file: int, size: int) -> None:
        data = self._open[file].data
        self._use(size - len(data))
        data.extend(bytes(max(0, size - len(data))))

    def _use(self, length: int) -> None:
        if length > self.free_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.free_bytes -= max(0, length)

    def read(self, file: int, length: int, offset: int) -> bytes:
        return bytes(self._open[file].data[offset:offset + length])

    def read_cached(self, file: int, length: int, offset: int) -> bytes | None:
        return self.read(file, length, offset)

    def write(self, file: int, pieces: Sequence[bytes], offset: int) -> None:
        if self.failing is not None:
            raise self.failing
        block, target = b"".join(pieces), self._open[file]
        self._use(offset + len(block) - len(target.data))
        target.write(block, offset)

    def sync(self, file: int) -> None:
        target, error = self._open[file], self.failing
        if error is None and self.failing_syncs and target.unsynced and self._path(target).startswith(
            self.failing_folder):
            self.failing_syncs -= 1
            error = self.sync_error
        if error is not None:
            target.fail_sync()
            raise SyncFailed(*error.args) from error
        target.sync()

    def _path(self, file: CachedFile) -> str:
        return next((path for path, other in self._files.items() if other is file), "")

    def drop_cache(self, file: int) -> None:
        self._open[file].drop_cache()

    def forget(self, file: int, length: int, offset: int) -> None:
        """Do nothing: nothing is kept twice here."""

    def begin_sync(self, file: int, length: int, offset: int) -> None:
        """Do nothing: all that is written is durable here."""

    def expect(self, file: int, length: int, offset: int) -> None:
        """Do nothing: nothing is slow here."""

    def unlink_in_background(self, path: Path) -> None:
        """Remove it at once: there is no thread here."""
        with contextlib.suppress(OSError):
            self.unlink(path)

    def end_removals(self) -> None:
        """Do nothing: no removal lasts."""

    def sync_directory(self, directory: Path) -> None:
        pass

    def rename(self, old: Path, new: Path) -> None:
        file = self._files.pop(str(old))
        if str(new) in self._files:
            self.unlink(new)
        self._files[str(new)] = file

    def unlink(self, path: Path) -> None:
        if str(path) not in self._files:
            raise FileNotFoundError(errno.ENOENT, "missing", str(path))
        self.free_bytes += len(self._files.pop(str(path)).data)

    def random_bytes(self, count: int) -> bytes:
        return next(_numbers).to_bytes(count, "big")
