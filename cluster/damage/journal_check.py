"""Checks the journal of a node from another process, for an operator. It only reads, so the node may run meanwhile."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from sockpqd.cluster.damage.file_check import FAIL, OK, WARN, FileCheck, UncachedDisk
from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal_format import Header, PlacedRecord
from sockpqd.cluster.journal.segment_head import first_to_read, read_heads
from sockpqd.cluster.journal.segment_scan import Scan
from sockpqd.cluster.journal.segments import numbers_of
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import JournalDamaged, JournalTooNew

READINGS = 3        # what a node that runs writes during a reading can look like damage, but not twice at one place


class _Reading:
    """One reading of all segments, or of those that a start needs (segment_scan.Files)."""

    def __init__(self, disk: Disk, directory: Path, needed_from: int = 0) -> None:
        self.journal_id = b""
        self.sequence = 0
        self.first = 0          # entries there are; 0: none
        self.last = 0
        self.size = 0           # of all frames, in bytes
        self._disk = disk
        self._directory = directory
        self._needed_from = needed_from

    def path(self, segment: int) -> Path:
        """See Files."""
        return self._directory / f"journal-{segment:08d}"

    def damaged(self, segment: int, offset: int, what: str) -> None:
        """See Files."""
        raise JournalDamaged(f"{self.path(segment)} is damaged at offset {offset}: {what}")

    def read(self) -> None:
        """Read the segments. Raises JournalDamaged, JournalTooNew and OSError."""
        scan = Scan(self, self._count)
        run = numbers_of(self._disk.names(self._directory))[1]
        begin = 0
        if self._needed_from:
            begin = first_to_read(read_heads(self._disk, run, self.path), run, self._needed_from)
        for number in run:
            if number >= begin:
                scan.read(number, self._load(number))
        self.size = sum(scan.ends.values())

    def _load(self, segment: int) -> bytes:
        with closing(_Opened(self._disk, self.path(segment))) as opened:
            return self._disk.read(opened.file, self._disk.size(opened.file), 0)

    def _count(self, segment: int, data: bytes, header: Header, records: list[PlacedRecord]) -> None:
        for record in records:
            if record.kind == journal_format.ENTRY:
                self.first = self.first or record.a
                self.last = record.a


class _Opened:
    """A file of a disk, for closing()."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self.file = disk.open(path)

    def close(self) -> None:
        self._disk.close(self.file)


def check_journal(directory: Path, disk: Disk | None = None, needed_from: int = 0) -> FileCheck:
    """Read every segment of a journal. Raises OSError.

    `needed_from`: a start needs the entries from this one on; 0: all.
    """
    disk = disk or UncachedDisk()
    found = _check(disk, directory, 0)
    if found.state == OK or not needed_from or _check(disk, directory, needed_from).state != OK:
        return found
    return FileCheck(WARN, "journal", f"{found.found}. Only copies in other regions need that part",
                     "a start does not read it while a snapshot is whole, and a running node removes it when it finds "
                     "the damage (OPERATIONS.md, Damaged files). Check the disk")


def _check(disk: Disk, directory: Path, needed_from: int) -> FileCheck:
    before = ""
    for _ in range(READINGS):
        reading = _Reading(disk, directory, needed_from)
        try:
            reading.read()
        except FileNotFoundError:
            continue                # the node has removed the oldest segment
        except JournalTooNew as error:
            return FileCheck(FAIL, "journal", str(error))
        except JournalDamaged as error:
            if str(error) == before:
                break
            before = str(error)
            continue
        entries = f"entries {reading.first} to {reading.last}" if reading.last else "no entries yet"
        return FileCheck(OK, "journal", f"{entries}, {reading.size:,} bytes, all as written")
    return FileCheck(FAIL, "journal", before or f"the segments in {directory} change too fast to be read",
                     "do not restart the node without need: a start sets the files aside and rejoins the others "
                     "(OPERATIONS.md, Damaged files)" if before else "try again")
