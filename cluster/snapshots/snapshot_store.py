"""The snapshots of a node: written in the background, sent, received, and loaded at the start.

A snapshot is the machine's state after one log entry, in a file `snapshot-<index>`. It gets that name only when all its
bytes are durable, so a file with the name is complete unless it was damaged later. The last two are kept, and the
journal reaches back to the older one.

SnapshotStore takes the place of pysyncobj's Serializer (the camel-case methods). The library sees one empty marker
where it would send pieces; snapshot_transfer.py moves the bytes.
"""
# ruff: noqa: N802   (pysyncobj's names)

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.journal.log_index import Entry
from sockpqd.cluster.paging.page_files import PageFiles, PagesNotSynced
from sockpqd.cluster.paging.page_format import PageReader
from sockpqd.cluster.snapshots import snapshot_file
from sockpqd.cluster.snapshots.snapshot_directory import SnapshotDirectory
from sockpqd.cluster.snapshots.snapshot_file import SnapshotContents, SnapshotFile
from sockpqd.cluster.snapshots.transfers import IncomingSnapshot, OutgoingSnapshot
from sockpqd.cluster.storage.disk import NO_SPACE, Disk, NamesNotSynced
from sockpqd.cluster.storage.errors import START_EMPTY, START_NEWER, SnapshotDamaged, SnapshotTooNew
from sockpqd.cluster.storage.fork import BackgroundTask, ForkedTask, InlineTask
from sockpqd.cluster.storage.state_hash import DIGEST_BYTES, Chain
from sockpqd.core import PageLost, SnapshotError, expanded

__all__ = ["IncomingSnapshot", "OutgoingSnapshot", "SnapshotDamaged", "SnapshotStore", "SnapshotTooNew"]

log = logging.getLogger("sockpqd.cluster")


# pysyncobj's SERIALIZER_STATE
NOT_SERIALIZING, SERIALIZING, SUCCESS, FAILED = range(4)


class StateMachine(Protocol):
    """The source of snapshots: core's Machine."""

    def snapshot(self, *, by_reference: bool = False) -> Iterator[bytes]:
        """The state as bytes; `by_reference`: pages are named, not read."""

    def export(self, *, users: bool = False) -> Iterator[bytes]:
        """The state as bytes, without the users and their keys, or with them."""

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Replace the state; it stays unchanged if this or `chunks` raises anything.

        Raises SnapshotError if the bytes are intact but this version does not understand them.
        """


class SnapshotStore:
    """The snapshots of a node, newest and older.

    `load_error` is the exception of deserialize(), which pysyncobj logs and ignores, or of reading a page of jobs for a
    snapshot, or of syncing its directory: the driver must stop the node.
    `newest_index` and `newest_bytes` describe the newest snapshot, both 0 if there is none.
    """

    @classmethod
    def open(
        cls, directory: Path, disk: Disk, journal: Journal, machine: StateMachine, *, fork: bool = True,
        clock: Callable[[], float] = time.monotonic, pages: PageFiles,
    ) -> SnapshotStore:
        """Find the newest intact snapshot, check that the journal continues it, and load it.

        `fork`: write in a forked child (False: synchronously, for simulations). `clock`: seconds. `pages`: of
        the machine. Raises SnapshotDamaged (the node must not take part), SnapshotTooNew and
        OSError.
        """
        files = SnapshotDirectory(directory, disk, pages.directory)
        store = cls(files, disk, journal, machine, fork=fork, clock=clock, pages=pages)
        try:
            pages.begin({index: frozenset(files.pages_of(index)) for index in files.indexes()})
            newest = store._files.choose(journal)
            if newest:
                store._restore(store._files.path(newest))
                store._use(newest)
                store.older_bytes = sum(files.size(index) for index in files.indexes() if index != newest)
            store._keep_pages()
            pages.settle()
        except SnapshotTooNew as error:
            raise SnapshotTooNew(f"{error}. {START_NEWER}") from None
        return store

    def __init__(
        self, files: SnapshotDirectory, disk: Disk, journal: Journal, machine: StateMachine, *, fork: bool,
        clock: Callable[[], float], pages: PageFiles,
    ) -> None:
        self.load_error: BaseException | None = None
        self.newest_index = 0
        self.newest_bytes = 0
        self.older_bytes = 0                    # size of those before it
        self.written_s = 0.0                    # time it took to write our last snapshot
        self._files = files
        self.disk = disk
        self._journal = journal
        self._machine = machine
        self.chain = Chain()                    # saved and restored with the state,
        self.mirror_chain = Chain()             # as is the origin's, in a replica
        self._start_task: Callable[[Callable[[], None]], BackgroundTask] = (
            (lambda work: ForkedTask(work, pages.descriptors())) if fork else InlineTask)
        self._pages = pages
        self._process = os.getpid() if fork else 0
        self.whole_wanted = False               # the next snapshot is to be whole, until one is,
        self.whole_for_peer = False             # or only this once, as a peer needs it and this disk may be too small
        self.sending = 0                        # snapshots that are being sent
        self._clock = clock
        self._task: BackgroundTask | None = None    # writing a snapshot
        self._task_id: int | None = None        # pysyncobj's id of it
        self._task_index = 0
        self._task_path = Path()
        self._task_pages: dict[int, int] = {}   # the files of pages that it names, and their sizes
        self._makes_whole = False               # it makes the newest snapshot whole, of which the library knows nothing
        self._task_begun = 0.0
        self._retry_at = float("-inf")
        self.lacked_space = False               # a snapshot, ours or a peer's, found no space; cleared by capacity.py
        self._lacks_until = float("-inf")       # until when that counts as recent
        self._received_at = float("-inf")       # when a part of an incoming snapshot last arrived
        self._expected: IncomingSnapshot | None = None
        self.taken_over = 0                     # snapshots of others that replaced the state
        self._restored: SnapshotContents | None = None  # of a snapshot that the machine has and the library has not
        self._received = False                  # that snapshot was sent by a peer

    def _use(self, index: int) -> None:
        """Make this the newest snapshot."""
        if index != self.newest_index:
            self.older_bytes = self.newest_bytes
        self.newest_index, self.newest_bytes = index, self._files.size(index)

    def kept(self) -> list[int]:
        """The indexes of all snapshots on the disk, the newest last."""
        return self._files.indexes()

    @property
    def needed_from(self) -> int:
        """The first entry that the log must reach back to for all snapshots on the disk; 0 if there are none."""
        kept = self.kept()
        return kept[0] - 1 if kept else 0

    def path(self, index: int) -> Path:
        """The file of a snapshot."""
        return self._files.path(index)

    def newest_path(self) -> str:
        """A path for pysyncobj, which only checks whether it exists: it does if there is a snapshot."""
        return __file__ if self.newest_index else ""

    # Writing our own

    @property
    def busy(self) -> bool:
        """True if a snapshot is being written or received, or the last attempt to write one failed very recently."""
        return self._task is not None or self.failing or self.receiving

    @property
    def writing(self) -> bool:
        """True if a snapshot is being written."""
        return self._task is not None

    @property
    def receiving(self) -> bool:
        """True if a snapshot of another node is arriving."""
        return self._clock() - self._received_at < limits.RECEIVING_S

    def note_received(self) -> None:
        """IncomingSnapshot: a part of it has arrived."""
        self._received_at = self._clock()

    def note_received_all(self) -> None:
        """IncomingSnapshot: nothing more of it is to come."""
        self._received_at = float("-inf")

    @property
    def failing(self) -> bool:
        """True if the last attempt to write a snapshot has just failed."""
        return self._clock() < self._retry_at

    def serialize(self, data: tuple[Any, Entry, Entry, Iterable[Any]], id: int) -> None:  # noqa: A002
        """pysyncobj: start to write the state, which is the one after `last`. `data`: (None, last, prev, nodes).

        Raises NoRoom and OSError if the journal cannot be synced, which ends this node: the snapshot is not at fault.
        """
        if self._task is not None:
            return
        _, last, prev, nodes = data
        if self._journal.durable_index < last[1]:
            self._journal.sync()            # after a crash the journal must continue the snapshot
        self._task_id, self._task_index = id, last[1]
        self._task_path = temporary = self._files.temporary(self._files.path(last[1]).name)
        self._task_begun = self._clock()
        try:
            by_reference = self.names_pages and not (self.whole_wanted or self.whole_for_peer)
            self._task_pages = self._pages.name(last[1]) if by_reference else {}
            self.chain.forget_before(self._journal.oldest_index)
            contents = SnapshotContents(
                last, prev, sorted(node.id for node in nodes), self.chain.value, tuple(sorted(self._task_pages)),
                self.chain.saved(), self._mirrored())
            self._task = self._start_task(lambda: self._write(temporary, contents))
        except OSError as error:
            self._write_failed(str(error))

    def _mirrored(self) -> tuple[int, bytes, bytes] | None:
        chain = self.mirror_chain
        if not chain.index:
            return None
        chain.forget_before(chain.index)        # the last few are enough to go on from
        return chain.index, chain.value, chain.saved()

    @property
    def names_pages(self) -> bool:
        """True if a snapshot taken now names pages instead of reading them."""
        return self._pages.nameable

    @property
    def usual_bytes(self) -> int:
        """The approximate size of the next snapshot; 0 if it will be much smaller than the newest one."""
        whole = not self._pages.named.get(self.newest_index)
        return 0 if whole and self.names_pages else self.newest_bytes

    def _write(self, temporary: Path, contents: SnapshotContents) -> None:
        if not contents.pages:
            snapshot_file.write(self.disk, temporary, contents, self._machine.snapshot())
        else:
            snapshot_file.write(self.disk, temporary, contents, self._machine.snapshot(by_reference=True))
            self._pages.sync(contents.pages)
            if self._process and os.getppid() != self._process:
                # The next process may have removed the pages before it could see this snapshot.
                raise OSError(errno.ECHILD, "the node has ended")
        self._files.put(temporary, contents.last[1])
        # here, because removing a large file takes the file system a while
        self._files.prune(contents.last[1], limits.SNAPSHOTS_KEPT)

    def checkSerializing(self) -> tuple[int, int | None]:
        """pysyncobj, each tick: the progress of writing. SUCCESS and FAILED are reported once."""
        if self._task is None:
            return NOT_SERIALIZING, None
        status = self._task.poll()
        if status is None:
            return SERIALIZING, self._task_id
        error, self._task = self._task.error, None
        self.note(error)
        if self._makes_whole:
            self._makes_whole = False
            self._made_whole(status, error)
            return NOT_SERIALIZING, None
        if status != 0:
            # A child that was killed may have been the only process that knew of a failed sync.
            if status < 0 or error.startswith(PagesNotSynced.__name__):
                self._pages.not_synced(self._task_pages)
            self._write_failed(error)
            return FAILED, self._task_id
        self._use(self._task_index)
        if self._task_pages:
            self._pages.synced(self._task_pages)
        else:
            self.whole_wanted = self.whole_for_peer = False
        self._keep_pages()
        self.written_s = self._clock() - self._task_begun
        log.info("snapshot up to entry %d written, %d bytes", self.newest_index, self.newest_bytes)
        return SUCCESS, self._task_id

    def _keep_pages(self) -> None:
        """Release the pages that no snapshot needs, neither one still kept nor the one being written."""
        written = [] if self._task is None else [self._task_index]
        self._pages.keep([*self._files.indexes(), *written])

    def release(self) -> None:
        """Remove the snapshots before the newest one, because their space is needed."""
        self._files.prune(self.newest_index, 1)
        self.older_bytes = 0
        self._keep_pages()

    def note(self, error: str) -> None:
        """Remember the error of a background task: lost pages or file names must stop the node."""
        for kind in (PageLost, NamesNotSynced):
            if error.startswith(kind.__name__):
                self.load_error = kind(error.partition(": ")[2])

    def _write_failed(self, error: str) -> None:
        self.whole_for_peer = False
        log.warning("the snapshot up to entry %d could not be written: %s. This node will try again, and its journal "
                    "grows until then: free disk space.", self._task_index, error)
        self._failed(error)

    def _failed(self, error: str) -> None:
        self._retry_at = self._clock() + limits.SNAPSHOT_RETRY_S
        if any(os.strerror(number) in error for number in NO_SPACE):
            self.lack_space()
        self._files.remove(self._task_path)
        self._keep_pages()

    def lack_space(self) -> None:
        """Record that there is no space for a snapshot."""
        self.lacked_space = True
        self._lacks_until = self._clock() + limits.SNAPSHOT_RETRY_S

    @property
    def lacks_space(self) -> bool:
        """True if there was no space for a snapshot a moment ago."""
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
            self._task, self._makes_whole = None, False
            self._files.remove(self._task_path)
            self._keep_pages()

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
        self.chain.start(contents.last[1], contents.chain, contents.checkpoints)
        self.mirror_chain.start(*(contents.mirror or (0, bytes(DIGEST_BYTES))))

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

    def _align(self, contents: SnapshotContents) -> None:
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

    def open_newest(self) -> OutgoingSnapshot | None:
        """Open the newest snapshot for sending. Raises OSError, and LookupError if there is none.

        None: it names pages, so a self-contained one is being written first.
        """
        if not self.newest_index:
            raise LookupError("there is no snapshot to send")
        if self._pages.named.get(self.newest_index):
            if not self.busy:
                self._make_whole()
            return None
        return OutgoingSnapshot(self, self.disk, self._files.path(self.newest_index))

    def _make_whole(self) -> None:
        """Start to replace the newest snapshot with a self-contained one of the same state. Raises OSError."""
        index = self.newest_index
        self._task_index = index
        self._task_path = temporary = self._files.temporary(self._files.path(index).name)
        self._task = self._start_task(lambda: self._write_whole(temporary, index))
        self._makes_whole = True
        log.info("the snapshot up to entry %d refers to local pages: writing a complete copy for another node", index)

    def _write_whole(self, temporary: Path, index: int) -> None:
        with (closing(SnapshotFile(self.disk, self._files.path(index))) as file,
              closing(PageReader(self.disk, self._pages.directory)) as reader):
            contents = file.contents._replace(pages=())
            snapshot_file.write(self.disk, temporary, contents, expanded(file.stream(), reader.read))
        self._files.put(temporary, index)

    def _made_whole(self, status: int, error: str) -> None:
        """Adopt the self-contained snapshot that the task has written, or note the failure."""
        if status != 0:
            log.warning("the snapshot up to entry %d could not be made whole: %s. This node will try again.",
                        self._task_index, error)
            self._failed(error)
            return
        self._pages.named.pop(self._task_index, None)
        self._use(self._task_index)
        self._keep_pages()

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
        self._files.prune(index, limits.SNAPSHOTS_KEPT)
        self._keep_pages()

    def close(self) -> None:
        self._drop_task()
