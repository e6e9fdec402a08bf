"""Finds entries that only feeds need in the segments that have them: of these, only the heads are in memory.

A start does not read those segments. A feed that comes to one has it indexed then: every frame of it is checked as at
the start of a node (segment_scan.py), and it must end in the state with which the next one begins.

What a segment has of an entry may have been removed and written again, in the same segment or in a later one, but not
once the entry was committed, and each frame says what was. So an entry is looked up in the segments up to the first one
that begins with a frame by which it was committed, from the last one on that began before there was such an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal_format import Header, PlacedRecord
from sockpqd.cluster.journal.journal_state import FrameReplay, JournalState
from sockpqd.cluster.journal.log_index import LogIndex, Stretch
from sockpqd.cluster.journal.segment_head import SegmentHead
from sockpqd.cluster.journal.segment_scan import Scan
from sockpqd.cluster.journal.segments import Segments
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import ONLY_FOR_COPIES


class Span(NamedTuple):
    """Consecutive segments to index for an entry."""

    wanted: int                 # the entry
    segments: list[int]
    sizes: list[int]            # of their files, in bytes
    head: SegmentHead           # of the first segment
    end: SegmentHead            # of the segment after the last one


class SpanIndex(NamedTuple):
    """The places of the entries `first` to `last`, which are final."""

    first: int
    last: int
    table: LogIndex


class _Files:
    """The segments of a span, for a scan (segment_scan.Files)."""

    def __init__(self, segments: Segments, head: SegmentHead) -> None:
        self.journal_id, self.sequence = head.journal_id, head.sequence - 1
        self.path = segments.path
        self._segments = segments

    def damaged(self, segment: int, offset: int, what: str) -> None:
        """See Files."""
        self._segments.damaged(segment, offset, what, ONLY_FOR_COPIES)


class ArchivedSegments:
    """The indexes of segments that feeds read, a few at a time."""

    def __init__(self, segments: Segments, disk: Disk) -> None:
        self._segments = segments
        self._disk = disk
        self._indexes: list[SpanIndex] = []         # the one used last at the end

    def first_in(self, segment: int) -> int:
        """The first entry that this segment or a later one may have."""
        return min(head.state.next for number, head in self._segments.heads.items() if number >= segment)

    def segment_of(self, index: int) -> int:
        """The oldest segment that may have an entry."""
        later = (number for number, head in self._segments.heads.items() if head.state.next > index)
        return min(later, default=self._segments.active + 1) - 1

    def span(self, index: int) -> Span:
        """The segments to index for an entry that the journal itself does not have in memory."""
        heads = self._segments.heads
        numbers = sorted(heads)
        last = next(number for number in numbers if heads[number].commit_index >= index)
        before = [number for number in numbers if number <= last and heads[number].state.next <= index]
        start = before[-1] if before else numbers[0]
        segments = list(range(start, last + 1))
        return Span(index, segments, [heads[number].size for number in segments], heads[start], heads[last + 1])

    def has(self, index: int) -> bool:
        """Return whether the segments of an entry are indexed."""
        return any(one.first <= index <= one.last for one in self._indexes)

    def stretch(self, index: int, last: int, bytes_max: int) -> Stretch:
        """Return the places of the entries from `index` on, which must be indexed (see LogIndex)."""
        found = next(one for one in self._indexes if one.first <= index <= one.last)
        self._indexes.remove(found)
        self._indexes.append(found)
        return found.table.stretch(index, min(last, found.last), bytes_max)

    def keep(self, index: SpanIndex) -> None:
        """Keep an index that read() returned, instead of one that has not been used for the longest time."""
        self._indexes.append(index)
        del self._indexes[:-limits.FEED_INDEXES]

    def clear(self) -> None:
        """Drop all indexes, as the entries are removed."""
        self._indexes.clear()

    def read(self, span: Span, files: Sequence[int], rest: Callable[[], None]) -> SpanIndex:
        """Index segments, which are open as `files`; may be called in a thread, and calls `rest` now and then.

        Raises OSError, and JournalDamaged if a frame has changed, or is missing.
        """
        state, source = JournalState(), _Files(self._segments, span.head)
        replay = FrameReplay(state, source.damaged)
        frames = 0

        def frame(segment: int, data: bytes, header: Header, records: list[PlacedRecord]) -> None:
            nonlocal frames
            replay.frame(segment, data, header, records)
            frames += 1
            if frames % limits.FEED_INDEX_FRAMES == 0:
                rest()

        scan = Scan(source, frame)
        for number, size, file in zip(span.segments, span.sizes, files, strict=True):
            scan.read(number, self._disk.read(file, size, 0))
        last = span.segments[-1]
        if source.sequence != span.end.sequence - 1:
            source.damaged(last, scan.position, f"frame {source.sequence + 1} is missing or incomplete")
        found = SpanIndex(state.table.indexed, min(replay.commit_index, state.table.next - 1), state.table)
        if state.restated() != span.end.state or not found.first <= span.wanted <= found.last:
            source.damaged(last, scan.position, "the segment after it does not continue it")
        return found
