"""A FaultyDisk without chance: names are durable at once, contents when synced, and crash() loses exactly the rest.

It may fail, be full, or the process be without descriptors.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import count as count_up
from pathlib import Path
from typing import TypeVar

from sockpqd.cluster.storage.disk import SyncFailed
from tests.cluster.helpers.cached_file import CachedFile
from tests.cluster.helpers.faulty_disk import FaultyDisk

T = TypeVar("T")
PLENTY_BYTES = 1 << 50
_numbers = count_up(1)      # no two disks have the same random bytes


class MemoryDisk(FaultyDisk):
    """Files by path.

    `failing`: raised by every write and sync. `failing_syncs`: the number of next syncs below `failing_folder` that
    have something to write raise `sync_error`. Then the bytes can be read until drop_cache() or crash(), but they are
    not on the disk.
    """

    free_bytes: int

    def __init__(self) -> None:
        super().__init__()
        self.free_bytes = PLENTY_BYTES
        self.failing: OSError | None = None
        self.failing_syncs = 0
        self.failing_folder = "/"
        self.sync_error = OSError(errno.EIO, os.strerror(errno.EIO))
        self.files_max: int | None = None       # the number of files that can be open at once

    def crash(self, rng: random.Random | None = None) -> None:
        """Kill the process and cut the machine's power; nothing is drawn."""
        for file in self.names_now.values():
            file.data, file.unsynced, file.failed = file.on_disk(), [], {}
        self.restart()

    def end_process(self) -> None:
        """Kill the process; the machine stays up."""
        self.restart()

    def sync_in_background(self, file: int) -> Future[float]:
        self.sync(file)
        return _done(lambda: 0.0)

    def prepare_in_background(self, file: int, size: int, directory: Path) -> Future[None]:
        return _done(lambda: self.prepare_now(file, size, directory))

    def _descriptor(self, file: CachedFile) -> int:
        if self.files_max is not None and len(self._open) >= self.files_max:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super()._descriptor(file)

    def create(self, path: Path) -> int:
        existed = str(path) in self.names_now
        try:
            return super().create(path)
        except OSError:
            if not existed:
                self.names_now.pop(str(path), None)
            raise

    def write(self, file: int, pieces: Sequence[bytes], offset: int) -> None:
        if self.failing is not None:
            raise self.failing
        super().write(file, pieces, offset)

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
        return next((path for path, other in self.names_now.items() if other is file), "")

    def rename(self, old: Path, new: Path) -> None:
        if str(new) in self.names_now:
            self.unlink(new)
        super().rename(old, new)

    def random_bytes(self, count: int) -> bytes:
        return next(_numbers).to_bytes(count, "big")


def _done(work: Callable[[], T]) -> Future[T]:
    """Do the work at once; returns its outcome."""
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except OSError as error:
        future.set_exception(error)
    return future
