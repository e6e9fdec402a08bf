"""The journal as pysyncobj and the driver use it."""

from __future__ import annotations

import errno
import logging
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal import Journal, JournalDamaged, StorageInUse
from sockpqd.cluster.journal.log_index import LogSlice
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import NoRoom
from tests.cluster.helpers.faulty_disk import Crash, FaultyDisk
from tests.cluster.helpers.feed_entries import all_for_feeds

DIRECTORY = Path("/journal")
NO_OP = (b"\x01", 1, 0)         # what pysyncobj puts into an empty log


def open_journal(
    disk: FaultyDisk, segment_bytes: int = 8192, window_bytes: int = 1 << 20, needed_from: int = 0,
) -> Journal:
    return Journal.open(
        DIRECTORY, disk, segment_bytes=segment_bytes, window_bytes=window_bytes, needed_from=needed_from)


def segments(disk: FaultyDisk) -> list[int]:
    return [int(name[8:]) for name in disk.names(DIRECTORY) if name.startswith("journal-")]


def fill(journal: Journal, first: int, last: int, length: int = 1000) -> None:
    for index in range(first, last + 1):
        journal.add(b"%d " % index + bytes([index % 255 + 1]) * length, index, 1)
        journal.sync()


def seconds(journal: Journal, count: int) -> None:
    """Let time pass without a write."""
    for _ in range(count):
        journal.onOneSecondTimer()


class TestNew:
    def test_a_new_journal_knows_nothing_and_may_not_vote(self) -> None:
        journal = open_journal(FaultyDisk())
        assert journal.empty
        assert not journal.voter
        assert len(journal) == 0
        assert (journal.getCurrentTerm(), journal.getVotedForNodeId(), journal.getRaftCommitIndex()) == (0, None, 1)
        assert (journal.first_index, journal.last_index, journal.last_term) == (1, 0, 0)

    def test_it_is_empty_with_the_first_entry_of_the_library_and_no_longer_with_a_vote(self) -> None:
        journal = open_journal(FaultyDisk())
        journal.add(*NO_OP)
        assert journal.empty
        journal.setCurrentTerm(1, "n2")
        assert not journal.empty

    def test_it_is_not_empty_with_an_entry_of_a_leader(self) -> None:
        journal = open_journal(FaultyDisk())
        journal.add(*NO_OP)
        journal.add(b"\x01", 2, 1)
        assert not journal.empty

    def test_nothing_of_it_is_there_before_sync(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        journal.add(*NO_OP)
        journal.setCurrentTerm(3, "n1")
        journal.set_voter()
        assert journal.unsynced
        journal.close()
        journal = open_journal(disk)
        assert journal.empty
        assert not journal.voter

    def test_two_processes_cannot_share_a_directory(self, tmp_path: Path) -> None:
        journal = Journal.open(tmp_path)
        with pytest.raises(StorageInUse, match=str(tmp_path)):
            Journal.open(tmp_path)
        journal.close()
        Journal.open(tmp_path).close()


class TestSync:
    def test_one_turn_is_one_write_and_one_sync(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        steps = disk.steps
        for index in range(1, 20):
            journal.add(b"command", index, 1)
        journal.setCurrentTerm(1, None)
        journal.sync()
        assert disk.steps == steps + 2

    def test_nothing_to_do_costs_nothing(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 2)
        steps = disk.steps
        journal.setRaftCommitIndex(2)
        assert not journal.unsynced
        journal.sync()
        assert disk.steps == steps

    def test_the_commit_index_is_durable_with_the_next_frame_or_after_a_second(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 3)
        journal.setRaftCommitIndex(2)
        journal.onOneSecondTimer()
        journal.sync()
        journal.setRaftCommitIndex(3)
        journal.sync()
        journal.close()
        journal = open_journal(disk)
        assert journal.getRaftCommitIndex() == 2
        steps = disk.steps
        journal.onOneSecondTimer()
        journal.sync()
        assert disk.steps == steps

    def test_the_commit_index_is_never_above_the_last_entry(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        journal.setRaftCommitIndex(50)
        fill(journal, 1, 3)
        assert journal.getRaftCommitIndex() == 3
        journal.deleteEntriesFrom(2)
        assert journal.getRaftCommitIndex() == 2
        journal.sync()
        journal.close()
        assert open_journal(disk).getRaftCommitIndex() == 2

    @pytest.mark.parametrize("operation", ["write", "sync"])
    def test_after_a_failed_write_or_sync_nothing_more_is_accepted(self, operation: str) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 3)
        journal.add(b"lost", 4, 1)
        disk.fail[operation] = OSError(errno.EIO, "Input/output error")
        with pytest.raises(OSError, match="Input/output error"):
            journal.sync()
        disk.fail.clear()
        steps = disk.steps
        for change in (
            journal.sync, journal.clear, journal.set_voter, lambda: journal.add(b"more", 5, 1),
            lambda: journal.setCurrentTerm(9, None), lambda: journal.deleteEntriesFrom(1),
        ):
            with pytest.raises(OSError, match="Input/output error"):
                change()
        assert disk.steps == steps

    def test_an_entry_out_of_order_is_a_mistake(self) -> None:
        journal = open_journal(FaultyDisk())
        journal.add(*NO_OP)
        with pytest.raises(ValueError, match="entry 3 does not follow entry 1"):
            journal.add(b"", 3, 1)


class TestSegments:
    def test_the_next_segment_exists_before_it_is_needed(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        assert segments(disk) == [1, 2]
        fill(journal, 1, 20)
        assert segments(disk) == [1, 2, 3, 4, 5]
        assert {len(disk.file(DIRECTORY / f"journal-{number:08d}")) for number in segments(disk)} == {8192}

    def test_entries_of_any_size_fit(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        lengths = [1, 7000, 8000, 100_000, 3, 50_000, 8192, 9000, 0, 400_000, 17 << 20, 5]
        for index, length in enumerate(lengths, 1):
            journal.add(random.Random(index).randbytes(length), index, index)
            journal.sync()
        entries = list(journal[:])
        assert [len(entry[0]) for entry in entries] == lengths
        journal.close()
        assert list(open_journal(disk)[:]) == entries

    def test_several_large_entries_in_one_turn_are_one_frame(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        for index in range(1, 4):
            journal.add(random.Random(index).randbytes(20_000), index, 1)
        journal.sync()
        entries = list(journal[:])
        journal.close()
        assert list(open_journal(disk)[:]) == entries

    def test_segments_go_when_no_kept_entry_is_in_them(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 30)
        assert segments(disk) == [1, 2, 3, 4, 5, 6, 7]
        journal.deleteEntriesTo(15)
        journal.sync()
        assert journal.first_index == 1, "the older of two snapshots still needs them"
        journal.deleteEntriesTo(20)
        assert journal.first_index == 16
        assert segments(disk) == [1, 2, 3, 4, 5, 6, 7], "not before the removal is durable"
        journal.sync()
        assert segments(disk) == [2, 3, 4, 5, 6, 7, 8], "one at a time, to keep the node's turns short"
        fill(journal, 31, 31)
        assert segments(disk) == [3, 4, 5, 6, 7, 8]
        seconds(journal, 5)
        assert segments(disk) == [4, 5, 6, 7, 8]
        entries = list(journal[:])
        journal.close()
        journal = open_journal(disk)
        assert list(journal[:]) == entries
        assert journal.first_index == 16

    def test_segments_are_kept_for_feeds_and_not_shown_to_the_library(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        journal.feed_bytes = 8192
        fill(journal, 1, 30)
        for position in (15, 20):
            journal.deleteEntriesTo(position)
            journal.sync()
        seconds(journal, 9)
        assert journal.first_index == 16
        assert segments(disk) == [3, 4, 5, 6, 7, 8], "the one before that of entry 16 is kept"
        oldest = journal.oldest_index
        assert 1 < oldest < 16
        journal.close()
        journal = open_journal(disk)
        assert journal.oldest_index == oldest
        found = all_for_feeds(journal)
        assert [entry[1] for entry in found] == list(range(oldest, 31))
        assert found == [journal.entry(index) for index in range(oldest, 31)]

    def test_what_is_kept_for_feeds_goes_when_room_is_short(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        journal.feed_bytes = 1 << 20
        fill(journal, 1, 30)
        for position in (15, 20):
            journal.deleteEntriesTo(position)
            journal.sync()
        assert journal.oldest_index == 1
        assert journal.release_feeds(12)
        journal.sync()
        assert not journal.release_feeds(12)
        assert journal.oldest_index == 12, "another snapshot still needs it"
        assert journal.release_feeds(99)
        journal.sync()
        assert (journal.oldest_index, journal.first_index) == (16, 16), "never what this node needs itself"
        seconds(journal, 9)
        assert segments(disk) == [4, 5, 6, 7, 8]

    @pytest.mark.parametrize("seed", range(20))
    def test_what_is_kept_for_feeds_is_right_and_changes_nothing_else(self, seed: int) -> None:
        rng = random.Random(seed)
        disks = FaultyDisk(), FaultyDisk()
        plain, feeding = map(open_journal, disks)
        written: dict[int, bytes] = {}
        committed = 1
        for _ in range(150):
            feeding.feed_bytes = 3 * 8192
            step, last = rng.random(), plain.last_index
            if step < 0.7 or last < 3:
                written[last + 1] = command = rng.randbytes(rng.choice((10, 700, 3000)))
                for journal in (plain, feeding):
                    journal.add(command, last + 1, 1)
            elif step < 0.75:
                if (cut := rng.randrange(max(committed, plain.first_index), last + 1) + 1) <= last:
                    for journal in (plain, feeding):
                        journal.deleteEntriesFrom(cut - journal.first_index)
            elif step < 0.8:
                committed = rng.randrange(committed, last + 1)
                for journal in (plain, feeding):
                    journal.setRaftCommitIndex(committed)
            elif step < 0.85 and committed < last and committed > plain._state.covered:
                for journal in (plain, feeding):
                    journal.sync()
                    journal.deleteEntriesTo(committed - journal.first_index)
            elif step < 0.87:
                feeding.release_feeds(plain.first_index)
            elif step < 0.9:
                for journal in (plain, feeding):
                    journal.sync()
                    journal.close()
                plain = open_journal(disks[0])
                feeding = open_journal(disks[1], needed_from=rng.choice((0, plain.first_index)))
                feeding.align(plain.first_index - feeding.first_index)
            for journal in (plain, feeding):
                journal.sync()
                seconds(journal, 1)
            assert list(feeding[:]) == list(plain[:])
            assert feeding.oldest_index <= plain.oldest_index
            for index, (command, at, _) in enumerate(all_for_feeds(feeding, 5000), feeding.oldest_index):
                assert (at, command) == (index, written[index])

    def test_a_stretch_that_reads_back_changed_is_refused(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 3)
        stretch = journal.stretch(1, 3, 1 << 20)
        wrong = stretch._replace(offset=stretch.offset + 1)
        file = journal.segments.open(stretch.segment)
        with pytest.raises(JournalDamaged, match="entry 1 has changed"):
            journal.read_stretch(file, wrong)

    def test_a_new_process_goes_on_with_the_deletion_of_segments(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 30)
        for position in (15, 20):
            journal.deleteEntriesTo(position)
        journal.sync()
        entries = list(journal[:])
        journal.close()
        assert segments(disk) == [2, 3, 4, 5, 6, 7]
        journal = open_journal(disk)
        assert (list(journal[:]), journal.first_index) == (entries, 16)
        seconds(journal, 5)
        assert segments(disk) == [4, 5, 6, 7]
        assert list(journal[:]) == entries

    def test_no_segment_goes_while_the_removal_of_its_entries_waits_for_sync(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 30)
        journal.deleteEntriesTo(15)
        journal.sync()
        journal.deleteEntriesTo(20)
        seconds(journal, 10)
        assert segments(disk) == [1, 2, 3, 4, 5, 6, 7]

    def test_after_clear_only_the_segment_in_use_stays(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 30)
        journal.setCurrentTerm(4, "n3")
        journal.set_voter()
        journal.clear()
        journal.add(b"prev", 999, 3)
        journal.add(b"last", 1000, 4)
        journal.sync()
        seconds(journal, 9)
        assert segments(disk) == [6, 7]
        journal.close()
        journal = open_journal(disk)
        assert list(journal[:]) == [(b"prev", 999, 3), (b"last", 1000, 4)]
        assert (journal.getCurrentTerm(), journal.getVotedForNodeId(), journal.voter) == (4, "n3", True)

    def test_a_removed_and_rewritten_tail_over_segments_survives_removal_of_its_first_part(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 20)
        journal.deleteEntriesFrom(9)
        for index in range(10, 21):
            journal.add(b"other" * 200, index, 2)
            journal.sync()
        for position in (11, 15):
            journal.deleteEntriesTo(position)
            journal.sync()
        seconds(journal, 9)
        assert journal.first_index == 12
        assert segments(disk)[0] > 2
        entries = list(journal[:])
        journal.close()
        assert list(open_journal(disk)[:]) == entries

    def test_the_log_is_never_emptied_by_a_snapshot(self) -> None:
        journal = open_journal(FaultyDisk())
        fill(journal, 1, 3)
        with pytest.raises(ValueError, match="the last one is 3"):
            journal.deleteEntriesTo(3)

    @pytest.mark.parametrize("how", ["compact", "clear", "truncate", "grow"])
    def test_power_can_fail_before_any_step_of_the_disk(self, how: str) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 30)
        journal.deleteEntriesTo(20)
        journal.sync()
        before = list(journal[:])
        journal.close()

        def change(disk: FaultyDisk) -> list[tuple[bytes, int, int]]:
            journal = open_journal(disk)
            if how == "compact":
                journal.deleteEntriesTo(25)
            elif how == "clear":
                journal.clear()
                journal.add(b"prev", 99, 3)
            elif how == "truncate":
                journal.deleteEntriesFrom(5)
                journal.add(b"other", 6, 2)
            else:
                journal.add(random.Random(1).randbytes(20_000), 31, 2)
            behind = list(journal[:])
            journal.sync()
            journal.close()
            return behind

        behind = change(disk.clone())
        outcomes = set()
        for step in range(100):
            for seed in range(8):
                stopped = disk.clone()
                stopped.crash_at = stopped.steps + step
                done = False
                try:
                    change(stopped)
                    done = True
                except Crash:
                    pass
                stopped.crash(random.Random(seed))
                journal = open_journal(stopped)
                entries = list(journal[:])
                assert entries == behind if done else entries in (before, behind)
                outcomes.add(entries == behind)
                journal.add(b"next", journal.last_index + 1, 9)
                journal.sync()
                journal.close()
                assert list(open_journal(stopped)[:]) == [*entries, (b"next", entries[-1][1] + 1, 9)]
            if done:
                assert outcomes == {True, False}
                return
        pytest.fail("the change never came to its end")


class TestFullDisk:
    def test_a_full_disk_is_seen_while_there_is_room(self, caplog: pytest.LogCaptureFixture) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 4)
        disk.free_bytes = 0
        with caplog.at_level(logging.WARNING):
            fill(journal, 5, 8)
        assert "no room for the next segment of the journal" in caplog.text
        assert journal.segments.room_bytes < 8192
        assert journal.segments.scarce
        assert len(journal) == 8

    def test_room_comes_back_with_space(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 5)
        disk.free_bytes = 0
        fill(journal, 6, 8)
        assert journal.segments.room_bytes < 8192
        disk.free_bytes = 100_000
        journal.onOneSecondTimer()
        assert journal.segments.room_bytes > 8192
        fill(journal, 9, 20)

    def test_no_room_at_all_is_an_error_that_can_be_tried_again(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        disk.free_bytes = 0
        with pytest.raises(NoRoom, match="No space left"):
            fill(journal, 1, 100)
        assert journal.segments.exhausted
        index = journal.last_index
        assert index > 5
        assert journal.unsynced
        disk.free_bytes = 100_000
        journal.sync()
        assert not journal.unsynced
        journal.close()
        assert open_journal(disk).last_index == index

    @pytest.mark.parametrize(("operation", "number"), [
        ("create", errno.EDQUOT), ("create", errno.EMFILE), ("create", errno.ENFILE), ("allocate", errno.EDQUOT),
        ("sync_directory", errno.EMFILE), ("sync_directory", errno.ENFILE),
    ])
    def test_so_is_a_quota_or_a_descriptor_that_is_missing(self, operation: str, number: int) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        disk.fail[operation] = OSError(number, "not now")
        with pytest.raises(NoRoom, match="not now"):
            fill(journal, 1, 100)
        index = journal.last_index
        disk.fail.clear()
        journal.sync()
        fill(journal, index + 1, index + 50)
        journal.close()
        assert open_journal(disk).last_index == index + 50

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
    @pytest.mark.parametrize("operation", ["sync", "sync_directory"])
    def test_space_that_is_missing_at_a_sync_is_a_failure_of_the_disk(self, operation: str, number: int) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        disk.fail[operation] = OSError(number, os.strerror(number))
        with pytest.raises(OSError, match=os.strerror(number)):
            fill(journal, 1, 100)
        disk.fail.clear()
        durable = journal.durable_index
        disk.crash(random.Random(number))
        assert open_journal(disk).last_index in (durable, durable + 1)

    def test_a_frame_that_was_written_in_part_is_cut_off_before_another_is_written(self) -> None:
        for part in range(0, 3000, 300):
            disk = FaultyDisk()
            journal = open_journal(disk)
            fill(journal, 1, 3)
            disk.full_after = part
            with pytest.raises(NoRoom):
                fill(journal, 4, 4, 3000)
            if part % 600:                          # room comes back, or the power is lost before it does
                with pytest.raises(NoRoom):         # not yet, not even for zeros
                    journal.sync()
                disk.full_after = None
                fill(journal, 5, 5)
                disk.crash(random.Random(part))
                journal = open_journal(disk)
                assert journal.last_index == 5
            else:
                disk.full_after = None
                disk.crash(random.Random(part))
                journal = open_journal(disk)
                assert journal.last_index == 3
                fill(journal, 4, 5)
            assert [entry[1] for entry in journal[:]] == [1, 2, 3, 4, 5]

    def test_also_when_the_next_frame_goes_to_another_segment(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 2)
        disk.full_after = 1000
        with pytest.raises(NoRoom):
            fill(journal, 3, 3, 2000)
        assert journal.segments.active == 1
        disk.full_after = None
        fill(journal, 4, 4, 6000)
        assert journal.segments.active == 2
        fill(journal, 5, 5)
        assert open_journal(disk.clone()).last_index == 5

    def test_also_when_it_was_the_first_of_a_segment(self) -> None:
        for rest in (100, 7000):                # of what follows; with 7,000 bytes it is too large for the segment
            disk = FaultyDisk()
            journal = open_journal(disk)
            fill(journal, 1, 3)
            disk.full_after = 1000
            with pytest.raises(NoRoom):
                fill(journal, 4, 4, 6000)
            assert journal.segments.active == 1
            disk.full_after = None
            fill(journal, 5, 5, rest)
            assert open_journal(disk.clone()).last_index == 5

    def test_what_is_left_is_kept_for_raft_itself(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        disk.free_bytes = 0
        index = 1
        while journal.has_room_for(entries := [(bytes(500), index, 1)]):
            journal.add(*entries[0])
            journal.sync()
            index += 1
        assert journal.segments.short
        assert index > 10
        for term in range(1, 4):
            journal.setCurrentTerm(term, "n1")
            journal.sync()
        disk.free_bytes = 100_000
        assert not journal.has_room_for(entries)           # nobody asks the disk for every message
        journal.onOneSecondTimer()
        assert journal.has_room_for(entries)

    def test_entries_larger_than_a_segment_are_taken_where_there_is_space(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        entries = [(bytes(20_000), 1, 1)]
        disk.free_bytes = 10_000
        assert not journal.has_room_for(entries)
        disk.free_bytes = 100_000
        journal.onOneSecondTimer()
        assert journal.has_room_for(entries)
        disk.free_bytes = 0
        journal.add(*entries[0])
        journal.sync()
        assert open_journal(disk.clone()).last_index == 1
        assert all(len(disk.file(path)) % 512 == 0 for path in disk.paths(DIRECTORY))   # a frame is whole sectors

    def test_what_waits_for_the_sync_counts(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 1)
        disk.free_bytes = 0
        index = 2
        while journal.has_room_for(entries := [(bytes(500), index, 1)]):
            journal.add(*entries[0])
            index += 1
            assert index < 100
        journal.sync()
        assert open_journal(disk.clone()).last_index == index - 1

    def test_another_error_at_the_next_segment_is_passed_on(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        disk.fail["allocate"] = OSError(errno.EIO, "Input/output error")
        with pytest.raises(OSError, match="Input/output error"):
            fill(journal, 1, 20)

    def test_a_disk_full_at_the_first_start_leaves_nothing_behind(self) -> None:
        disk = FaultyDisk()
        disk.free_bytes = 100
        with pytest.raises(OSError, match="No space left"):
            open_journal(disk)
        assert segments(disk) == []
        disk.free_bytes = None
        assert open_journal(disk).empty


class TestMemory:
    def test_old_commands_are_read_back_from_disk(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk, window_bytes=10_000)
        entries = [(random.Random(index).randbytes(500), index, index // 10) for index in range(1, 200)]
        for entry in entries:
            journal.add(*entry)
            journal.sync()
            assert journal[-1] == entry
            assert journal[0] == entries[0]
        assert len(journal._cache.entries) < 20
        assert list(journal[:]) == entries
        assert [journal.entry(entry[1]) for entry in reversed(entries)] == entries[::-1]
        assert list(journal[50:60]) == entries[50:60]

    def test_the_last_entry_stays_however_large_it_is(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk, window_bytes=1000)
        fill(journal, 1, 5, 3000)
        disk.read = lambda file, length, offset: pytest.fail("read")  # type: ignore[method-assign]
        assert journal[-1][1] == 5
        assert journal[4:][0][1] == 5

    def test_what_is_not_on_disk_yet_is_never_forgotten(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk, window_bytes=1000)
        entries = [(bytes([index]) * 900, index, 1) for index in range(1, 50)]
        for entry in entries:
            journal.add(*entry)
        assert list(journal[:]) == entries
        journal.sync()
        assert list(journal[:]) == entries

    def test_read_ahead_never_shows_space_that_was_not_written_yet(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk, segment_bytes=1 << 16, window_bytes=1000)
        for index in range(1, 60):
            journal.add(random.Random(index).randbytes(400), index, 1)
            journal.sync()
            for old in range(max(1, index - 8), index + 1):
                assert journal.entry(old)[0] == random.Random(old).randbytes(400)

    def test_a_truncated_log_ends_with_an_entry_from_disk(self) -> None:
        journal = open_journal(FaultyDisk(), window_bytes=1000)
        fill(journal, 1, 20)
        entry = journal.entry(5)
        journal.deleteEntriesFrom(5)
        assert (journal[-1], journal.last_index, journal.last_term) == (entry, 5, 1)

    def test_term_at_never_reads_the_disk(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk, window_bytes=1000)
        fill(journal, 1, 20)
        disk.read = lambda file, length, offset: pytest.fail("read")  # type: ignore[method-assign]
        assert [journal.term_at(index) for index in (0, 1, 20, 21)] == [None, 1, 1, None]

    def test_a_long_slice_reads_only_what_is_used(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk, segment_bytes=1 << 20, window_bytes=1000)
        fill(journal, 1, 400)
        reads: list[int] = []
        original = disk.read
        disk.read = lambda file, length, offset: reads.append(length) or original(file, length, offset)  # type: ignore
        view = journal[10:]
        assert isinstance(view, LogSlice)
        assert (len(view), bool(view), reads) == (390, True, [])
        assert view[0][1] == 11
        assert len(reads) == 1

    def test_the_part_of_a_slice_that_was_walked_over_is_not_read_again(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk, segment_bytes=1 << 20, window_bytes=1000)
        fill(journal, 1, 400)
        view = journal[10:]
        for count, _ in enumerate(view):
            if count == 50:
                break
        disk.read = lambda file, length, offset: pytest.fail("read")  # type: ignore[method-assign]
        part = view[:51]
        assert isinstance(part, list)
        assert [entry[1] for entry in part] == list(range(11, 62))


class TestAlign:
    def test_the_log_begins_later_and_nothing_is_lost_on_disk(self) -> None:
        disk = FaultyDisk()
        journal = open_journal(disk)
        fill(journal, 1, 10)
        entries = list(journal[:])
        journal.align(6)
        assert list(journal[:]) == entries[6:]
        assert (journal[0], journal.first_index, len(journal)) == (entries[6], 7, 4)
        assert journal.term_at(6) is None
        with pytest.raises(IndexError):
            journal.entry(6)
        assert not journal.unsynced
        journal.close()
        assert list(open_journal(disk)[:]) == entries

    def test_positions_count_from_there(self) -> None:
        journal = open_journal(FaultyDisk())
        fill(journal, 1, 10)
        journal.align(6)
        journal.deleteEntriesFrom(2)
        assert journal.last_index == 8
        journal.deleteEntriesTo(1)
        assert journal.first_index == 7


def test_a_segment_of_another_history_of_the_journal_is_damage() -> None:
    disk = FaultyDisk()
    journal = open_journal(disk)
    journal.setCurrentTerm(1, None)
    journal.close()
    elsewhere = disk.clone()
    for copy, vote in ((disk, "n1"), (elsewhere, "n2")):
        journal = open_journal(copy)
        journal.setCurrentTerm(1, vote)
        fill(journal, 1, 20)
        journal.close()
    third = DIRECTORY / "journal-00000003"
    disk.file(third)[:] = elsewhere.file(third)
    with pytest.raises(JournalDamaged, match="does not continue"):
        open_journal(disk)


def test_the_acknowledgements_of_as_many_nodes_as_there_can_be_are_kept_the_highest_ones() -> None:
    journal = open_journal(FaultyDisk())
    names = [f"n{number}" for number in range(1, 17)]
    for index, name in enumerate(names, start=10):
        journal.acknowledge(name, index)
    journal.acknowledge("n2", 100)              # known already: nobody is forgotten for it
    assert [journal.acknowledged(name) for name in names] == [10, 100, *range(12, 26)]
    journal.acknowledge("n17", 50)
    assert [journal.acknowledged(name) for name in ("n1", "n2", "n17")] == [0, 100, 50]


def test_a_snapshot_is_worth_it_for_a_quarter_of_a_segment_that_is_not_the_only_one() -> None:
    journal = open_journal(FaultyDisk())
    for index in range(1, 41):
        journal.add(b"x", index, 1)
        journal.sync()
    assert journal.segments.several
    assert not journal.can_shrink
    journal.add(bytes(8192 // 4 - 40 - 1), 41, 1)
    assert not journal.can_shrink
    journal.add(b"x", 42, 1)
    assert journal.can_shrink


def test_a_snapshot_is_worth_it_when_entries_of_the_last_one_keep_a_segment() -> None:
    journal = open_journal(FaultyDisk())
    fill(journal, 1, 8)
    journal.deleteEntriesTo(6)
    journal.sync()
    assert journal.bytes_total < 8192 // 4
    assert journal.can_shrink


def test_a_new_commit_index_alone_is_written_when_it_may_be() -> None:
    disk = FaultyDisk()
    journal = open_journal(disk)
    fill(journal, 1, 3)
    journal.setRaftCommitIndex(2)
    journal.keep_commit()
    steps = disk.steps
    journal.sync(alone=False)
    assert disk.steps == steps
    journal.sync()
    assert disk.steps > steps
    journal.close()
    assert open_journal(disk).getRaftCommitIndex() == 2


def test_all_segments_in_use_are_told_with_the_ends_of_what_is_written() -> None:
    disk = FaultyDisk()
    journal = open_journal(disk)
    fill(journal, 1, 12)
    written = journal.segments.written()
    assert [segment.number for segment in written] == [1, 2, 3]
    assert written[2][1:] == (journal.segments.position, journal.segments.sequence)
    journal.close()
    assert open_journal(disk).segments.written() == written


@pytest.mark.parametrize(("share", "name"), [
    (limits.JOURNAL_SCARCE, "scarce"), (limits.JOURNAL_EXHAUSTED, "exhausted"),
])
def test_room_is_short_below_a_share_of_a_segment(share: float, name: str) -> None:
    segments = open_journal(FaultyDisk()).segments
    segments.position += segments.room_bytes - int(8192 * share)
    assert segments.room_bytes == 8192 * share
    assert not getattr(segments, name)
    segments.position += 1
    assert getattr(segments, name)


def test_a_journal_with_entries_is_not_empty() -> None:
    journal = open_journal(FaultyDisk())
    journal.add(b"x", 1, 0)
    journal.add(b"y", 2, 0)
    assert not journal.empty


def test_a_sync_in_progress_ends_before_the_files_are_closed() -> None:
    disk = FaultyDisk()
    journal = open_journal(disk)
    disk.slow = True
    journal.add(bytes(5000), 1, 1)
    assert not journal.sync_in_background(from_bytes=1)
    assert journal.syncing is not None
    open_when_it_ended: list[int] = []
    ends = journal.syncing.result
    journal.syncing.result = lambda: (open_when_it_ended.append(disk.open_files), ends())[1]  # type: ignore
    journal.close()
    assert open_when_it_ended[0] > 0
    assert disk.open_files == 0


def test_the_only_segment_is_not_worth_a_snapshot() -> None:
    journal = open_journal(FaultyDisk())
    fill(journal, 1, 4)
    assert journal.bytes_total > 8192 // 4
    assert not journal.can_shrink


def test_nothing_is_removed_behind_the_end() -> None:
    journal = open_journal(FaultyDisk())
    fill(journal, 1, 4)
    for position in (4, 7):
        journal.deleteEntriesFrom(position)
        assert (journal.last_index, len(journal), journal.durable_index, journal.bytes_total) == (4, 4, 4, 4 * 1002)
        assert not journal.unsynced


def test_damage_closes_what_was_opened() -> None:
    disk = FaultyDisk()
    journal = open_journal(disk)
    fill(journal, 1, 3)
    journal.close()
    disk.file(DIRECTORY / "journal-00000001")[100] ^= 1
    with pytest.raises(JournalDamaged):
        open_journal(disk)
    assert disk.open_files == 0


def test_real_files(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, Disk(), segment_bytes=1 << 16, window_bytes=10_000)
    entries = [(random.Random(index).randbytes(index * 7), index, 1) for index in range(1, 400)]
    for entry in entries:
        journal.add(*entry)
        if entry[1] % 3 == 0:
            journal.sync()
    journal.sync()
    assert list(journal[:]) == entries
    journal.close()
    journal = Journal.open(tmp_path, Disk(), segment_bytes=1 << 16, window_bytes=10_000)
    assert list(journal[:]) == entries
    for position in (200, 300):
        journal.deleteEntriesTo(position)
        journal.sync()
    assert list(journal[:]) == entries[200:]
    journal.close()
    assert list(Journal.open(tmp_path, Disk(), segment_bytes=1 << 16)[:]) == entries[200:]


class ForgetfulDisk(FaultyDisk):
    """Records the names that it was to forget."""

    def __init__(self) -> None:
        super().__init__()
        self.forgotten: list[tuple[bytes, int]] = []
        self.synced = False

    def write(self, file: int, pieces: Sequence[bytes], offset: int) -> None:
        self.synced = False
        super().write(file, pieces, offset)

    def sync(self, file: int) -> None:
        super().sync(file)
        self.synced = True

    def forget(self, file: int, length: int, offset: int) -> None:
        assert self.synced
        self.forgotten.append((self.read(file, length, offset), offset))


def test_large_frames_are_not_kept_in_the_memory_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FORGOTTEN_BYTES", 4096)
    disk = ForgetfulDisk()
    journal = open_journal(disk, segment_bytes=1 << 16)
    for index in range(1, 10):
        journal.add(b"\0small", index, 1)
        journal.sync()
    assert disk.forgotten == []
    for index in range(10, 40):
        journal.add(bytes([index]) * 5000, index, 1)
        journal.sync()
        frame, _ = disk.forgotten[-1]
        assert bytes([index]) * 5000 in frame
        assert frame.startswith(journal_format.MAGIC)
    assert len(disk.forgotten) == 30
    journal.close()
