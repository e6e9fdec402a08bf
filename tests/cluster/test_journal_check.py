"""Findings in the data directory and the journal of a node from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sockpqd.cluster import check_data
from sockpqd.cluster.damage.journal_check import check_journal
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.storage.disk import Disk
from tests.waiting import until

SEGMENT_BYTES = 1 << 14


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A journal of several segments, which its node keeps open."""
    opened = Journal.open(tmp_path / "journal", Disk(), segment_bytes=SEGMENT_BYTES)
    for index in range(1, 41):
        opened.add(bytes([index]) * 1000, index, 1)
        opened.sync()
    yield opened
    opened.close()


def test_a_journal_in_use_is_read_and_not_changed(journal: Journal, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len([path for path in before if path.name.startswith("journal-")]) > 2
    found = check_journal(tmp_path / "journal")
    assert (found.state, found.name, found.advice) == ("OK", "journal", None)
    assert found.found.startswith("entries 1 to 40, ")
    assert found.found.endswith(" bytes, all as written")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_entries_that_a_snapshot_has_replaced_are_not_missed(journal: Journal, tmp_path: Path) -> None:
    journal.deleteEntriesTo(30)
    journal.release()
    journal.sync()

    def deleted() -> bool:
        journal.onOneSecondTimer()      # one old segment goes at a time, by a thread
        return not (tmp_path / "journal" / "journal-00000001").exists()

    until(deleted)
    assert check_journal(tmp_path / "journal").state == "OK"


@pytest.mark.parametrize("segment", [1, 2])
def test_a_changed_byte_is_found(journal: Journal, tmp_path: Path, segment: int) -> None:
    path = tmp_path / "journal" / f"journal-{segment:08d}"
    data = bytearray(path.read_bytes())
    data[5000] ^= 4
    path.write_bytes(data)
    found = check_data(tmp_path)[0]
    assert (found.state, found.name) == ("FAIL", "journal")
    assert found.found.startswith(f"{path} is damaged at offset ")
    assert found.advice is not None
    assert "rejoins the others" in found.advice


@pytest.mark.parametrize(("segment", "state"), [(1, "WARN"), (3, "FAIL")])
def test_what_only_copies_need_costs_the_node_nothing(
    journal: Journal, tmp_path: Path, segment: int, state: str,
) -> None:
    journal.setRaftCommitIndex(40)
    journal.keep_commit()
    journal.leave_segment()
    journal.sync()
    for number in (1, 2):                           # a start takes neither of the newest two for older ones
        journal.setCurrentTerm(number, None)
        journal.leave_segment()
        journal.sync()
    needed = journal.segments.heads[3].state.next
    path = tmp_path / "journal" / f"journal-{segment:08d}"
    data = bytearray(path.read_bytes())
    data[5000] ^= 4
    path.write_bytes(data)
    assert check_journal(tmp_path / "journal").state == "FAIL"
    found = check_journal(tmp_path / "journal", needed_from=needed)
    assert (found.state, found.found.startswith(f"{path} is damaged at offset ")) == (state, True)
    assert ("Only copies in other regions need" in found.found) == (state == "WARN")
    assert ("rejoins" in (found.advice or "")) == (state == "FAIL")


def test_a_missing_segment_is_found(journal: Journal, tmp_path: Path) -> None:
    (tmp_path / "journal" / "journal-00000003").write_bytes(bytes(SEGMENT_BYTES))
    found = check_journal(tmp_path / "journal")
    assert (found.state, "journal-00000004" in found.found, "should be" in found.found) == ("FAIL", True, True)


def test_a_new_journal_has_no_entries(tmp_path: Path) -> None:
    Journal.open(tmp_path / "journal", Disk(), segment_bytes=SEGMENT_BYTES).close()
    assert check_journal(tmp_path / "journal").found.startswith("no entries yet, ")


def test_any_other_directory_is_none_of_a_node(tmp_path: Path) -> None:
    (found,) = check_data(tmp_path)
    assert (found.state, found.name) == ("FAIL", "data directory")
    assert found.found == f"{tmp_path} is not the data directory of a node: it has no journal"
    assert found.advice is not None
    assert "node.data_dir" in found.advice
