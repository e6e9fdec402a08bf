"""The format of the journal: one frame for each sync, and the rules by which a reader checks a frame.

    frame     := header 64 | directory, 32 for each record | bodies of the records | zeros | end mark 1
    header    := magic 4 | version 2 | 0 2 | journal id 8 | sequence 8 | length 8 | commit index 8 | records 4
                 | zero sectors 4 | single-bit sectors 4 | CRC of the directory 4 | CRC of the header so far 4 | mark 4
    record    := kind 1 | 0 3 | length of the body 4 | a 8 | b 8 | CRC of the body 4 | 0 4         (all little-endian)

A frame is a whole number of 512-byte sectors. Frame n+1 is written only after frame n was synced, so at most the last
frame can be incomplete, and nothing in an incomplete frame was ever acknowledged. Any other fault is damage, and a
damaged journal must not be used: it may have lost entries that were acknowledged.

An incomplete ("torn") last frame is distinguished from a damaged one as follows. Space is allocated as zeros, so a
sector that was never written is all zeros, and so is everything after the point where a write broke off. The end mark
and the header's mark have several bits set in their last byte, so a zero there is not a flipped bit: the write stopped
before it. (The magic has several in its first byte: a zero there is left by an interrupted cut of a torn frame.)
Otherwise a torn frame must have more zero sectors than its header counts. One flipped bit could turn a sector with a
single bit into a zero sector; the header counts those, and if that would explain the difference too, the frame counts
as damaged.

Every bit is covered by one check: header CRC, directory CRC (seeded with the sequence number, so a frame in the wrong
place is invalid), a CRC for each body (kept with the entry to check it when it is read again), and comparison for
padding and marks. A CRC32 detects every single flipped bit.

When the format changes, VERSION rises by one and a reader for the older version stays. Magic, version, header CRC and
mark keep their places in all versions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

VERSION = 1
MAGIC = b"SPQJ"
SECTOR_BYTES = 512
HEADER = struct.Struct("<4sHH8sQQQIIIIII")
RECORD = struct.Struct("<B3xIQQI4x")
_CHECKED = struct.Struct("<4sHH8sQQQIIII")      # the part of the header that its CRC covers
_CRC_AND_MARK = struct.Struct("<II")
_MARK = 0xA5A5A5A5
_END_MARK = b"\xa5"
_ZERO_SECTOR = bytes(SECTOR_BYTES)
_BLOCK_BYTES = 64 << 10                         # scanned at once; fits the cache of a core
_ZERO_BLOCK = bytes(_BLOCK_BYTES + SECTOR_BYTES)

# Bodies smaller than this are joined before they are written, because a copy is cheaper than another piece.
_SMALL_BYTES = 4096

# A sector with at most one bit set lies in at most three pieces (two neighbours are never both small), along with at
# most a part of one record of the directory; so one of these pieces contains a run of zeros at least this long.
_ZERO_RUN = bytes(64)

_ENTRY_USED = HEADER.size + RECORD.size + len(_END_MARK)     # bytes of a frame with a single entry, besides its body

# Kinds of record. The numbers are the format: never reused.
ENTRY = 1           # a: index, b: term, body: command
TRUNCATE = 2        # a: this index and all above are removed
PREFIX = 3          # a: first index that stays, b: index up to which the newest snapshot makes the log superfluous
CLEAR = 4           # all entries are removed
TERM = 5            # a: term, b: 1 with a vote, body: name voted for
VOTER = 6           # a: 1 when this node may vote
STATE = 7           # body: MessagePack map, see journal_state.py; stands first in each segment
ACKNOWLEDGED = 8    # a: index, body: name of the node that had all committed entries up to it on its disk


class Header(NamedTuple):
    """The header of a frame."""

    version: int
    journal_id: bytes
    sequence: int
    length: int
    commit_index: int
    records: int
    zero_sectors: int
    single_bit_sectors: int
    directory_crc: int


class JournalRecord(NamedTuple):
    """One change of the journal; the kind gives `a` and `b` their meaning. `crc` is body_crc(a, body)."""

    kind: int
    a: int
    b: int
    body: bytes
    crc: int


class PlacedRecord(NamedTuple):
    """A record read from a frame; `offset` and `length` locate its body in the file."""

    kind: int
    a: int
    b: int
    offset: int
    length: int
    crc: int


def encode(
    records: list[JournalRecord], journal_id: bytes, sequence: int, commit_index: int,
) -> tuple[list[bytes], int]:
    """Encode a frame; returns its pieces in order, with large bodies not copied, and their total length."""
    directory = b"".join([RECORD.pack(kind, len(body), a, b, crc) for kind, a, b, body, crc in records])
    bodies = _gather([record.body for record in records])
    used = HEADER.size + len(directory) + sum(map(len, bodies)) + 1
    length = -(-used // SECTOR_BYTES) * SECTOR_BYTES
    tail = bytes(length - used) + _END_MARK
    zero = single = 0
    if any(_ZERO_RUN in body for body in bodies):
        zero, single = _count_sparse([bytes(HEADER.size), directory, *bodies, tail])
    checked = _CHECKED.pack(
        MAGIC, VERSION, 0, journal_id, sequence, length, commit_index, len(records), zero, single,
        crc32(directory, sequence & 0xFFFFFFFF),
    )
    return [checked, _CRC_AND_MARK.pack(crc32(checked), _MARK), directory, *bodies, tail], length


def encode_small(record: JournalRecord, journal_id: bytes, sequence: int, commit_index: int) -> bytes | None:
    """Encode a single small record in one piece; None if it is too large or has runs of zeros."""
    kind, index, term, body, crc = record
    if len(body) >= _SMALL_BYTES or _ZERO_RUN in body:
        return None
    used = _ENTRY_USED + len(body)
    length = (used + SECTOR_BYTES - 1) & -SECTOR_BYTES
    directory = RECORD.pack(kind, len(body), index, term, crc)
    checked = _CHECKED.pack(
        MAGIC, VERSION, 0, journal_id, sequence, length, commit_index, 1, 0, 0,
        crc32(directory, sequence & 0xFFFFFFFF),
    )
    mark = _CRC_AND_MARK.pack(crc32(checked), _MARK)
    return b"".join((checked, mark, directory, body, bytes(length - used), _END_MARK))


def _gather(bodies: list[bytes]) -> list[bytes]:
    pieces: list[bytes] = []
    small: list[bytes] = []
    for body in bodies:
        if len(body) < _SMALL_BYTES:
            small.append(body)
            continue
        if small:
            pieces.append(b"".join(small))
            small = []
        pieces.append(body)
    if small:
        pieces.append(b"".join(small))
    return pieces


def _count_sparse(pieces: Iterable[bytes]) -> tuple[int, int]:
    """Count the sectors after a frame's first that are all zeros, and those with a single bit set."""
    zero = single = 0
    for block in _blocks(pieces):
        if _ZERO_BLOCK.startswith(block):
            zero += len(block) // SECTOR_BYTES
            continue
        if _ZERO_RUN not in block:
            continue
        for start in range(0, len(block), SECTOR_BYTES):
            sector = block[start:start + SECTOR_BYTES]
            if sector == _ZERO_SECTOR:
                zero += 1
            elif sector.count(0) == SECTOR_BYTES - 1 and int.from_bytes(sector, "little").bit_count() == 1:
                single += 1
    return zero, single


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A frame without its first sector, in blocks of whole sectors, so that most are checked as one."""
    block = b""
    skipped = SECTOR_BYTES
    for piece in pieces:
        for start in range(0, len(piece), _BLOCK_BYTES):
            block += piece[start:start + _BLOCK_BYTES]
            end = len(block) - len(block) % SECTOR_BYTES
            if end:
                yield block[skipped:end]
                block, skipped = block[end:], 0


def body_crc(index: int, body: bytes) -> int:
    """The CRC of a record's body, seeded with the record's `a`, so that another entry's body does not match."""
    return crc32(body, index & 0xFFFFFFFF)


def is_blank(data: bytes, offset: int) -> bool:
    """Return whether the sector at `offset` is still all zeros, so that nothing was written there."""
    return data[offset] == 0 and data[offset:offset + SECTOR_BYTES] == _ZERO_SECTOR


def read_header(data: bytes, offset: int) -> Header | None:
    """The valid header at `offset`, or None. If its version differs, only that field is meaningful."""
    if len(data) - offset < HEADER.size:
        return None
    (magic, version, _, journal_id, sequence, length, commit_index, records, zero, single, directory_crc, crc,
     mark) = HEADER.unpack_from(data, offset)
    if magic != MAGIC or mark != _MARK or crc32(data[offset:offset + _CHECKED.size]) != crc:
        return None
    return Header(version, journal_id, sequence, length, commit_index, records, zero, single, directory_crc)


def read_records(data: bytes, offset: int, header: Header) -> list[PlacedRecord] | None:
    """All records of the frame at `offset`, or None if any bit after the header has changed."""
    end = offset + header.length
    bodies = offset + HEADER.size + RECORD.size * header.records
    if end > len(data) or bodies > end or header.length % SECTOR_BYTES:
        return None
    view = memoryview(data)
    directory = view[offset + HEADER.size:bodies]
    if crc32(directory, header.sequence & 0xFFFFFFFF) != header.directory_crc:
        return None
    placed = []
    position = bodies
    for kind, length, a, b, crc in RECORD.iter_unpack(directory):
        if position + length >= end or crc32(view[position:position + length], a & 0xFFFFFFFF) != crc:
            return None
        placed.append(PlacedRecord(kind, a, b, position, length, crc))
        position += length
    if data[position:end] != bytes(end - position - 1) + _END_MARK:
        return None
    return placed


def read_first_record(data: bytes, header: Header) -> PlacedRecord | None:
    """The first record of the frame at the start of `data`, which may end after it; None if it has changed."""
    bodies = HEADER.size + RECORD.size * header.records
    directory = data[HEADER.size:bodies]
    if not header.records or crc32(directory, header.sequence & 0xFFFFFFFF) != header.directory_crc:
        return None
    kind, length, a, b, crc = RECORD.unpack_from(directory)
    body = data[bodies:bodies + length]
    if len(body) != length or body_crc(a, body) != crc:
        return None
    return PlacedRecord(kind, a, b, bodies, length, crc)


def is_torn(data: bytes, offset: int, header: Header | None) -> bool:
    """Return whether sectors that were never written explain the invalid frame at `offset` (see above)."""
    if offset + SECTOR_BYTES > len(data):
        return False
    if header is None:
        return data[offset] == 0 or data[offset + HEADER.size - 1] == 0
    end = offset + header.length
    if end > len(data):
        return False
    if data[end - 1] == 0:
        return True
    zero, _ = _count_sparse([data[offset:end]])
    missing = zero - header.zero_sectors
    return missing > (1 if header.single_bit_sectors else 0)


def later_headers(data: bytes, offset: int) -> Iterator[tuple[int, Header]]:
    """The valid headers at or after `offset`, which must be the start of a sector, with their offsets."""
    position = offset
    while (position := data.find(MAGIC, position)) >= 0:
        if position % SECTOR_BYTES == 0 and (header := read_header(data, position)) is not None:
            yield position, header
        position += 1
