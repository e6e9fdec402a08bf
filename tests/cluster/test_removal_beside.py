"""Unneeded segments of the journal are removed in a thread; only closing the journal waits for it."""

from __future__ import annotations

import threading
from pathlib import Path

from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.storage.disk import Disk

LONG_S = 60.0


class SluggishDisk(Disk):
    """Removes a file as soon as it may, or after LONG_S."""

    def __init__(self) -> None:
        self.may = threading.Event()

    def unlink(self, path: Path) -> None:
        self.may.wait(LONG_S)
        super().unlink(path)


def segments(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("journal-*"))


def cut_journal(directory: Path, disk: Disk) -> Journal:
    """Return a journal of five segments, of which only the last one is needed."""
    journal = Journal.open(directory, disk, segment_bytes=1 << 14)
    while journal.segments.active < 5:
        journal.add(bytes(4000), journal.last_index + 1, 1)
        journal.sync()
    for _ in range(2):                  # what the newest snapshot covers is kept
        journal.deleteEntriesTo(journal.last_index - journal.first_index)
        journal.sync()
    return journal


def test_the_loop_does_not_wait_for_a_removal_and_close_does(tmp_path: Path) -> None:
    disk = SluggishDisk()
    journal = cut_journal(tmp_path, disk)
    for _ in range(4):
        journal.onOneSecondTimer()
    assert not journal.segments.several                 # as far as the journal is concerned they are gone
    assert segments(tmp_path)[0] == "journal-00000001"
    threading.Timer(0.05, disk.may.set).start()
    journal.close()
    assert segments(tmp_path) == ["journal-00000005", "journal-00000006"]


def test_what_a_dead_process_did_not_remove_the_next_one_does(tmp_path: Path) -> None:
    class BrokenDisk(Disk):
        def unlink(self, path: Path) -> None:
            raise PermissionError
    journal = cut_journal(tmp_path, BrokenDisk())
    for _ in range(4):
        journal.onOneSecondTimer()
    last = journal.last_index
    journal.close()
    assert len(segments(tmp_path)) == 6
    journal = Journal.open(tmp_path, Disk(), segment_bytes=1 << 14)
    for _ in range(5):
        journal.onOneSecondTimer()
    assert journal.last_index == last
    journal.close()
    assert segments(tmp_path) == ["journal-00000005", "journal-00000006"]
