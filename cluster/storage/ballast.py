"""Ballast: allocated files that are removed when the disk is full.

The space of the first, `ballast`, allows a snapshot to be written and the journal to be cut, which frees more than that
takes. So it is as large as the next snapshot may become, plus a segment of the journal. The second, `reserve`, is small
and kept for a state that another node sends: it may be all that can free this disk (capacity.py).
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from sockpqd.cluster import limits
from sockpqd.cluster.storage.disk import Disk

HOLD_SHARE = 4                  # hold() grows by no less than a quarter of what is wanted

log = logging.getLogger("sockpqd.cluster")


class Ballast:
    """A file of ballast; `bytes` are allocated."""

    def __init__(self, disk: Disk, path: Path) -> None:
        """Adopt the file of an earlier process, if there is one."""
        self._disk = disk
        self._path = path
        self.bytes = 0
        self._failing = False
        if path.name in disk.names(path.parent):
            self._resize(0)

    def keep(self, wanted_bytes: int, free_bytes: int) -> None:
        """Grow by a step towards `wanted_bytes` if the disk has the space; release the file if it is far too large."""
        step_bytes = limits.BALLAST_STEP_BYTES
        wanted = -(-min(wanted_bytes, limits.BALLAST_BYTES_MAX) // step_bytes) * step_bytes
        if self.bytes > 2 * wanted:
            self.give_up()
        elif self.bytes < wanted and free_bytes >= step_bytes:
            self._resize(self.bytes + step_bytes)

    def hold(self, wanted_bytes: int, free_bytes: int) -> None:
        """Grow to `wanted_bytes` at once, or by half of what is free where that is less, but not by a little."""
        size = min(wanted_bytes, self.bytes + free_bytes // 2)
        if size - self.bytes >= max(1, wanted_bytes // HOLD_SHARE):
            self._resize(size)

    def _resize(self, size: int) -> None:
        """Allocate `size` bytes; 0: as many as the file has."""
        try:
            file = self._disk.open(self._path, writable=True) if self.bytes or not size else self._create()
            try:
                size = size or self._disk.size(file)
                if size:
                    self._disk.allocate(file, size)
            finally:
                self._disk.close(file)
        except OSError as error:
            if not self._failing:
                log.warning("the ballast %s could not be made larger: %s", self._path, error)
            self._failing = True
            if not self.bytes:
                self.give_up()
            return
        self.bytes, self._failing = size, False

    def _create(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            self._disk.unlink(self._path)
        return self._disk.create(self._path)

    def give(self, needed_bytes: int) -> bool:
        """Free `needed_bytes`, rounded up to steps, or all there is; returns whether there was any ballast."""
        step_bytes = limits.BALLAST_STEP_BYTES
        left = self.bytes - -(-needed_bytes // step_bytes) * step_bytes
        if left <= 0:
            return self.give_up()
        try:
            file = self._disk.open(self._path, writable=True)
            try:
                self._disk.shorten(file, left)
            finally:
                self._disk.close(file)
        except OSError:
            return self.give_up()
        self.bytes = left
        return True

    def give_up(self) -> bool:
        """Remove the file; returns whether there was any ballast."""
        there, self.bytes = self.bytes > 0, 0
        with contextlib.suppress(OSError):
            self._disk.unlink(self._path)
        return there
