"""The files of the snapshot store: their names, the choice of the one to load, and the removal of old ones."""

from __future__ import annotations

import contextlib
import logging
import re
from pathlib import Path

from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.snapshots import snapshot_file
from sockpqd.cluster.snapshots.snapshot_file import SnapshotContents, SnapshotFile
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import START_EMPTY, SnapshotDamaged, SnapshotTooNew

log = logging.getLogger("sockpqd.cluster")

_NAME = re.compile(r"snapshot-(\d{16})")


def index_of(name: str) -> int | None:
    """The index of the snapshot with a file of this name; None: it is something else."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def needed_from(disk: Disk, directory: Path) -> int:
    """The first entry that the log must reach back to for all snapshots there; 0 if there are none."""
    try:
        indexes = [index for name in disk.names(directory) if (index := index_of(name)) is not None]
    except FileNotFoundError:
        return 0
    return max(0, min(indexes, default=0) - 1)


class SnapshotDirectory:
    """Snapshots by the index of the last entry they contain."""

    def __init__(self, directory: Path, disk: Disk, pages: Path) -> None:
        """Create the directory if it is missing, and remove files that a killed process left incomplete.

        Afterwards the contents of all other files are known to be on the disk.

        `pages`: the directory of pages that snapshots may name.
        """
        self._directory = directory
        self._pages = pages
        self._disk = disk
        disk.make_directory(directory)
        for name in disk.names(directory):
            if name.endswith(".tmp"):
                self.remove(directory / name)   # it may be gone: a child that outlived its process may complete it
        disk.trust(directory, [self.path(index).name for index in self.indexes()])

    def path(self, index: int) -> Path:
        """The file of a snapshot."""
        return self._directory / f"snapshot-{index:016d}"

    def temporary(self, name: str) -> Path:
        """A new temporary name, which no surviving child of an earlier process uses."""
        return self._directory / f"{name}-{self._disk.random_bytes(4).hex()}.tmp"

    def indexes(self) -> list[int]:
        """The indexes of all snapshots, the newest last."""
        names = self._disk.names(self._directory)
        return sorted(index for name in names if (index := index_of(name)) is not None)

    def size(self, index: int) -> int:
        """The length of a snapshot's file in bytes."""
        file = self._disk.open(self.path(index))
        try:
            return self._disk.size(file)
        finally:
            self._disk.close(file)

    def pages_of(self, index: int) -> tuple[int, ...]:
        """The files of pages that a snapshot names; none if that cannot be read."""
        try:
            file = SnapshotFile(self._disk, self.path(index))
        except (OSError, SnapshotDamaged, SnapshotTooNew):
            return ()
        file.close()
        return file.contents.pages

    def put(self, temporary: Path, index: int) -> None:
        """Durably give a file, whose bytes are durable, the name of a snapshot."""
        self._disk.rename(temporary, self.path(index))
        self._disk.sync_directory(self._directory)

    def remove(self, path: Path) -> None:
        """Remove a file that may be gone already."""
        with contextlib.suppress(FileNotFoundError):
            self._disk.unlink(path)

    def prune(self, newest: int, kept: int) -> None:
        """Remove all but the last `kept` and `newest`, and those set aside as damaged."""
        for index in self.indexes()[:-kept]:
            if index != newest:
                self.remove(self.path(index))
        for name in self._disk.names(self._directory):
            if name.endswith(".damaged"):
                self.remove(self._directory / name)

    def choose(self, journal: Journal) -> int:
        """The index of the newest intact snapshot that the journal continues; 0 if the journal alone is complete.

        Damaged newer ones are set aside. Raises SnapshotDamaged if the rest may lack something this node acknowledged.
        """
        damaged: list[tuple[int, SnapshotDamaged]] = []
        contents: SnapshotContents | None = None
        for index in reversed(self.indexes()):
            try:
                contents = self._verify(index)
                break
            except SnapshotDamaged as error:
                log.error("%s", error)
                damaged.append((index, error))
        if damaged:
            self._check_fallback(journal, contents, *damaged[0])
        self._check_reach(journal, contents)
        for index, _ in damaged:
            self._disk.rename(self.path(index), self._directory / f"{self.path(index).name}.damaged")
        if damaged:
            self._disk.sync_directory(self._directory)
            log.error("the state is recovered from the journal and an older snapshot, if any; nothing is lost. "
                      "Check the disk: it changed data that were written.")
        return contents.last[1] if contents else 0

    def _verify(self, index: int) -> SnapshotContents:
        contents = snapshot_file.verify(self._disk, self.path(index), self._pages)
        if contents.last[1] != index:
            what = f"it holds the state after entry {contents.last[1]}, its name is that of entry {index}"
            raise SnapshotDamaged(f"snapshot {self.path(index)} is damaged: {what}")
        return contents

    def _check_fallback(
        self, journal: Journal, contents: SnapshotContents | None, newest: int, error: SnapshotDamaged,
    ) -> None:
        """Check that the journal holds everything a damaged snapshot held, from the older snapshot on."""
        if journal.last_index < newest:
            raise SnapshotDamaged(f"{error}, and the journal ends before it. {START_EMPTY}")
        older = contents.last if contents else None
        if older is not None and journal.first_index <= older[1] and journal.term_at(older[1]) != older[2]:
            raise SnapshotDamaged(f"{error}, and the journal does not continue the one before it. {START_EMPTY}")

    def _check_reach(self, journal: Journal, contents: SnapshotContents | None) -> None:
        first = journal.first_index
        if contents is not None and journal.empty:
            # The sender of a snapshot had sent us its term before, which was synced before we answered.
            what = f"the journal is empty, but {self.path(contents.last[1])} is there: the journal was lost"
            raise SnapshotDamaged(f"{what}. {START_EMPTY}")
        if contents is None:
            if first > 1:
                what = f"the journal begins with entry {first}, but {self._directory} has no sound snapshot before it"
                raise SnapshotDamaged(f"{what}. {START_EMPTY}")
        elif journal.last_index >= contents.last[1] and first > contents.prev[1]:
            what = f"{self.path(contents.last[1])} is too old for the journal, which begins with entry {first}"
            raise SnapshotDamaged(f"{what}: a newer snapshot is missing or damaged. {START_EMPTY}")
