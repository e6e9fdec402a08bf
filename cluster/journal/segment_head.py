"""The first frame of a segment, which sums up the journal before it, read without the rest of the segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal_state import StateSummary
from sockpqd.cluster.storage.disk import Disk

_STATE_BYTES_MAX = 4096         # of a STATE record's body: more than the journal ever writes


class SegmentHead(NamedTuple):
    """The contents of the first frame of a segment."""

    size: int                   # of the file
    journal_id: bytes
    sequence: int               # of the frame
    commit_index: int           # the entries up to here were committed when it was written, so they stay
    state: StateSummary         # before the segment


def read_head(disk: Disk, path: Path, number: int) -> SegmentHead | None:
    """Read the head of segment `number`; None if there is no frame, or not one that could be there. Raises OSError."""
    file = disk.open(path)
    try:
        size = disk.size(file)
        header = journal_format.read_header(disk.read(file, journal_format.HEADER.size, 0), 0)
        if header is None or header.version != journal_format.VERSION:
            return None
        directory_bytes = journal_format.RECORD.size * header.records
        data = disk.read(file, min(size, journal_format.HEADER.size + directory_bytes + _STATE_BYTES_MAX), 0)
    finally:
        disk.close(file)
    record = journal_format.read_first_record(data, header)
    if record is None or record[:3] != (journal_format.STATE, size, number):
        return None
    state = StateSummary.unpacked(data[record.offset:record.offset + record.length])
    return SegmentHead(size, header.journal_id, header.sequence, header.commit_index, state)


def read_heads(disk: Disk, run: Sequence[int], path: Callable[[int], Path]) -> dict[int, SegmentHead]:
    """Read the heads of these segments, from the newest one back to the first that cannot be read. Raises OSError.

    `path(number)`: the file of a segment.
    """
    heads: dict[int, SegmentHead] = {}
    for number in reversed(run):
        head, newer = read_head(disk, path(number), number), heads.get(number + 1)
        if head is not None and (newer is None or (
                head.journal_id == newer.journal_id and head.sequence < newer.sequence)):
            heads[number] = head
        elif heads:
            break
    return heads


def first_to_read(heads: Mapping[int, SegmentHead], run: Sequence[int], needed_from: int) -> int:
    """Return the segment with which a start begins to read, for the entries from `needed_from` on."""
    if len(heads) < 3:
        return run[0]
    # What was committed by a segment that has an end is never removed. The last one has none, and its first frame may
    # be incomplete, so the one before it could be the last.
    needed = min(needed_from, heads[sorted(heads)[-3]].commit_index)
    return max((number for number, head in heads.items() if head.state.next <= needed), default=run[0])
