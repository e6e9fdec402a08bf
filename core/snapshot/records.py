"""The records of ended jobs in a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec
from msgspec.structs import astuple

from sockpqd.core import limits
from sockpqd.core.pages.page_space import PageLost
from sockpqd.core.records.record import JobRecord
from sockpqd.core.records.records import Records
from sockpqd.core.snapshot import frames
from sockpqd.core.snapshot.frames import check
from sockpqd.core.snapshot.rows import extras_of, extras_row

_decoder = msgspec.msgpack.Decoder(list[JobRecord])


def record_frames(records: Records, *, by_reference: bool) -> Iterator[frames.Frame]:
    """Yield the frames of all records, by queue name, the oldest first.

    `by_reference`: pages are named, with an index of all numbers before them.
    """
    if by_reference:
        index = records.spans()
        while spans := list(islice(index, limits.FRAME_JOBS_MAX)):
            yield frames.RecordIndex(spans)
    for queue in records.names():
        if by_reference:
            start, pages = records.pages(queue)
            for at in range(0, len(pages), limits.FRAME_JOBS_MAX):
                yield frames.RecordPages(queue, 0 if at else start, pages[at : at + limits.FRAME_JOBS_MAX])
        yield from rows_of(queue, records.oldest(queue, in_memory=by_reference))


def rows_of(queue: str, records: Iterable[JobRecord]) -> Iterator[frames.RecordRows]:
    """Yield the frames with these records of one queue."""
    rows: list[frames.RecordRow] = []
    size = 0
    for record in records:
        row = extras_row(record.extras)
        assert row is not None
        rows.append(frames.RecordRow(
            record.number, record.state, record.ended_ms, record.priority, record.item, record.data, record.attempts,
            row, record.result, record.error,
        ))
        size += record.kept_bytes
        if size >= limits.FRAME_DATA_BYTES or len(rows) >= limits.FRAME_JOBS_MAX:
            yield frames.RecordRows(queue, rows)
            rows, size = [], 0
    if rows:
        yield frames.RecordRows(queue, rows)


def expanded_pages(frame: frames.RecordPages, read: Callable[[bytes], bytes]) -> Iterator[frames.RecordRows]:
    """Yield frames with the records in the pages that this one names. Raises PageLost."""
    yield from rows_of(frame.queue, _in_pages(frame, read))


def _in_pages(frame: frames.RecordPages, read: Callable[[bytes], bytes]) -> Iterator[JobRecord]:
    start = frame.start
    for _, _, _, sizes, reference in frame.pages:
        try:
            records = _decoder.decode(read(reference))
        except msgspec.MsgspecError as error:
            raise PageLost(f"a page holds no records: {error}") from error
        if len(records) != len(sizes):
            raise PageLost("a page holds other records")
        yield from [record for at, record in enumerate(records) if at >= start and sizes[at]]
        start = 0


class RecordBuilder:
    """Restores the records of a snapshot. `check_name`: raises SnapshotError for a name that is not allowed."""

    def __init__(self, records: Records, check_name: Callable[[str], None]) -> None:
        self._records = records
        self._check_name = check_name
        self._queue = ""
        self._ended_ms = 0

    def add_index(self, frame: frames.RecordIndex) -> None:
        """Take over spans of the index that finds numbers in pages."""
        for span in frame.spans:
            try:
                self._records.adopt_span(*span)
            except ValueError as error:
                raise frames.SnapshotError(f"inconsistent snapshot: {error}") from error

    def add_pages(self, frame: frames.RecordPages) -> None:
        """Take over pages that this node wrote. Raises PageLost."""
        self._begin(frame.queue)
        for row in frame.pages:
            self._records.adopt(frame.queue, row)
        if frame.start:
            self._records.adopt_start(frame.queue, frame.start)

    def add_rows(self, frame: frames.RecordRows, next_seq: int) -> None:
        """Add the records of a frame. Raises SnapshotError if one is impossible, or its number not below `next_seq`."""
        self._begin(frame.queue)
        for row in frame.rows:
            values = list(astuple(row))
            extras = extras_of(row.extras)
            values[frames.RecordRow.__struct_fields__.index("extras")] = extras
            record = JobRecord(*values)
            counts = extras.counts
            check(counts is not None, "the record of a job without a number")
            check(record.number < next_seq, "the number of a record out of range")
            check(counts is None or counts.number in (None, 0, record.number), "a record has two numbers")
            check(self._ended_ms <= record.ended_ms, "records are not in the order of their ends")
            check(0 <= extras.head <= len(record.data), "headers longer than the data")
            check(self._records.number_is_free(record.number), "two records of one number")
            for name in (extras.key, extras.origin, extras.group, record.item):
                if name is not None:
                    self._check_name(name)
            self._ended_ms = record.ended_ms
            self._records.append(frame.queue, record)
        while self._records.page_out():
            pass

    def _begin(self, queue: str) -> None:
        if queue != self._queue:
            check(self._queue < queue, "records of queues are not in order")
            settings = self._records.settings.get(queue)
            check(settings is not None, "records of a queue without settings")
            self._queue, self._ended_ms = queue, 0
