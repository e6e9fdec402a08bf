"""The snapshots of a node: written in the background, sent, received, and loaded at the start.

A snapshot is the machine's state after one log entry, in a file `snapshot-<index>`. It gets that name only when all its
bytes are durable, so a file with the name is complete unless it was damaged later. The last two are kept, and the
journal reaches back to the older one.

SnapshotStore takes the place of pysyncobj's Serializer (the camel-case methods). The library sees one empty marker
where it would send pieces; snapshot_transfer.py moves the bytes.
"""
# ruff: noqa: N802   (pysyncobj's names)

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from cluster import limits
from cluster.journal.journal import Journal
from cluster.journal.log_index import Entry
from cluster.snapshots import snapshot_file
from cluster.snapshots.snapshot_directory import SnapshotDirectory
from cluster.snapshots.snapshot_file import Contents, SnapshotFile
from cluster.storage.disk import NO_SPACE, Disk
from cluster.storage.errors import START_EMPTY, START_NEWER, START_NEWER_HERE, SnapshotDamaged, SnapshotTooNew
from cluster.storage.fork import BackgroundTask, ForkedTask, InlineTask
from cluster.storage.state_hash import Chain
from core import PageLost, SnapshotError

__all__ = ["IncomingSnapshot", "OutgoingSnapshot", "SnapshotDamaged", "SnapshotStore", "SnapshotTooNew"]

log = logging.getLogger("sockpqd.cluster")


# pysyncobj's SERIALIZER_STATE
NOT_SERIALIZING, SERIALIZING, SUCCESS, FAILED = range(4)


class StateMachine(Protocol):
    """The source of snapshots: core's Machine."""

    def snapshot(self) -> Iterator[bytes]:
        """The state as bytes."""

    def export(self, *, users: bool = False) -> Iterator[bytes]:
        """The state as bytes, without the users and their keys, or with them."""

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Replace the state; it stays unchanged if this or `chunks` raises anything.

        Raises SnapshotError if the bytes are intact but this version does not understand them.
        """


class SnapshotStore:
    """The snapshots of a node, newest and older.

    `load_error` is the exception of deserialize(), which pysyncobj logs and forgets, or that of a page of jobs that
    could not be read for a snapshot: the driver must stop the node.
    `newest_index` and `newest_bytes` describe the newest snapshot, both 0 if there is none.
    """

    @classmethod
    def open(
        cls, directory: Path, disk: Disk, journal: Journal, machine: StateMachine, *, fork: bool = True,
        clock: Callable[[], float] = time.monotonic, needed: Callable[[], Collection[int]] = tuple,
    ) -> SnapshotStore:
        """Find the newest intact snapshot, check that the journal continues it, and load it.

        `fork`: write in a forked child (False: synchronously, for simulations). `clock`: seconds. `needed()`: the
        descriptors that the machine needs to write a snapshot. Raises SnapshotDamaged (the node must not take part),
        SnapshotTooNew and OSError.
        """
        store = cls(SnapshotDirectory(directory, disk), disk, journal, machine, fork=fork, clock=clock, needed=needed)
        try:
            newest = store._files.choose(journal)
            if newest:
                store._restore(store._files.path(newest))
                store._use(newest)
        except SnapshotTooNew as error:
            raise SnapshotTooNew(f"{error}. {START_NEWER}") from None
        return store

    def __init__(
        self, files: SnapshotDirectory, disk: Disk, journal: Journal, machine: StateMachine, *, fork: bool,
        clock: Callable[[], float], needed: Callable[[], Collection[int]],
    ) -> None:
        self.load_error: BaseException | None = None
        self.newest_index = 0
        self.newest_bytes = 0
        self.written_s = 0.0                    # time it took to write our last snapshot
        self._files = files
        self.disk = disk
        self._journal = journal
        self._machine = machine
        self.chain = Chain()                    # saved and restored with the state
        self._start_task: Callable[[Callable[[], None]], BackgroundTask] = (
            (lambda work: ForkedTask(work, needed())) if fork else InlineTask)
        self._clock = clock
        self._task: BackgroundTask | None = None    # writing a snapshot
        self._task_id: int | None = None        # pysyncobj's id of it
        self._task_index = 0
        self._task_path = Path()
        self._task_begun = 0.0
        self._retry_at = float("-inf")
        self.lacked_space = False               # a snapshot, ours or a peer's, found no space; cleared by capacity.py
        self._lacks_until = float("-inf")       # until when that counts as recent
        self._expected: IncomingSnapshot | None = None
        self.taken_over = 0                     # snapshots of others that replaced the state
        self._restored: Contents | None = None  # of a snapshot that the machine has and the library has not
        self._received = False                  # that snapshot was sent by a peer

    def _use(self, index: int) -> None:
        """Make this the newest snapshot."""
        self.newest_index, self.newest_bytes = index, self._files.size(index)

    def kept(self) -> list[int]:
        """The indexes of all snapshots on the disk, the newest last."""
        return self._files.indexes()

    def path(self, index: int) -> Path:
        """The file of a snapshot."""
        return self._files.path(index)

    def newest_path(self) -> str:
        """A path for pysyncobj, which only checks whether it exists: it does if there is a snapshot."""
        return __file__ if self.newest_index else ""

    # Writing our own

    @property
    def busy(self) -> bool:
        """Is a snapshot being written, or did the last attempt fail a moment ago?"""
        return self._task is not None or self.failing

    @property
    def failing(self) -> bool:
        """Did the last attempt to write a snapshot fail a moment ago?"""
        return self._clock() < self._retry_at

    def serialize(self, data: tuple[Any, Entry, Entry, Iterable[Any]], id: int) -> None:  # noqa: A002
        """pysyncobj: start to write the state, which is the one after `last`. `data`: (None, last, prev, nodes)."""
        if self._task is not None:
            return
        _, last, prev, nodes = data
        contents = Contents(last, prev, sorted(node.id for node in nodes), self.chain.value)
        self._task_id, self._task_index = id, last[1]
        self._task_path = temporary = self._files.temporary(self._files.path(last[1]).name)
        self._task_begun = self._clock()
        try:
            self._task = self._start_task(lambda: self._write(temporary, contents))
        except OSError as error:
            self._write_failed(str(error))

    def _write(self, temporary: Path, contents: Contents) -> None:
        snapshot_file.write(self.disk, temporary, contents, self._machine.snapshot())
        self._files.put(temporary, contents.last[1])
        self._files.prune(contents.last[1])     # here, because removing a large file takes the file system a while

    def checkSerializing(self) -> tuple[int, int | None]:
        """pysyncobj, each tick: the progress of writing. SUCCESS and FAILED are reported once."""
        if self._task is None:
            return NOT_SERIALIZING, None
        status = self._task.poll()
        if status is None:
            return SERIALIZING, self._task_id
        error, self._task = self._task.error, None
        self.note_lost_page(error)
        if status != 0:
            self._write_failed(error)
            return FAILED, self._task_id
        self._use(self._task_index)
        self.written_s = self._clock() - self._task_begun
        log.info("snapshot up to entry %d written, %d bytes", self.newest_index, self.newest_bytes)
        return SUCCESS, self._task_id

    def note_lost_page(self, error: str) -> None:
        """A background task has failed with this: if it could not read a page of jobs, the node must stop."""
        if error.startswith(PageLost.__name__):
            self.load_error = PageLost(error.partition(": ")[2])

    def _write_failed(self, error: str) -> None:
        log.warning("the snapshot up to entry %d could not be written: %s. This node will try again, and its journal "
                    "grows until then: free disk space.", self._task_index, error)
        self._retry_at = self._clock() + limits.SNAPSHOT_RETRY_S
        if any(os.strerror(number) in error for number in NO_SPACE):
            self.lack_space()
        self._files.remove(self._task_path)

    def lack_space(self) -> None:
        """Note that there is no space for a snapshot."""
        self.lacked_space = True
        self._lacks_until = self._clock() + limits.SNAPSHOT_RETRY_S

    @property
    def lacks_space(self) -> bool:
        """Was there no space for a snapshot a moment ago?"""
        return self._clock() < self._lacks_until

    def retry(self) -> None:
        """Allow another attempt at once, because there is more space now."""
        self._retry_at = self._lacks_until = float("-inf")

    def export(self, path: Path, *, users: bool = False) -> BackgroundTask:
        """Start to write the machine's export for clients to a new file; returns the task to poll. Raises OSError."""
        return self._start_task(lambda: self._write_stream(path, users))

    def _write_stream(self, path: Path, users: bool) -> None:
        file = self.disk.create(path)
        try:
            offset = 0
            for chunk in self._machine.export(users=users):
                self.disk.write(file, [chunk], offset)
                offset += len(chunk)
        finally:
            self.disk.close(file)

    def _drop_task(self) -> None:
        if self._task is not None:
            self._task.kill()
            self._task = None
            self._files.remove(self._task_path)

    # Loading

    def _restore(self, path: Path) -> None:
        """Load a snapshot into the machine. Raises SnapshotTooNew, SnapshotDamaged and OSError, changing nothing.

        This happens before the library asks for it, and before a received snapshot replaces our own, so a file that
        cannot be loaded is never used.
        """
        file = SnapshotFile(self.disk, path)
        try:
            self._machine.restore(file.stream())
        except SnapshotError as error:
            raise SnapshotTooNew(f"this version of sockpqd does not understand snapshot {path}: {error}") from None
        finally:
            file.close()
        self._restored = contents = file.contents
        self.chain.start(contents.last[1], contents.chain)

    def deserialize(self) -> tuple[None, Entry, Entry, list[str]]:
        """pysyncobj: load the newest snapshot, which the machine has already. Returns (None, last, prev, members)."""
        try:
            return self._load()
        except BaseException as error:
            self.load_error = error
            raise

    def _load(self) -> tuple[None, Entry, Entry, list[str]]:
        received, self._received = self._received, False
        contents, self._restored = self._restored, None
        assert contents is not None
        if not received:
            self._align(contents)
        return None, contents.last, contents.prev, contents.members

    def _align(self, contents: Contents) -> None:
        """Make the journal start with the snapshot's two entries.

        pysyncobj compares them with the first two of the log and wipes the whole log if they differ, acknowledged
        entries after the snapshot included. They differ after a crash between the snapshot and the removal of old
        entries, and always because our journal reaches further back.
        """
        journal, (last, prev) = self._journal, contents[:2]
        if journal.term_at(last[1]) != last[2]:
            return                  # the whole log is older or contradicts what is committed: wiping it is right
        if journal.term_at(prev[1]) is None or journal.entry(prev[1]) != prev or journal.entry(last[1]) != last:
            path = self._files.path(last[1])
            raise SnapshotDamaged(f"{path} and the journal disagree about entry {last[1]}. {START_EMPTY}")
        journal.align(prev[1] - journal.first_index)

    # Sending and receiving

    def getTransmissionData(self, node: Any) -> tuple[bytes, bool, bool]:
        """pysyncobj: the marker by which append_entries.py recognises a snapshot to be sent."""
        return b"", True, True

    def cancelTransmisstion(self, node: Any) -> None:
        """pysyncobj: do nothing, because transfers end with their connections."""

    def setTransmissionData(self, data: Any) -> bool:
        """pysyncobj: install the snapshot given to expect(); returns True if it is to be loaded now."""
        incoming, self._expected = self._expected, None
        if incoming is None:
            return False
        incoming.install()
        return True

    def expect(self, incoming: IncomingSnapshot) -> None:
        """Let the next setTransmissionData() install this snapshot, which must be complete."""
        self._expected = incoming

    def open_newest(self) -> OutgoingSnapshot:
        """Open the newest snapshot for sending. Raises OSError, and LookupError if there is none."""
        if not self.newest_index:
            raise LookupError("there is no snapshot to send")
        return OutgoingSnapshot(self.disk, self._files.path(self.newest_index))

    def begin_incoming(self, peer: str) -> IncomingSnapshot:
        """Create a file for a snapshot that `peer` sends. Raises OSError."""
        return IncomingSnapshot(self, self.disk, self._files.temporary(f"incoming-{peer}"), peer)

    def take_over(self, temporary: Path, index: int) -> None:
        """IncomingSnapshot: load a verified file, which replaces this node's state, and give it its name."""
        self._drop_task()            # it would report an older state as the newest
        self._restore(temporary)
        self.taken_over += 1
        self._files.put(temporary, index)
        self._use(index)
        self._received = True
        self._files.prune(index)

    def close(self) -> None:
        """Stop writing a snapshot."""
        self._drop_task()


class OutgoingSnapshot:
    """A snapshot being sent; it stays readable when newer ones replace it."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._file = SnapshotFile(disk, path)
        self._offset = 0
        self.size = self._file.size

    def read(self, length: int) -> bytes:
        """The next bytes, fewer at the end. Raises OSError."""
        data = self._file.read(self._offset, length)
        self._offset += len(data)
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class IncomingSnapshot:
    """A snapshot being received into a temporary file. `offset`: how many bytes have arrived."""

    def __init__(self, store: SnapshotStore, disk: Disk, path: Path, peer: str) -> None:
        self.offset = 0
        self._store = store
        self._disk = disk
        self._path = path
        self._peer = peer
        self._index = 0
        self._synced = 0
        self._file: int | None = disk.create(path)

    def write(self, data: bytes) -> None:
        """Append a chunk. Raises OSError."""
        assert self._file is not None
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
        """Name the sender in SnapshotTooNew, and remove the file."""
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
