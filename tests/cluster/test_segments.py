"""The files of the journal alone: what a start finds and keeps, what is written, mended, read and closed."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal, JournalDamaged
from sockpqd.cluster.journal.segments import Segments
from sockpqd.cluster.storage.errors import NoRoom
from tests.cluster.helpers.faulty_disk import FaultyDisk, durable_bytes

DIRECTORY = Path("/journal")
SEGMENT_BYTES = 8192
FRAME = b"x" * 512


def open_journal(disk: FaultyDisk) -> Journal:
    return Journal.open(DIRECTORY, disk, segment_bytes=SEGMENT_BYTES)


def put(journal: Journal, count: int) -> None:
    for _ in range(count):
        journal.add(bytes(1000), journal.last_index + 1, 1)
        journal.sync()


@pytest.fixture
def segments(disk: FaultyDisk) -> Segments:
    """Segment 1 is in use, and empty."""
    segments = Segments(DIRECTORY, disk, SEGMENT_BYTES)
    segments.start(b"j" * 16)
    return segments


def append(segments: Segments, data: bytes = FRAME) -> None:
    segments.append([data], len(data), in_background=False)


class TestStart:
    def test_segments_before_a_gap_are_left_over_from_a_removal(self, disk: FaultyDisk) -> None:
        journal = open_journal(disk)
        put(journal, 40)
        first = disk.names_now[str(DIRECTORY / "journal-00000001")]
        for removed_to in (30, 35):             # the older of two snapshots still needs what is before the first
            journal.deleteEntriesTo(removed_to)
            journal.sync()
        for _ in range(20):
            journal.onOneSecondTimer()
        assert journal.segments.oldest > 2
        entries = list(journal[:])
        journal.close()
        disk.names_now[str(DIRECTORY / "journal-00000001")] = first
        assert list(open_journal(disk)[:]) == entries

    def test_one_file_without_a_frame_is_no_journal_yet(self, disk: FaultyDisk) -> None:
        disk.write(disk.create(DIRECTORY / "journal-00000001"), [bytes(SEGMENT_BYTES)], 0)
        journal = open_journal(disk)
        put(journal, 1)
        assert open_journal(disk.clone()).last_index == journal.last_index

    def test_but_a_later_one_had_others_before_it(self, disk: FaultyDisk) -> None:
        disk.write(disk.create(DIRECTORY / "journal-00000002"), [bytes(SEGMENT_BYTES)], 0)
        with pytest.raises(JournalDamaged, match="the segments before it are missing"):
            open_journal(disk)

    def test_the_next_segment_is_kept_and_nothing_is_cut_off(
        self, disk: FaultyDisk, caplog: pytest.LogCaptureFixture,
    ) -> None:
        journal = open_journal(disk)
        put(journal, 3)
        room = journal.segments.room_bytes
        assert room > SEGMENT_BYTES
        journal.close()
        following = disk.names_now[str(journal.segments.path(2))]
        assert open_journal(disk).segments.room_bytes == room
        assert disk.names_now[str(journal.segments.path(2))] is following
        assert "cut off" not in caplog.text

    def test_what_is_cut_off_does_not_come_back(self, disk: FaultyDisk) -> None:
        journal = open_journal(disk)
        put(journal, 1)
        position, path = journal.segments.position, journal.segments.path(1)
        disk.full_after = 700
        with pytest.raises(NoRoom):
            put(journal, 1)
        disk.full_after = None
        disk.sync(disk.open(path))
        journal.close()
        file = disk.names_now[str(path)]
        assert any(durable_bytes(file)[position:])
        open_journal(disk)
        assert not any(durable_bytes(file)[position:])


class TestWriting:
    def test_a_first_frame_without_room_leaves_the_segment_in_use(self, segments: Segments, disk: FaultyDisk) -> None:
        disk.full_after = 100
        with pytest.raises(NoRoom):
            append(segments)
        assert (segments.active, segments.active_bytes, segments.position) == (1, SEGMENT_BYTES, 0)
        disk.full_after = None
        append(segments)
        assert segments.read(1, 0, len(FRAME)) == FRAME

    def test_only_the_first_of_a_segment_goes_back_to_the_one_before(
        self, segments: Segments, disk: FaultyDisk,
    ) -> None:
        append(segments)
        segments.advance(0)
        disk.full_after = 100
        with pytest.raises(NoRoom):
            append(segments)
        assert (segments.active, segments.position) == (1, len(FRAME))
        disk.full_after = None
        segments.advance(0)
        append(segments)
        disk.full_after = 100
        with pytest.raises(NoRoom):
            append(segments)
        assert (segments.active, segments.position) == (2, len(FRAME))

    def test_a_segment_waits_for_a_snapshot_that_needs_the_room(
        self, segments: Segments, disk: FaultyDisk, caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level("INFO")
        append(segments)
        segments.synced()
        segments.advance(0)
        segments.held_back = True
        append(segments)
        segments.synced()
        assert segments.short
        assert disk.names(DIRECTORY) == ["journal-00000001", "journal-00000002"]
        segments.prepare()
        segments.short = True
        caplog.clear()
        segments.advance(0)
        append(segments)
        segments.short = True
        segments.synced()
        assert "waits for a snapshot" not in caplog.text      # it was said before

    def test_a_torn_frame_is_overwritten_for_good_before_anything_else(
        self, segments: Segments, disk: FaultyDisk,
    ) -> None:
        disk.full_after = 100
        with pytest.raises(NoRoom):
            append(segments)
        disk.full_after = None
        file = disk.names_now[str(segments.path(1))]
        disk.sync(disk.open(segments.path(1)))
        assert any(durable_bytes(file))
        segments.advance(0)
        assert not any(durable_bytes(file))

    def test_a_disk_that_fails_meanwhile_is_not_full(self, segments: Segments, disk: FaultyDisk) -> None:
        disk.full_after = 100
        with pytest.raises(NoRoom):
            append(segments)
        disk.fail["write"] = OSError(errno.EIO, "broken")
        with pytest.raises(OSError, match="broken") as error:
            append(segments)
        assert error.type is OSError


class TestRemoving:
    def test_the_oldest_goes_first_and_whether_there_are_more_is_said(
        self, segments: Segments, disk: FaultyDisk,
    ) -> None:
        for _ in range(3):
            append(segments)
            segments.advance(0)
        open_files = disk.open_files
        assert segments.delete_one_before(3)
        assert not segments.delete_one_before(3)
        assert not segments.delete_one_before(3)
        assert disk.open_files == open_files - 2
        assert segments.oldest == 3
        assert disk.names(DIRECTORY)[0] == "journal-00000003"


class TestReading:
    def test_what_was_read_ahead_is_not_read_again_and_no_more_is_known(
        self, segments: Segments, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        data = random.Random(1).randbytes(6000)
        append(segments, data)
        segments.advance(0)
        monkeypatch.setattr(limits, "READ_AHEAD_BYTES", 1000)
        reads: list[int] = []
        read = disk.read

        def noted(file: int, length: int, offset: int) -> bytes:
            reads.append(offset)
            return read(file, length, offset)

        monkeypatch.setattr(disk, "read", noted)
        for offset, length in ((100, 10), (100, 1000), (1090, 10), (1090, 20), (50, 10), (1050, 5), (40, 3000)):
            assert segments.read(1, offset, length) == data[offset:offset + length], (offset, length)
        assert reads == [100, 1090, 50, 1050, 40]

    def test_the_oldest_files_are_closed_when_there_are_too_many(
        self, segments: Segments, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(limits, "JOURNAL_FILES_MAX", 4)
        for _ in range(3):
            append(segments)
            segments.advance(0)
        assert disk.open_files == 4
        append(segments)
        segments.advance(0)             # opens one more, and segment 1 goes
        assert disk.open_files == 4
        assert segments.read(1, 0, 4) == FRAME[:4]      # and 2, as 1 is needed once more
        assert disk.open_files == 4
        append(segments)
        assert disk.open_files == 4
