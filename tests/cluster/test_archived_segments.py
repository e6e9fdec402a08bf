"""Segments that are kept for feeds only: what a start reads of them, and what a feed finds in them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.damage.scrubber import Finding, examine, files_to_read
from sockpqd.cluster.journal.journal import Journal, JournalDamaged
from sockpqd.cluster.journal.log_index import Entry
from tests.cluster.helpers.faulty_disk import FaultyDisk
from tests.cluster.helpers.feed_entries import all_for_feeds, feed_from

DIRECTORY = Path("/journal")
SEGMENT_BYTES = 8192
LAST = 40
NEEDED = 31                     # the first entry that the older snapshot needs


class CountingDisk(FaultyDisk):
    """Counts the segments that are read as a whole."""

    whole = 0

    def read(self, file: int, length: int, offset: int) -> bytes:
        data = super().read(file, length, offset)
        self.whole += len(data) == SEGMENT_BYTES
        return data


def opened(disk: FaultyDisk, needed_from: int = NEEDED) -> Journal:
    journal = Journal.open(DIRECTORY, disk, segment_bytes=SEGMENT_BYTES, needed_from=needed_from)
    journal.feed_bytes = 1 << 20
    return journal


def add(journal: Journal, first: int, last: int, text: bytes = b"first", term: int = 1) -> None:
    for index in range(first, last + 1):
        journal.add(text + b" %d " % index + bytes([index]) * 1000, index, term)
        journal.sync()


@pytest.fixture
def disk() -> CountingDisk:
    """A journal of which all is kept for feeds, and entries from NEEDED on are needed."""
    disk = CountingDisk()
    journal = opened(disk)
    for last in range(1, LAST + 1):
        add(journal, last, last)
        journal.setRaftCommitIndex(last)
    for position in (NEEDED - 1, NEEDED + 4):
        journal.deleteEntriesTo(position)
        journal.sync()
    assert (journal.oldest_index, journal.first_index) == (1, NEEDED)
    journal.close()
    return disk


def entries(disk: FaultyDisk) -> list[Entry]:
    """All entries, as a journal reads them that reads everything at the start."""
    journal = opened(disk, 0)
    found = list(journal[:])
    journal.close()
    return found


def segment(journal: Journal, number: int) -> bytearray:
    disk = journal._disk
    assert isinstance(disk, FaultyDisk)
    return disk.file(journal.segments.path(number))


def findings(journal: Journal) -> list[Finding]:
    found = (examine(journal._disk, file) for file in files_to_read(journal.segments, []))
    return [finding for finding in found if finding is not None]


def test_a_start_reads_what_the_node_needs_and_of_the_rest_the_heads(disk: CountingDisk) -> None:
    all_entries = entries(disk)
    read = {}
    for needed in (0, NEEDED):
        disk.whole = 0
        journal = opened(disk, needed)
        read[needed] = disk.whole
        assert journal.oldest_index == 1
        assert list(journal[:]) == all_entries[journal.first_index - 1:]
        assert all_for_feeds(journal) == all_entries
        journal.close()
    assert (len(all_entries), journal.first_index <= NEEDED) == (LAST, True)
    begin = next(number for number, head in journal.segments.heads.items() if head.state.next == journal.first_index)
    assert read[0] - read[NEEDED] == begin - 1 > 2


def test_the_running_journal_leaves_them_on_the_disk_as_well(disk: CountingDisk) -> None:
    all_entries = entries(disk)
    journal = opened(disk, 0)
    assert journal.unindexed(1) is None
    journal.align(NEEDED - journal.first_index)
    journal.deleteEntriesTo(LAST - 2 - journal.first_index)
    journal.sync()
    assert journal.unindexed(1) is not None
    assert journal.unindexed(journal.first_index) is None
    assert all_for_feeds(journal) == all_entries


def test_a_segment_is_indexed_once_for_all_feeds_that_read_it(disk: CountingDisk) -> None:
    journal = opened(disk)
    feed_from(journal, 1, 10)
    disk.whole = 0
    assert [entry[1] for entry in feed_from(journal, 2, 10)] == [2]
    assert disk.whole == 0


def test_no_more_of_a_file_is_read_than_the_segment_had(disk: CountingDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, lengths = opened(disk), []
    read = disk.read

    def noted(file: int, length: int, offset: int) -> bytes:
        lengths.append(length)
        return read(file, length, offset)

    monkeypatch.setattr(disk, "read", noted)
    segment(journal, 1).extend(bytes(SEGMENT_BYTES))
    assert feed_from(journal, 1)[0][1] == 1
    assert max(lengths) == SEGMENT_BYTES


def test_only_some_indexes_are_kept(disk: CountingDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FEED_INDEXES", 2)
    journal = opened(disk)
    for index in (1, 12, 1, 22):
        feed_from(journal, index)
    assert [journal.unindexed(index) is None for index in (1, 12, 22)] == [True, False, True]


def test_a_reader_of_segments_rests_now_and_then(disk: CountingDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FEED_INDEX_FRAMES", 2)
    journal = opened(disk)
    span = journal.unindexed(1)
    assert span is not None
    rests: list[None] = []
    with journal.to_index(span) as make:
        make(lambda: rests.append(None))
    assert len(rests) >= 3


@pytest.mark.parametrize("at", [100, 700, 5000])
def test_damage_is_found_when_it_is_read(disk: CountingDisk, at: int) -> None:
    journal = opened(disk)
    segment(journal, 2)[at] ^= 4
    begins = journal.segments.heads[2].state.next
    with pytest.raises(JournalDamaged, match=r"journal-00000002 is damaged .* Only copies in other regions need"):
        feed_from(journal, begins)
    assert [finding.segment for finding in findings(journal)] == [2]
    assert len(feed_from(journal, journal.segments.heads[4].state.next)) > 1


def test_so_is_damage_after_it_was_indexed(disk: CountingDisk) -> None:
    journal = opened(disk)
    feed_from(journal, 1)
    for index, advice in ((2, "Only copies in other regions need"), (LAST, "This node must not serve or vote")):
        data = segment(journal, 1 if index == 2 else journal._table.location(index).segment)
        data[data.index(b"first %d " % index)] ^= 4
        with pytest.raises(JournalDamaged, match=rf"entry {index} has changed since it was written\. {advice}"):
            feed_from(journal, index)


@pytest.mark.parametrize("frames", [0, 1, 3])
def test_a_segment_that_lost_its_end_is_damage(disk: CountingDisk, frames: int) -> None:
    journal = opened(disk)
    data = segment(journal, 2)
    begin = 0
    for _ in range(frames):
        begin += int.from_bytes(data[begin + 24:begin + 32], "little")      # the length in the header of a frame
    data[begin:] = bytes(len(data) - begin)
    with pytest.raises(JournalDamaged, match=r"journal-00000002 is damaged at offset .*: frame .* missing"):
        feed_from(journal, 1)
    assert [finding.segment for finding in findings(journal)] == [2]


@pytest.mark.parametrize("needed", [0, NEEDED])
def test_a_segment_of_another_time_is_damage(disk: CountingDisk, needed: int) -> None:
    journal = opened(disk, needed)
    segment(journal, 2)[:] = segment(journal, 3)
    if needed:
        with pytest.raises(JournalDamaged):
            feed_from(journal, journal.segments.heads[2].state.next)
    assert [finding.segment for finding in findings(journal)] == [2]


def test_so_is_one_that_a_copy_of_the_journal_has_written() -> None:
    disk = FaultyDisk()
    journal = opened(disk)
    add(journal, 1, 10)
    journal.setRaftCommitIndex(10)
    journal.keep_commit()
    journal.sync()
    journal.close()
    other = deepcopy(disk)
    for one, term in ((disk, 2), (other, 3)):
        journal = opened(one)
        journal.setCurrentTerm(term, None)
        add(journal, 11, LAST, term=term)
        journal.setRaftCommitIndex(LAST)
        add(journal, LAST + 1, LAST + 20, term=term)
        journal.close()
    path = DIRECTORY / "journal-00000003"
    disk.file(path)[:] = other.file(path)
    journal = opened(disk, LAST)
    for index, what in ((8, "the segment after it does not continue it"), (12, "it does not continue the segment")):
        with pytest.raises(JournalDamaged, match=what):
            feed_from(journal, index)


def test_nothing_is_wrong_with_segments_of_which_a_start_read_the_head(disk: CountingDisk) -> None:
    assert findings(opened(disk)) == []


def test_a_damaged_head_costs_feeds_what_is_before_it(
    disk: CountingDisk, caplog: pytest.LogCaptureFixture,
) -> None:
    all_entries = entries(disk)
    journal = opened(disk)
    segment(journal, 2)[70] ^= 4
    journal.close()
    with pytest.raises(JournalDamaged, match="journal-00000002"):
        opened(disk, 0)
    journal = opened(disk)
    first = journal.oldest_index
    assert first == journal.segments.heads[3].state.next > 1
    assert f"entries 1 to {first - 1} of the journal, which were kept for copies in other" in caplog.text
    assert all_for_feeds(journal) == all_entries[first - 1:]
    journal.sync()
    for _ in range(4):
        journal.onOneSecondTimer()
    assert journal.segments.oldest == 3
    journal.close()
    caplog.clear()
    for needed in (NEEDED, 0):
        journal = opened(disk, needed)
        assert journal.oldest_index == first
        journal.close()
    assert not caplog.records


def test_older_segments_may_be_gone(disk: CountingDisk, caplog: pytest.LogCaptureFixture) -> None:
    all_entries = entries(disk)
    for number in (1, 2):
        disk.unlink(DIRECTORY / f"journal-{number:08d}")
    journal = opened(disk)
    assert all_for_feeds(journal) == all_entries[journal.oldest_index - 1:]
    assert journal.oldest_index == journal.segments.heads[3].state.next
    assert f"entries 1 to {journal.oldest_index - 1} of the journal" in caplog.text


def test_those_that_the_node_needs_may_not(disk: CountingDisk) -> None:
    journal = opened(disk)
    needed = max(number for number, head in journal.segments.heads.items() if head.state.next <= NEEDED)
    journal.close()
    for number in range(1, needed + 1):
        disk.unlink(DIRECTORY / f"journal-{number:08d}")
    with pytest.raises(JournalDamaged, match="entry 1 is missing: an older segment is gone"):
        opened(disk)


def test_what_is_not_known_to_be_committed_is_read() -> None:
    disk = FaultyDisk()
    journal = opened(disk)
    add(journal, 1, LAST)
    journal.close()
    journal = opened(disk)
    assert journal.first_index == journal.oldest_index == 1


def test_what_only_the_last_segment_knows_to_be_committed_is_read() -> None:
    disk = FaultyDisk()
    journal = opened(disk)
    add(journal, 1, LAST)
    journal.setRaftCommitIndex(LAST)
    journal.leave_segment()
    add(journal, LAST + 1, LAST + 1)
    journal.close()
    journal = opened(disk)
    assert journal.segments.heads[journal.segments.active].commit_index == LAST
    assert [entry[1] for entry in all_for_feeds(journal)] == list(range(1, LAST + 2))


def test_an_incomplete_first_frame_says_nothing(disk: CountingDisk) -> None:
    journal = opened(disk)
    expected = all_for_feeds(journal)
    journal.leave_segment()
    add(journal, LAST + 1, LAST + 1)
    number = journal.segments.active
    segment(journal, number)[1024:] = bytes(SEGMENT_BYTES - 1024)
    journal.close()
    disk.unlink(journal.segments.path(number + 1))      # it is made only when that frame is synced
    journal = opened(disk)
    assert journal.segments.active == max(journal.segments.heads) == number - 1
    assert all_for_feeds(journal) == expected
    assert findings(journal) == []


def test_entries_that_were_removed_before_they_were_committed_are_never_read() -> None:
    disk = FaultyDisk()
    journal = opened(disk)
    add(journal, 1, 5)
    journal.setRaftCommitIndex(5)
    add(journal, 6, 20)
    journal.deleteEntriesFrom(7)
    add(journal, 8, 20, b"second", 2)
    heads = journal.segments.heads
    assert any(head.commit_index < 8 < head.state.next for head in heads.values())
    journal.setRaftCommitIndex(20)
    add(journal, 21, LAST, b"second", 2)
    journal.setRaftCommitIndex(LAST)
    for index in (15, 30, 38):
        journal.deleteEntriesTo(index - journal.first_index)
        journal.sync()
        found = all_for_feeds(journal)
        assert [entry[1] for entry in found] == list(range(1, LAST + 1))
        assert [entry[0][:5] for entry in found] == [b"first"] * 7 + [b"secon"] * (LAST - 7)
    journal.close()
    assert all_for_feeds(opened(disk)) == found


def test_not_even_while_the_segment_is_in_use_in_which_they_were_written_again() -> None:
    disk = FaultyDisk()
    journal = opened(disk)
    add(journal, 1, 9)
    journal.setRaftCommitIndex(5)
    journal.leave_segment()
    add(journal, 10, 10)
    journal.deleteEntriesFrom(6)
    add(journal, 7, 9, b"second", 2)
    journal.setRaftCommitIndex(9)
    for position in (8, 9):
        journal.deleteEntriesTo(position - 1)
        journal.sync()
    assert (journal.first_index, journal.segments.heads[journal.segments.active].state.next) == (8, 10)
    assert [entry[0][:5] for entry in all_for_feeds(journal)] == [b"first"] * 6 + [b"secon"] * 3


def test_the_segment_before_the_one_in_which_they_were_written_again_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = FaultyDisk()
    journal = opened(disk)
    journal.feed_bytes = 0
    add(journal, 1, 19)
    journal.leave_segment()
    add(journal, 20, 20)
    rewritten = journal.segments.active
    journal.deleteEntriesFrom(15)
    add(journal, 16, LAST, b"second", 2)
    journal.setRaftCommitIndex(LAST)
    for position in (16, 17):
        journal.deleteEntriesTo(position - 1)
        journal.sync()
    for _ in range(9):
        journal.onOneSecondTimer()
    assert (journal.oldest_index, journal.segments.oldest) == (16, rewritten - 1)
    journal.feed_bytes = 1 << 20
    for position in (LAST - 2, LAST - 1):
        journal.deleteEntriesTo(position - journal.first_index)
        journal.sync()
    for needed in (LAST - 3, None):
        assert [entry[1] for entry in all_for_feeds(journal)] == list(range(16, LAST + 1))
        journal.close()
        journal = opened(disk, needed or 0)
    assert not caplog.records


def test_what_no_snapshot_is_known_to_cover_is_not_released_again_and_again() -> None:
    """A crash between the first snapshot and its record in the journal."""
    disk = FaultyDisk()
    journal = opened(disk)
    for last in range(1, LAST + 1):
        add(journal, last, last)
        journal.setRaftCommitIndex(last)
    journal.close()
    journal = opened(disk)
    assert journal.unindexed(1) is not None
    assert not journal.can_release
    journal.deleteEntriesTo(LAST - 2 - journal.first_index)
    journal.sync()
    assert journal.can_release
    journal.release()
    journal.sync()
    assert journal.oldest_index == LAST - 2
    assert not journal.can_release


def test_a_cleared_journal_has_nothing_for_feeds(disk: CountingDisk) -> None:
    journal = opened(disk)
    feed_from(journal, 1)
    journal.clear()
    add(journal, 100, 103, term=2)
    assert journal.oldest_index == 100
    assert [entry[1] for entry in all_for_feeds(journal)] == [100, 101, 102, 103]
    for _ in range(20):
        journal.onOneSecondTimer()
    assert journal.segments.oldest == journal.segments.active


def test_after_that_no_index_of_before_is_used(disk: CountingDisk) -> None:
    journal = opened(disk)
    feed_from(journal, 12)
    assert journal._archive.has(12)
    journal.clear()
    assert not journal._archive.has(12)
