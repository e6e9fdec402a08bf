"""The counts of sectors in a frame's head match the whole frame, however it was put together."""

from __future__ import annotations

import random
from zlib import crc32

import pytest

from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal_format import SECTOR_BYTES, JournalRecord


def body(rng: random.Random, sectors: int) -> bytes:
    """Draw runs of zeros, single bits and noise, of any length and at any place."""
    runs = []
    while sum(map(len, runs)) < sectors * SECTOR_BYTES:
        length = rng.choice((1, 100, SECTOR_BYTES, 5000, 70_000))
        run = bytearray(length)
        kind = rng.randrange(3)
        if kind == 0:
            run[:] = rng.randbytes(length)
        elif kind == 1:
            run[rng.randrange(length)] = 1 << rng.randrange(8)
        runs.append(bytes(run))
    return b"".join(runs)


def count(frame: bytes) -> tuple[int, int]:
    """Count the zero and the single-bit sectors after the first one, one by one."""
    sectors = [int.from_bytes(frame[at:at + SECTOR_BYTES]) for at in range(SECTOR_BYTES, len(frame), SECTOR_BYTES)]
    return sum(sector == 0 for sector in sectors), sum(sector.bit_count() == 1 for sector in sectors)


@pytest.mark.parametrize("seed", range(20))
def test_the_sectors_without_and_with_a_single_bit_are_counted(seed: int) -> None:
    rng = random.Random(seed)
    bodies = [body(rng, rng.choice((0, 1, 10, 300))) for _ in range(rng.randrange(1, 5))]
    records = [
        JournalRecord(journal_format.ENTRY, index, 1, each, journal_format.body_crc(index, each))
        for index, each in enumerate(bodies, 1)
    ]
    pieces, length = journal_format.encode(records, bytes(range(8)), 5, 3)
    frame = b"".join(pieces)
    header = journal_format.read_header(frame, 0)
    assert header is not None
    assert len(frame) == length
    assert (header.zero_sectors, header.single_bit_sectors) == count(frame)


def test_the_first_sector_is_not_counted() -> None:
    sectors = [bytes(SECTOR_BYTES), b"\x01" + bytes(SECTOR_BYTES - 1), bytes(SECTOR_BYTES)]
    assert journal_format._count_sparse(sectors) == (1, 1)


@pytest.mark.parametrize("seed", range(200))
def test_a_single_small_entry_is_written_as_any_other_frame(seed: int) -> None:
    rng = random.Random(seed)
    data = body(rng, 1) if rng.random() < 0.3 else rng.randbytes(rng.randrange(5000))
    data = data[:rng.choice((0, 1, 63, 64, 407, 408, 409, 4095, 4096, 5000))]
    index = rng.choice((1, 7, 1 << 40))
    record = JournalRecord(journal_format.ENTRY, index, rng.randrange(9), data, journal_format.body_crc(index, data))
    pieces, length = journal_format.encode([record], b"journal!", seed, 5)
    whole = journal_format.encode_small(record, b"journal!", seed, 5)
    if whole is None:
        assert len(data) >= 4096 or bytes(64) in data
    else:
        assert whole == b"".join(pieces)
        assert len(whole) == length


def frame_of(data: bytes) -> bytes:
    """Return a frame with one entry."""
    record = JournalRecord(journal_format.ENTRY, 1, 1, data, journal_format.body_crc(1, data))
    return b"".join(journal_format.encode([record], bytes(8), 1, 1)[0])


def test_a_header_is_read_up_to_the_last_byte_and_no_further() -> None:
    frame, size = frame_of(b"x"), journal_format.HEADER.size
    assert journal_format.read_header(frame[:size], 0) == journal_format.read_header(frame, 0) is not None
    assert journal_format.read_header(frame[:size - 1], 0) is None
    assert journal_format.read_header(frame[:size], 1) is None


def test_what_begins_with_another_magic_is_no_header_however_right_its_crc() -> None:
    frame = bytearray(frame_of(b"x"))
    frame[:4] = b"SPQP"
    checked = journal_format._CHECKED.size
    journal_format._CRC_AND_MARK.pack_into(frame, checked, crc32(frame[:checked]), journal_format._MARK)
    assert journal_format.read_header(bytes(frame), 0) is None
    frame[:4] = journal_format.MAGIC
    journal_format._CRC_AND_MARK.pack_into(frame, checked, crc32(frame[:checked]), journal_format._MARK)
    assert journal_format.read_header(bytes(frame), 0) is not None


def test_a_sector_is_blank_when_all_of_it_is() -> None:
    for at in (0, 1, SECTOR_BYTES - 1):
        sector = bytearray(SECTOR_BYTES)
        assert journal_format.is_blank(bytes(sector), 0)
        sector[at] = 1
        assert not journal_format.is_blank(bytes(sector), 0)


def hand_made(length: int, lengths: list[int], data: bytes, mark_at: int) -> tuple[bytes, journal_format.Header]:
    """Return a frame of `length` bytes whose checksums are right, with records of these lengths, and its end mark
    there.
    """
    bodies = journal_format.HEADER.size + journal_format.RECORD.size * len(lengths)
    frame = bytearray(max(length, mark_at + 1))
    frame[bodies:bodies + len(data)] = data
    frame[mark_at] = journal_format._END_MARK[0]
    directory, position = b"", bodies
    for index, size in enumerate(lengths, 1):
        crc = journal_format.body_crc(index, bytes(frame[position:position + size]))
        directory += journal_format.RECORD.pack(journal_format.ENTRY, size, index, 1, crc)
        position += size
    frame[journal_format.HEADER.size:bodies] = directory
    checked = journal_format._CHECKED.pack(
        journal_format.MAGIC, journal_format.VERSION, 0, bytes(8), 1, length, 1, len(lengths), 0, 0,
        crc32(directory, 1))
    mark = journal_format._CRC_AND_MARK.pack(crc32(checked), journal_format._MARK)
    frame[:journal_format.HEADER.size] = checked + mark
    header = journal_format.read_header(bytes(frame), 0)
    assert header is not None
    return bytes(frame), header


@pytest.mark.parametrize(("length", "lengths", "mark_at", "good"), [
    (512, [100], 511, True),
    (600, [100], 599, False),               # no frame ends within a sector
    (512, [512 - 64 - 32], 511, False),     # the record has the end mark, too
    (512, [1000], 511, False),              # the record is longer than the frame
], ids=["good", "odd length", "no end", "too long"])
def test_a_frame_that_was_never_written_so_is_not_read_whatever_its_checksums_say(
    length: int, lengths: list[int], mark_at: int, good: bool,
) -> None:
    assert (journal_format.HEADER.size, journal_format.RECORD.size) == (64, 32)
    frame, header = hand_made(length, lengths, b"", mark_at)
    records = journal_format.read_records(frame + bytes(1024), 0, header)
    assert (records is not None) is good


def test_what_is_less_than_a_sector_is_not_torn() -> None:
    data = bytes(2 * SECTOR_BYTES)
    assert journal_format.is_torn(data, SECTOR_BYTES, None)
    assert not journal_format.is_torn(data, SECTOR_BYTES + 1, None)


def test_a_frame_that_would_reach_beyond_its_segment_is_not_torn() -> None:
    frame = frame_of(bytes([1]) * 2000)
    header = journal_format.read_header(frame, 0)
    assert header is not None
    torn = frame[:1024] + bytes(len(frame) - 1024)
    assert journal_format.is_torn(torn, 0, header)
    assert not journal_format.is_torn(torn[:-SECTOR_BYTES], 0, header)


def test_later_headers_begin_sectors() -> None:
    frame = frame_of(b"x")
    assert [offset for offset, _ in journal_format.later_headers(bytes(SECTOR_BYTES) + frame, 0)] == [SECTOR_BYTES]
    assert list(journal_format.later_headers(bytes(100) + frame, 0)) == []
