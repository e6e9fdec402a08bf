"""The journal while a large frame is synced beside the loop: what is durable, and what a crash leaves."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from cluster import journal as module
from cluster.disk import Disk
from cluster.journal import Journal
from tests.cluster.faulty_disk import FaultyDisk

DIRECTORY = Path("/journal")
LARGE = bytes(range(1, 201)) * 10
SMALL = b"small"


@pytest.fixture(autouse=True)
def _threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BESIDE_BYTES", 1000)


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def journal(disk: FaultyDisk) -> Journal:
    journal = open_journal(disk)
    journal.add(SMALL, 1, 1)
    journal.sync()
    return journal


def open_journal(disk: FaultyDisk) -> Journal:
    return Journal.open(DIRECTORY, disk, segment_bytes=8192)


def begin(journal: Journal, disk: FaultyDisk, index: int = 2) -> None:
    """Add a large entry and begin to sync it."""
    disk.slow = True
    journal.add(LARGE, index, 1)
    assert not journal.sync_beside()
    assert journal.syncing is not None


def after_crash(disk: FaultyDisk, seed: int) -> Journal:
    other = disk.clone()
    other.crash(random.Random(seed))
    return open_journal(other)


def test_a_small_frame_is_synced_at_once(journal: Journal, disk: FaultyDisk) -> None:
    disk.slow = True
    journal.add(SMALL, 2, 1)
    assert journal.sync_beside()
    assert (journal.durable_index, journal.syncing) == (2, None)
    assert after_crash(disk, 1).last_index == 2


def test_a_large_frame_is_durable_when_its_sync_is_over(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    assert not journal.look()
    assert (journal.last_index, journal.durable_index) == (2, 1)
    assert {after_crash(disk, seed).last_index for seed in range(20)} == {1, 2}
    disk.slow = False
    assert journal.look()
    assert (journal.durable_index, journal.syncing) == (2, None)
    assert {after_crash(disk, seed).last_index for seed in range(20)} == {2}
    assert not journal.look()


def test_what_changes_meanwhile_comes_into_the_next_frame(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    journal.add(SMALL, 3, 1)
    assert not journal.sync_beside()
    assert journal.unsynced
    disk.slow = False
    assert journal.sync_beside()
    assert (journal.durable_index, journal.unsynced) == (3, False)
    assert after_crash(disk, 1).entry(3) == (SMALL, 3, 1)


def test_only_what_was_written_is_durable_when_the_sync_is_over(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    journal.add(SMALL, 3, 1)
    disk.slow = False
    assert journal.look()
    assert journal.durable_index == 2


def test_sync_waits(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    journal.setCurrentTerm(2, "n2")
    journal.sync()
    assert (journal.durable_index, journal.syncing) == (2, None)
    found = after_crash(disk, 1)
    assert (found.last_index, found.getCurrentTerm(), found.getVotedForNodeId()) == (2, 2, "n2")


def test_an_entry_that_was_removed_meanwhile_is_not_durable(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    journal.deleteEntriesFrom(1)
    journal.add(SMALL, 2, 2)
    disk.slow = False
    assert journal.look()
    assert journal.durable_index == 1
    journal.sync()
    assert journal.durable_index == 2
    assert after_crash(disk, 1).entry(2) == (SMALL, 2, 2)


def test_a_cleared_journal_has_nothing_durable(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    journal.clear()
    journal.add(SMALL, 7, 2)
    disk.slow = False
    assert journal.look()
    assert journal.durable_index == 0
    journal.sync()
    assert (journal.durable_index, after_crash(disk, 1).first_index) == (7, 7)


def test_an_error_ends_the_journal(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    disk.slow = False
    disk.fail["sync"] = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match="Input/output"):
        journal.look()
    disk.fail.clear()
    assert journal.durable_index == 1
    with pytest.raises(OSError, match="Input/output"):
        journal.add(SMALL, 3, 1)


def test_the_next_segment_is_made_when_the_first_frame_of_this_one_is_durable(
    journal: Journal, disk: FaultyDisk,
) -> None:
    for index in range(2, 14):
        begin(journal, disk, index)
        journal.onOneSecondTimer()
        for seed in range(10):
            assert after_crash(disk, seed).last_index in (index - 1, index)
        disk.slow = False
        assert journal.look()
    assert len(disk.names(DIRECTORY)) > 4


def test_a_closed_journal_has_waited(journal: Journal, disk: FaultyDisk) -> None:
    disk.slow = True
    begin(journal, disk)
    journal.close()
    assert disk.open_files == 0


def test_real_files_are_synced_in_a_thread(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, Disk(), segment_bytes=1 << 16)
    try:
        journal.add(LARGE, 1, 1)
        assert not journal.sync_beside()
        assert journal.syncing is not None
        journal.syncing.result(timeout=30)
        assert journal.look()
        assert journal.durable_index == 1
    finally:
        journal.close()
