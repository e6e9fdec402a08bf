"""Outgoing and incoming transfers of snapshots."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from sockpqd.cluster import limits
from sockpqd.cluster.snapshots import snapshot_file
from sockpqd.cluster.snapshots.snapshot_file import SnapshotFile
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import START_NEWER_HERE, SnapshotTooNew


class Store(Protocol):
    """The part of SnapshotStore that transfers use."""

    sending: int

    def note_received(self) -> None:
        """Record that a part of a snapshot has arrived."""

    def note_received_all(self) -> None:
        """Record that nothing more of it is to come."""

    def take_over(self, temporary: Path, index: int) -> None:
        """Load a verified file, which replaces this node's state, and give it its name."""


class OutgoingSnapshot:
    """A snapshot being sent; it stays readable when newer ones replace it."""

    def __init__(self, store: Store, disk: Disk, path: Path) -> None:
        self._file = SnapshotFile(disk, path)
        self._store = store
        store.sending += 1
        self._offset = 0
        self.size = self._file.size

    def read(self, length: int) -> bytes:
        """The next bytes, fewer at the end. Raises OSError."""
        data = self._file.read(self._offset, length)
        self._offset += len(data)
        return data

    def close(self) -> None:
        self._file.close()
        self._store.sending -= 1


class IncomingSnapshot:
    """A snapshot being received into a temporary file. `offset`: how many bytes have arrived."""

    def __init__(self, store: Store, disk: Disk, path: Path, peer: str) -> None:
        self.offset = 0
        self._store = store
        self._disk = disk
        self._path = path
        self._peer = peer
        self._index = 0
        self._synced = 0
        self._file: int | None = disk.create(path)
        store.note_received()

    def write(self, data: bytes) -> None:
        """Append a chunk. Raises OSError."""
        assert self._file is not None
        self._store.note_received()
        self._disk.write(self._file, [data], self.offset)
        self.offset += len(data)
        if self.offset - self._synced >= limits.SNAPSHOT_SYNC_BYTES:
            self._disk.sync(self._file)
            self._synced = self.offset

    def finish(self) -> tuple[int, int]:
        """Make the file durable and check all of it. Returns index and term of its last entry.

        Nothing is replaced yet. Raises SnapshotDamaged (then call abort()), SnapshotTooNew (see install()) and OSError.
        """
        assert self._file is not None
        self._disk.sync(self._file)
        self._close()
        with self._understood():
            _, self._index, term = snapshot_file.verify(self._disk, self._path).last
        return self._index, term

    def install(self) -> None:
        """Make this the newest snapshot of the node; finish() must have succeeded. Raises OSError and SnapshotTooNew.

        SnapshotTooNew must stop this node: its leader no longer has the entries that it lacks, so only this snapshot
        could bring it up to date. A running node would count for no majority, yet look healthy to operators. Nothing is
        replaced, so the newer version finds everything as it was.
        """
        assert self._index > 0
        with self._understood():
            self._store.take_over(self._path, self._index)
        self._index = 0

    @contextlib.contextmanager
    def _understood(self) -> Iterator[None]:
        """Add the sender's name to a SnapshotTooNew, and remove the file."""
        try:
            yield
        except SnapshotTooNew as error:
            self.abort()
            what = f"{self._peer} sent a snapshot of a newer version: {error}"
            raise SnapshotTooNew(f"{what}. {START_NEWER_HERE}") from None

    def abort(self) -> None:
        """Remove what was received; does nothing after install()."""
        self._close()
        with contextlib.suppress(FileNotFoundError):
            self._disk.unlink(self._path)

    def _close(self) -> None:
        if self._file is not None:
            self._disk.close(self._file)
            self._file = None
            self._store.note_received_all()
