"""A disk in memory that forgets, tears, fills up and fails, at a chosen step or by a seeded draw.

Contents are durable when synced, names when their directory is synced. crash() decides for everything that was not
synced whether it survives, as a power failure may. What a failed sync leaves in the page cache can be read until
drop_cache() or crash(), although it is not on the disk (cached_file.py).
"""

from __future__ import annotations

import contextlib
import copy
import errno
import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from sockpqd.cluster.storage.disk import NO_DESCRIPTOR, Disk, NamesNotSynced, SyncFailed
from tests.cluster.helpers.cached_file import SECTOR_BYTES, CachedFile


class Crash(BaseException):
    """The machine stops here; only the test may catch this."""


def durable_bytes(file: CachedFile) -> bytearray:
    """Return what a power failure leaves of a file for certain."""
    return file.on_disk()[:file.synced_bytes]


class Beside(Future[Any]):
    """Work that is done when its result is asked for, as late as possible."""

    def __init__(self, disk: FaultyDisk, work: Callable[[], None]) -> None:
        super().__init__()
        self._disk = disk
        self._work = work

    def done(self) -> bool:
        """Implement Future."""
        return not self._disk.slow

    def result(self, timeout: float | None = None) -> float:
        """Implement Future."""
        self._work()
        return 0.0


PLENTY = 1 << 40


class FaultyDisk(Disk):
    """`steps` counts what changes something; `crash_at` stops before that step; `fail` makes operations raise.

    `slow`: a sync or a preparation in the background lasts until the caller waits for it.
    """

    def __init__(self) -> None:
        self.names_now: dict[str, CachedFile] = {}
        self.names_durable: dict[str, CachedFile] = {}
        self._changes: list[tuple[str, str, CachedFile]] = []    # name removed, name given (or ""); not durable yet
        self._open: dict[int, CachedFile] = {}
        self._locked: dict[str, int] = {}
        self._next = 100
        self.steps = 0
        self.crash_at: int | None = None
        self.fail: dict[str, OSError] = {}          # operation -> error
        self.free_bytes: int | None = None          # None: no limit
        self.full_after: int | None = None          # a write ends after so many bytes: what was allocated is not there
        self.slow = False

    # What the tests do to it

    def clone(self) -> FaultyDisk:
        """Return an independent copy, as after a restart that lost nothing."""
        other = copy.deepcopy(self)
        other.restart()
        return other

    def restart(self) -> None:
        """Drop the descriptors and locks of the dead process."""
        self._open.clear()
        self._locked.clear()
        self.crash_at = None

    def crash(self, rng: random.Random) -> None:
        """Cut the power: unsynced names and sectors survive or not, by a draw from `rng`."""
        for removed, given, file in self._changes:
            if rng.random() < 0.5:
                self.names_durable.pop(removed, None)
                if given:
                    self.names_durable[given] = file
        for file in {id(file): file for file in (*self.names_durable.values(), *self.names_now.values())}.values():
            self._tear(file, rng)
        self.names_now = dict(self.names_durable)
        self._changes.clear()
        self.restart()

    def _tear(self, file: CachedFile, rng: random.Random) -> None:
        for offset, old, new in reversed(file.unsynced):
            how = rng.choice(("lost", "kept", "prefix", "sectors"))
            cut = rng.randrange(len(new) + 1)
            for start in range(0, len(new), SECTOR_BYTES):
                piece = slice(start, min(start + SECTOR_BYTES, len(new)))
                if how == "lost" or (how == "sectors" and rng.random() < 0.5):
                    file.data[offset + piece.start:offset + piece.stop] = old[piece]
            if how == "prefix":
                file.data[offset + cut:offset + len(new)] = old[cut:]
        file.unsynced = []
        file.drop_cache()
        if len(file.data) > file.synced_bytes and rng.random() < 0.5:
            del file.data[file.synced_bytes:]

    def file(self, path: Path) -> bytearray:
        """Return the bytes of a file, to be read or damaged."""
        return self.names_now[str(path)].data

    def paths(self, directory: Path) -> list[Path]:
        """Return all files of a directory."""
        return [directory / name for name in self.names(directory)]

    # Disk

    def _step(self, operation: str) -> None:
        if self.crash_at is not None and self.steps >= self.crash_at:
            raise Crash
        self.steps += 1
        if operation in self.fail:
            raise self.fail[operation]

    def make_directory(self, directory: Path) -> None:
        pass

    def names(self, directory: Path) -> list[str]:
        return sorted(Path(name).name for name in self.names_now if Path(name).parent == directory)

    def lock(self, path: Path) -> int | None:
        if str(path) in self._locked:
            return None
        self._next += 1
        self._locked[str(path)] = self._next
        return self._next

    def _descriptor(self, file: CachedFile) -> int:
        self._next += 1
        self._open[self._next] = file
        return self._next

    def create(self, path: Path) -> int:
        self._step("create")
        if str(path) in self.names_now:
            raise FileExistsError(errno.EEXIST, "exists", str(path))
        file = self.names_now[str(path)] = CachedFile()
        self._changes.append(("", str(path), file))
        return self._descriptor(file)

    def open(self, path: Path, *, writable: bool = False) -> int:
        if str(path) not in self.names_now:
            raise FileNotFoundError(errno.ENOENT, "missing", str(path))
        return self._descriptor(self.names_now[str(path)])

    def close(self, file: int) -> None:
        self._open.pop(file, None)
        for path, number in list(self._locked.items()):
            if number == file:
                del self._locked[path]

    @property
    def open_files(self) -> int:
        """Return the descriptors that are still open."""
        return len(self._open) + len(self._locked)

    def size(self, file: int) -> int:
        return len(self._open[file].data)

    def _use_space(self, length: int) -> None:
        if self.free_bytes is not None:
            if length > self.free_bytes:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.free_bytes -= length

    def allocate(self, file: int, size: int) -> None:
        self._step("allocate")
        data = self._open[file].data
        self._use_space(max(0, size - len(data)))
        data.extend(bytes(max(0, size - len(data))))

    def shorten(self, file: int, size: int) -> None:
        self._step("shorten")
        data = self._open[file].data
        if self.free_bytes is not None:
            self.free_bytes += max(0, len(data) - size)
        del data[size:]

    def free_space(self, directory: Path) -> int:
        if "free_space" in self.fail:
            raise self.fail["free_space"]
        return PLENTY if self.free_bytes is None else self.free_bytes

    def read(self, file: int, length: int, offset: int) -> bytes:
        return bytes(self._open[file].data[offset:offset + length])

    def read_cached(self, file: int, length: int, offset: int) -> bytes | None:
        return self.read(file, length, offset)

    def write(self, file: int, pieces: Sequence[bytes], offset: int) -> None:
        self._step("write")
        target, new = self._open[file], b"".join(pieces)
        if self.full_after is not None:
            new, whole = new[:self.full_after], len(new)
            self._put(target, new, offset)
            if len(new) < whole:
                raise OSError(errno.ENOSPC, "No space left on device")
            return
        self._put(target, new, offset)

    def _put(self, target: CachedFile, new: bytes, offset: int) -> None:
        growth = offset + len(new) - len(target.data)
        if growth > 0:
            self._use_space(growth)
        target.write(new, offset)

    def sync(self, file: int) -> None:
        target = self._open[file]
        try:
            self._step("sync")
        except OSError as error:
            target.fail_sync(self.reaches_disk)
            raise SyncFailed(*error.args) from error
        target.sync()

    def reaches_disk(self) -> bool:
        """Return whether the next sector of a failed sync reaches the disk."""
        return False

    def drop_cache(self, file: int) -> None:
        self._open[file].drop_cache()

    def sync_in_background(self, file: int) -> Future[float]:
        return Beside(self, lambda: self.sync(file))

    def prepare_in_background(self, file: int, size: int, directory: Path) -> Future[None]:
        return Beside(self, lambda: self.prepare_now(file, size, directory))

    def prepare_now(self, file: int, size: int, directory: Path) -> None:
        """Do the background's work now."""
        self.allocate(file, size)
        self.sync(file)
        self.sync_directory(directory)

    def forget(self, file: int, length: int, offset: int) -> None:
        """Do nothing: nothing is kept twice here."""

    def begin_sync(self, file: int, length: int, offset: int) -> None:
        """Do nothing: chance decides what a crash leaves of bytes that are not synced."""
        assert file in self._open
        assert offset + length <= self.size(file)

    def unlink_in_background(self, path: Path) -> None:
        """Remove it at once: there is no thread here."""
        with contextlib.suppress(OSError):
            self.unlink(path)

    def end_removals(self) -> None:
        """Do nothing: no removal lasts."""

    def expect(self, file: int, length: int, offset: int) -> None:
        """Do nothing: nothing is slow here."""
        assert file in self._open

    def sync_directory(self, directory: Path) -> None:
        try:
            self._step("sync_directory")
        except OSError as error:
            if error.errno in NO_DESCRIPTOR:        # it cannot even be opened
                raise
            raise NamesNotSynced(*error.args) from error
        here = {name: file for name, file in self.names_now.items() if Path(name).parent == directory}
        self.names_durable = {n: f for n, f in self.names_durable.items() if Path(n).parent != directory} | here
        self._changes = [change for change in self._changes if Path(change[0] or change[1]).parent != directory]

    def rename(self, old: Path, new: Path) -> None:
        self._step("rename")
        file = self.names_now[str(new)] = self.names_now.pop(str(old))
        self._changes.append((str(old), str(new), file))

    def unlink(self, path: Path) -> None:
        self._step("unlink")
        if str(path) not in self.names_now:
            raise FileNotFoundError(errno.ENOENT, "missing", str(path))
        if self.free_bytes is not None:
            self.free_bytes += len(self.names_now[str(path)].data)
        self._changes.append((str(path), "", self.names_now.pop(str(path))))

    def remove_directory(self, directory: Path) -> None:
        assert not self.names(directory)

    def random_bytes(self, count: int) -> bytes:
        return self._next.to_bytes(count, "big")
