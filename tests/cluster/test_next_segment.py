"""The journal's next segment while a thread creates it: who waits, a full disk, errors, and what a crash leaves."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.storage.disk import Disk, TimedDisk
from sockpqd.cluster.storage.errors import NoRoom
from tests.cluster.helpers.faulty_disk import Crash, FaultyDisk

DIRECTORY = Path("/journal")
SEGMENT_BYTES = 8192
COMMAND = bytes(range(1, 101)) * 7      # with its head one frame of it takes two sectors


@pytest.fixture
def journal(disk: FaultyDisk) -> Journal:
    """Return a journal whose second segment has just begun; work in the background lasts until it is waited for."""
    journal = open_journal(disk)
    disk.slow = True
    while journal.segments.active == 1:
        put(journal)
    assert size(disk, 3) == 0
    return journal


def open_journal(disk: FaultyDisk) -> Journal:
    return Journal.open(DIRECTORY, disk, segment_bytes=SEGMENT_BYTES)


def put(journal: Journal) -> None:
    """Append an entry and make it durable."""
    journal.add(COMMAND, journal.last_index + 1, 1)
    journal.sync()
    assert journal.durable_index == journal.last_index


def size(disk: FaultyDisk, segment: int) -> int | None:
    """Return the length of a segment's file; None: there is none."""
    name = f"journal-{segment:08d}"
    return len(disk.file(DIRECTORY / name)) if name in disk.names(DIRECTORY) else None


def after_crash(disk: FaultyDisk, seed: int) -> Journal:
    other = disk.clone()
    other.crash(random.Random(seed))
    return open_journal(other)


# Who waits

def test_entries_become_durable_while_it_is_created(journal: Journal, disk: FaultyDisk) -> None:
    put(journal)
    journal.onOneSecondTimer()
    put(journal)
    assert size(disk, 3) == 0
    disk.slow = False
    put(journal)
    assert size(disk, 3) == SEGMENT_BYTES


def test_a_node_without_entries_notices_its_end_as_well(journal: Journal, disk: FaultyDisk) -> None:
    disk.slow = False
    journal.onOneSecondTimer()
    assert size(disk, 3) == SEGMENT_BYTES


def test_nothing_waits_before_a_quarter_of_a_segment_is_left_and_then_all_do(
    journal: Journal, disk: FaultyDisk,
) -> None:
    segments = journal.segments
    while size(disk, 3) == 0:
        left = segments.active_bytes - segments.position
        assert left >= SEGMENT_BYTES / 4        # whether clients' commands can still be logged must be known here
        put(journal)
    assert segments.active_bytes - segments.position < SEGMENT_BYTES / 4


@pytest.mark.parametrize("seed", range(3))
def test_it_is_given_up_as_long_as_the_reserve_is_left_and_created_again(
    journal: Journal, disk: FaultyDisk, seed: int,
) -> None:
    segments = journal.segments
    assert not segments.give_up_spare()         # it is being created
    disk.slow = False
    journal.onOneSecondTimer()
    assert size(disk, 3) == SEGMENT_BYTES
    assert segments.give_up_spare()
    assert (size(disk, 3), segments.short) == (None, True)
    assert not segments.give_up_spare()
    put(journal)
    assert after_crash(disk, seed).last_index == journal.last_index
    journal.onOneSecondTimer()
    assert (size(disk, 3), segments.short) == (SEGMENT_BYTES, False)
    while segments.active_bytes - segments.position >= SEGMENT_BYTES / 16:
        put(journal)
    if segments.active == 2:
        assert not segments.give_up_spare()     # Raft's own records need it
    assert after_crash(disk, seed).last_index == journal.last_index


def test_a_frame_beyond_the_segment_waits(journal: Journal, disk: FaultyDisk) -> None:
    for _ in range(3):
        put(journal)
    assert size(disk, 3) == 0
    journal.add(COMMAND * 7, journal.last_index + 1, 1)
    journal.sync()
    assert journal.segments.active == 3
    assert size(disk, 3) == SEGMENT_BYTES


def test_so_does_a_frame_larger_than_a_segment(journal: Journal) -> None:
    journal.add(COMMAND * 20, journal.last_index + 1, 1)
    journal.sync()
    assert journal.segments.active == 3
    assert journal.entry(journal.last_index)[0] == COMMAND * 20


def test_the_reserve_is_kept_whatever_comes_of_it(journal: Journal, disk: FaultyDisk) -> None:
    disk.free_bytes = 0
    assert journal.has_room_for([(COMMAND, 1, 1)])
    assert not journal.has_room_for([(COMMAND * 11, 1, 1)])
    assert journal.segments.short


def test_none_is_begun_before_a_frame_of_this_one_is_durable(journal: Journal, disk: FaultyDisk) -> None:
    segments = journal.segments
    segments.advance(0)
    assert segments.takes(SEGMENT_BYTES)
    assert size(disk, segments.active + 1) is None


def test_a_frame_that_just_fits_needs_no_larger_one(journal: Journal, disk: FaultyDisk) -> None:
    segments = journal.segments
    segments.prepare()
    segments.advance(0)
    segments.synced()
    segments.prepare()
    disk.free_bytes = 0
    assert segments.takes(SEGMENT_BYTES)
    assert not segments.takes(SEGMENT_BYTES + 1)


def test_just_the_reserve_is_left(journal: Journal, disk: FaultyDisk) -> None:
    segments, disk.free_bytes = journal.segments, 0
    assert not segments.try_to_prepare()
    left = SEGMENT_BYTES - segments.position - int(SEGMENT_BYTES * limits.JOURNAL_RESERVE)
    assert segments.takes(left)
    assert not segments.takes(left + 1)


def test_a_closed_journal_has_waited(journal: Journal, disk: FaultyDisk) -> None:
    journal.close()
    assert disk.open_files == 0
    assert size(disk, 3) == SEGMENT_BYTES


def test_a_larger_one_is_room_as_a_whole(journal: Journal) -> None:
    segments = journal.segments
    assert segments.try_to_prepare(3 * SEGMENT_BYTES)
    assert segments.room_bytes == SEGMENT_BYTES - segments.position + 3 * SEGMENT_BYTES


# A full disk

def test_a_full_disk_is_noticed_while_there_is_room(journal: Journal, disk: FaultyDisk) -> None:
    segments, disk.free_bytes = journal.segments, 0
    assert segments.room_bytes > SEGMENT_BYTES      # nothing is known yet
    while not segments.short:
        put(journal)
    assert segments.exhausted
    assert segments.room_bytes > SEGMENT_BYTES / 16
    assert size(disk, 3) is None


def test_further_attempts_promise_nothing_before_their_end(journal: Journal, disk: FaultyDisk) -> None:
    segments, disk.free_bytes, disk.slow = journal.segments, 0, False
    put(journal)
    assert segments.short
    room = segments.room_bytes
    disk.slow, disk.free_bytes = True, None
    journal.onOneSecondTimer()
    journal.onOneSecondTimer()
    assert (segments.short, segments.room_bytes) == (True, room)
    disk.slow = False
    journal.onOneSecondTimer()
    assert (segments.short, segments.room_bytes) == (False, room + SEGMENT_BYTES)


def test_without_a_next_segment_a_frame_beyond_this_one_changes_nothing(journal: Journal, disk: FaultyDisk) -> None:
    disk.free_bytes = 0
    journal.add(COMMAND * 11, journal.last_index + 1, 1)
    with pytest.raises(NoRoom):
        journal.sync()
    assert journal.durable_index == journal.last_index - 1
    disk.free_bytes = None
    journal.sync()
    assert journal.durable_index == journal.last_index


# Errors

@pytest.mark.parametrize("look", [put, Journal.onOneSecondTimer])
def test_an_error_of_the_thread_is_one_of_the_journal(
    look: Callable[[Journal], None], journal: Journal, disk: FaultyDisk,
) -> None:
    disk.slow, disk.fail["sync_directory"] = False, OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match="Input/output"):
        look(journal)
    assert size(disk, 3) is None
    journal.close()
    assert disk.open_files == 0


# A crash

@pytest.mark.parametrize("step", range(8))
def test_a_crash_at_any_step_leaves_all_that_was_durable(step: int, journal: Journal, disk: FaultyDisk) -> None:
    put(journal)
    for seed in range(10):
        assert after_crash(disk, seed).last_index == journal.last_index
    disk.slow, disk.crash_at = False, disk.steps + step
    with contextlib.suppress(Crash):
        put(journal)
        put(journal)
    for seed in range(30):
        opened = after_crash(disk, seed)
        assert opened.last_index in (journal.durable_index, journal.durable_index + 1)
        before = opened.last_index
        while opened.segments.active < 4:
            put(opened)
        assert [opened.entry(index)[0] for index in range(1, before + 1)] == [COMMAND] * before


# Real files

def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_real_disk_prepares_in_a_thread(tmp_path: Path) -> None:
    threads = []

    class Observed(TimedDisk):
        def prepare(self, file: int, size: int, names: int) -> None:
            threads.append(threading.current_thread())
            super().prepare(file, size, names)
    disk = Observed()
    file = disk.create(tmp_path / "new")
    before = open_descriptors()
    disk.prepare_in_background(file, 8192, tmp_path).result(timeout=30)
    assert disk.size(file) == 8192
    assert threads[0] is not threading.current_thread()
    assert sum(disk.preparations.counts) == 1
    assert open_descriptors() == before
    disk.close(file)


def test_its_error_comes_from_the_thread_and_leaves_no_descriptor(tmp_path: Path) -> None:
    disk = Disk()
    file = disk.create(tmp_path / "new")
    before = open_descriptors()
    over = disk.prepare_in_background(file, -1, tmp_path)       # posix_fallocate() refuses that
    with pytest.raises(OSError, match="Invalid argument"):
        over.result(timeout=30)
    assert open_descriptors() == before
    disk.close(file)


def test_a_real_journal_goes_through_many_segments(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, Disk(), segment_bytes=1 << 14)
    for _ in range(120):
        put(journal)
    journal.close()
    journal = Journal.open(tmp_path, Disk(), segment_bytes=1 << 14)
    assert journal.last_index == 120
    assert journal.segments.active > 4
    journal.close()
