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

    Stores the end and the size of each record: in 8 bytes while it is in memory, nearly always in 4 once it is in a
    page. A size of 0 means that the record was removed; otherwise the size is its number of bytes plus 1. `serial`: the
    number of the block. `page`: the page with its records; None: they are in memory.
    """

    __slots__ = (
        "_records", "_removed", "_removed_bytes", "base_ms", "ends", "first", "page", "serial", "sizes", "total_bytes",
    )

    def __init__(self, serial: int, first: int, base_ms: int) -> None:
        """`first`: the position of its first record, counted from the queue's first one; `base_ms`: its end."""
        self.serial = serial
        self.first = first
        self.page: int | None = None
        self.total_bytes = 0                    # of all that were added, also of removed ones,
        self._removed = 0                       # their number, and their bytes
        self._removed_bytes = 0
        self.sizes = array("I")
        self.base_ms = base_ms
        self.ends = array("I")                 # in ms since `base_ms`
        self._records: list[JobRecord] = []

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def kept(self) -> int:
        """The number of the records that were not removed."""
        return len(self.sizes) - self._removed

    @property
    def kept_bytes(self) -> int:
        """The bytes of the records that were not removed."""
        return self.total_bytes - self._removed_bytes

    @property
    def hot_bytes(self) -> int:
        """The approximate memory of its records."""
        return self.total_bytes + RECORD_BYTES * len(self.sizes) if self.page is None else 0

    def ended_ms(self, at: int) -> int:
        """Return the end of the record at this position, which may have been removed."""
        return self.base_ms + self.ends[at]

    def last_ended_ms(self) -> int:
        """Return the end of the last record that was not removed; there must be one."""
        return self.ended_ms(next(at for at in range(len(self.sizes) - 1, -1, -1) if self.sizes[at]))

    def ended_until(self, ms: int) -> int:
        """Return the number of records that had ended by the time `ms`."""
        return bisect_right(self.ends, ms - self.base_ms) if ms >= self.base_ms else 0

    def add(self, record: JobRecord, kept_bytes: int) -> bool:
        """Append a record of this size, which ended last; returns whether the block has room for it."""
        sizes, since_ms = self.sizes, record.ended_ms - self.base_ms
        if (
            self.page is not None or self.total_bytes >= RECORD_BLOCK_BYTES or len(sizes) >= RECORD_BLOCK_MAX
            or since_ms > RECORD_SPAN_MS
        ):
            return False
        sizes.append(kept_bytes + 1)
        self.ends.append(since_ms)
        self._records.append(record)
        self.total_bytes += kept_bytes
        return True

    def pop(self) -> JobRecord:
        """Remove and return the last record, which the current entry added."""
        record = self._records.pop()
        self.sizes.pop()
        self.ends.pop()
        self.total_bytes -= record.kept_bytes
        return record

    def remove(self, at: int) -> int:
        """Remove the record at this position, which must exist; returns its size."""
        size = self.sizes[at]
        self.sizes[at] = 0
        self._removed += 1
        self._removed_bytes += size - 1
        return size

    def lower_removed(self, ended_ms: int) -> None:
        """Set the ends of the removed records after the last current one to `ended_ms`, the end of that one."""
        at = len(self.sizes)
        while at and not self.sizes[at - 1]:
            at -= 1
            self.ends[at] = max(0, ended_ms - self.base_ms)
        if not at:
            self.base_ms = ended_ms

    def put_back(self, at: int, size: int) -> None:
        """Undo the removal of the record at this position, which had this size."""
        self.sizes[at] = size
        self._removed -= 1
        self._removed_bytes -= size - 1

    def write(self, space: PageSpace) -> bool:
        """Move the records into a page; returns whether there was room for it."""
        self.page = space.put(_encoder.encode(self._records))
        if self.page is None:
            return False
        self._records = []
        self._pack()
        return True

    def _pack(self) -> None:
        """Store ends and sizes compactly, in types that hold the present values."""
        self.ends, self.sizes = _packed(self.ends), _packed(self.sizes)

    def records(self, read: Callable[[int], bytes]) -> list[JobRecord]:
        """Return all its records, including removed ones. `read`: returns the bytes of a page. Raises PageLost."""
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
        """Take over the records that an earlier process left in this page, with these ends and sizes."""
        self.page = page
        self.ends.extend(ends)
        self.sizes.extend(sizes)
        kept = [size for size in sizes if size]
        self.total_bytes = sum(kept) - len(kept)
        self._removed = len(sizes) - len(kept)
        self._pack()


def _packed(values: array[int]) -> array[int]:
    try:
        return array("H", values)
    except OverflowError:
        return array("I", values)
