"""The first frame of a segment, which sums up the journal before it, read without the rest of the segment."""

from __future__ import annotations

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
