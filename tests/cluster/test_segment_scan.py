"""Scans of a journal's segments: which frames are accepted, and what counts as damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal_format import ENTRY, SECTOR_BYTES, STATE, JournalRecord
from sockpqd.cluster.journal.segment_scan import Scan

OURS, OTHER = b"ours....", b"other..."
SEGMENT_BYTES = 8 * SECTOR_BYTES


class Damaged(Exception):
    """Carries the segment, the offset and the reason."""


class Segments:
    """The part of the segments that a scan uses."""

    def __init__(self) -> None:
        self.journal_id = b""
        self.sequence = 0

    def path(self, segment: int) -> Path:
        return Path(f"journal-{segment}")

    def damaged(self, segment: int, offset: int, what: str) -> None:
        raise Damaged(segment, offset, what)


def frame(sequence: int, *records: tuple[int, int, int, bytes], journal_id: bytes = OURS) -> bytes:
    """Return a frame with these records: kind, a, b, body."""
    made = [JournalRecord(kind, a, b, body, journal_format.body_crc(a, body)) for kind, a, b, body in records]
    return b"".join(journal_format.encode(made, journal_id, sequence, 0)[0])


def first(sequence: int, number: int) -> bytes:
    """Return the frame that a segment begins with."""
    return frame(sequence, (STATE, SEGMENT_BYTES, number, b"state"))


def entry(sequence: int, body: bytes = b"entry") -> bytes:
    return frame(sequence, (ENTRY, sequence, 1, body))


def segment(*frames: bytes) -> bytes:
    return b"".join(frames).ljust(SEGMENT_BYTES, b"\0")


def scanned(*contents: bytes) -> tuple[list[int], Scan]:
    """Return the sequence numbers of the frames that are accepted."""
    believed: list[int] = []
    scan = Scan(Segments(), lambda number, data, header, records: believed.append(header.sequence))
    for number, data in enumerate(contents, 1):
        assert scan.read(number, data) == SEGMENT_BYTES
    return believed, scan


def test_frames_are_read_over_segments_to_the_end() -> None:
    believed, scan = scanned(segment(first(1, 1), entry(2)), segment(first(3, 2), entry(4)), segment())
    assert believed == [1, 2, 3, 4]
    assert (scan.active, scan.position, scan.ends) == (2, 2 * SECTOR_BYTES, {1: 1024, 2: 1024, 3: 0})


@pytest.mark.parametrize("begins", [
    frame(1), entry(1), first(1, 2), frame(1, (ENTRY, 1, 1, b"x"), (STATE, SEGMENT_BYTES, 1, b"state")),
], ids=["nothing", "an entry", "another number", "a state that is not the first"])
def test_a_segment_begins_with_its_state(begins: bytes) -> None:
    with pytest.raises(Damaged, match="does not begin as a segment of this number"):
        scanned(segment(begins))


def test_a_segment_has_the_size_that_it_was_made_with() -> None:
    with pytest.raises(Damaged, match="is 4096 bytes long and should be 100"):
        scanned(segment(frame(1, (STATE, 100, 1, b"state"))))


def torn(sequence: int) -> bytes:
    """Return a frame of two sectors, the second of which was never written."""
    return entry(sequence, bytes([7]) * 600)[:SECTOR_BYTES] + bytes(SECTOR_BYTES)


def test_a_torn_frame_is_the_end() -> None:
    believed, scan = scanned(segment(first(1, 1), torn(2)), segment())
    assert believed == [1]
    assert (scan.active, scan.position) == (1, SECTOR_BYTES)


def test_what_follows_a_torn_frame_is_not_read() -> None:
    believed, _ = scanned(segment(first(1, 1), torn(2)), segment(first(2, 2)))
    assert believed == [1]


@pytest.mark.parametrize("where", ["in the segment", "in the next one"])
def test_a_later_frame_behind_a_torn_one_is_damage_where_that_one_is(where: str) -> None:
    later = [segment(first(1, 1), torn(2), entry(3))] if where == "in the segment" else [
        segment(first(1, 1), torn(2)), segment(first(3, 2))]
    with pytest.raises(Damaged) as failure:
        scanned(*later)
    assert failure.value.args[:2] == (1, SECTOR_BYTES)
    assert failure.value.args[2].startswith("frame 2 is missing or incomplete, but journal-")


def test_a_copy_of_another_journal_behind_the_end_is_none_of_ours() -> None:
    copied = frame(100, (ENTRY, 1, 1, b"x"), journal_id=OTHER)
    assert scanned(segment(first(1, 1), torn(2), copied))[0] == [1]
    assert scanned(segment(first(1, 1), torn(2), entry(2), entry(1)))[0] == [1]     # nor are older ones of ours damage


def test_one_segment_without_a_frame_may_wait_for_its_turn() -> None:
    assert scanned(segment(first(1, 1)), segment())[0] == [1]
    with pytest.raises(Damaged, match="it holds no frame, and journal-3 is only made when it does"):
        scanned(segment(first(1, 1)), segment(), segment())
