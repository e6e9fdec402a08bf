"""Records in the order in which their jobs ended, in blocks: the newest are in memory, the others in pages."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable

import msgspec

from sockpqd.core.limits import RECORD_BLOCK_BYTES, RECORD_BLOCK_MAX, RECORD_BYTES, RECORD_SPAN_MS
from sockpqd.core.pages.page_space import PageLost, PageSpace
from sockpqd.core.records.record import JobRecord

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[JobRecord])


class Block:
    """Up to RECORD_BLOCK_MAX consecutive records of one queue.

    For each there is its end and its size in memory, in 8 bytes; a size of 0 means that it was removed (one more than
    its bytes otherwise). `kept`, `kept_bytes`: of those that were not removed. `serial`: the number of the block.
    `page`: where its records are; None: in memory.
    """

    __slots__ = ("_records", "base_ms", "ends", "first", "kept", "kept_bytes", "page", "serial", "sizes", "total_bytes")

    def __init__(self, serial: int, first: int, base_ms: int) -> None:
        """`first`: the position of its first record in the queue, counted from the beginning; `base_ms`: its end."""
        self.serial = serial
        self.first = first
        self.page: int | None = None
        self.total_bytes = 0                    # of all that were added, also of removed ones,
        self.kept = 0                           # and what the others are
        self.kept_bytes = 0
        self.sizes = array("I")
        self.base_ms = base_ms
        self.ends = array("I")                 # in ms since `base_ms`
        self._records: list[JobRecord] = []

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def full(self) -> bool:
        """Return whether the next record needs another block."""
        return (
            self.page is not None or len(self.sizes) >= RECORD_BLOCK_MAX or self.total_bytes >= RECORD_BLOCK_BYTES
        )

    def takes(self, ended_ms: int) -> bool:
        """Return whether the next record, which ended then, has its place here."""
        return (
            self.page is None and self.total_bytes < RECORD_BLOCK_BYTES and len(self.sizes) < RECORD_BLOCK_MAX
            and ended_ms - self.base_ms <= RECORD_SPAN_MS
        )

    @property
    def hot_bytes(self) -> int:
        """About what its records take in memory."""
        return self.total_bytes + RECORD_BYTES * len(self.sizes) if self.page is None else 0

    def ended_ms(self, at: int) -> int:
        """The end of the record at this position, which may have been removed."""
        return self.base_ms + self.ends[at]

    def ended_until(self, ms: int) -> int:
        """Return the number of the records that had ended by then."""
        return bisect_right(self.ends, ms - self.base_ms) if ms >= self.base_ms else 0

    def add(self, record: JobRecord) -> int:
        """Append a record, which ended last; returns its bytes."""
        kept_bytes = record.kept_bytes
        self.sizes.append(kept_bytes + 1)
        self.ends.append(record.ended_ms - self.base_ms)
        self._records.append(record)
        self.total_bytes += kept_bytes
        self.kept += 1
        self.kept_bytes += kept_bytes
        return kept_bytes

    def pop(self) -> JobRecord:
        """Take back the last record, which was added by the present entry."""
        record = self._records.pop()
        self.sizes.pop()
        self.ends.pop()
        self.total_bytes -= record.kept_bytes
        self._count(-1, -record.kept_bytes)
        return record

    def _count(self, kept: int, kept_bytes: int) -> None:
        self.kept += kept
        self.kept_bytes += kept_bytes

    def remove(self, at: int) -> int:
        """Remove the record at this position, which is there; returns its size."""
        size = self.sizes[at]
        self.sizes[at] = 0
        self._count(-1, 1 - size)
        return size

    def put_back(self, at: int, size: int) -> None:
        """Undo the removal of the record at this position, which had this size."""
        self.sizes[at] = size
        self._count(1, size - 1)

    def write(self, space: PageSpace) -> bool:
        """Move the records into a page; returns whether there was room for it."""
        self.page = space.put(_encoder.encode(self._records))
        if self.page is not None:
            self._records = []
        return self.page is not None

    def records(self, read: Callable[[int], bytes]) -> list[JobRecord]:
        """All its records, also those that were removed. `read`: returns the bytes of a page. Raises PageLost."""
        if self.page is None:
            return self._records
        try:
            records = _decoder.decode(read(self.page))
        except msgspec.MsgspecError as error:
            raise PageLost(f"page {self.page} holds no records: {error}") from error
        if len(records) != len(self.sizes):
            raise PageLost(f"page {self.page} holds other records")
        return records

    def adopt(self, page: int, ends: list[int], sizes: list[int]) -> None:
        """Take over the records that an earlier process left in this page: their ends and sizes as here."""
        self.page = page
        self.ends.extend(ends)
        self.sizes.extend(sizes)
        kept = [size for size in sizes if size]
        self.total_bytes = sum(kept) - len(kept)
        self._count(len(kept), self.total_bytes)
