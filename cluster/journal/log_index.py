"""The journal's index of entries in memory, and slices of the log that are read on demand."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, overload

from sockpqd.cluster import limits

Entry = tuple[bytes, int, int]      # command, index, term: pysyncobj's form


class EntryLocation(NamedTuple):
    """The place of an entry's command on disk."""

    segment: int
    offset: int
    length: int
    crc: int


class Stretch(NamedTuple):
    """Some entries one after the other in one segment, to be read at once."""

    segment: int
    offset: int                             # of the first one's command
    length: int                             # up to the end of the last one's
    entries: list[tuple[int, int, int, int, int]]    # index, term, place in the stretch, length and CRC


class LogIndex:
    """The entries from `first` on: term, length, CRC and place of those from `indexed` on, 24 bytes for each.

    Those before `indexed` are on the disk, and nothing else is known of them here (archived_segments.py).
    """

    def __init__(self) -> None:
        self.first = 1
        self.indexed = 1
        self._terms = array("Q")
        self._lengths = array("I")
        self._crcs = array("I")
        self._places = array("Q")       # segment << 40 | offset, 0 while unknown

    def __len__(self) -> int:
        return self.next - self.first

    @property
    def next(self) -> int:
        """The index after the last entry."""
        return self.indexed + len(self._terms)

    def append(self, index: int, term: int, length: int, crc: int) -> None:
        """Add an entry after the last one; an index that was reset to 1 accepts any entry."""
        if index != self.indexed + len(self._terms):
            if self._terms or self.indexed > 1:
                raise ValueError(f"entry {index} does not follow entry {self.next - 1}")
            self.first = self.indexed = index
        self._terms.append(term)
        self._lengths.append(length)
        self._crcs.append(crc)
        self._places.append(0)

    def put(self, index: int, segment: int, offset: int) -> None:
        """Record the place of an entry's command, unless the entry has been removed in the meantime."""
        position = index - self.indexed
        if 0 <= position < len(self._places):
            self._places[position] = segment << 40 | offset

    def reset(self, first: int, indexed: int = 0) -> None:
        """Remove all entries, and begin with `first`; those before `indexed` are on the disk."""
        self.truncate(self.first)
        self.first, self.indexed = first, max(first, indexed)

    def truncate(self, index: int) -> None:
        """Remove this entry and all after it."""
        for column in (self._terms, self._lengths, self._crcs, self._places):
            del column[max(0, index - self.indexed):]
        self.indexed = max(self.first, min(self.indexed, index))

    def drop(self, index: int) -> None:
        """Remove all entries before this one."""
        if index > self.first:
            self.forget(index)
            self.first = index

    def forget(self, index: int) -> None:
        """Keep the entries before this one on the disk only."""
        count = index - self.indexed
        if count > 0:
            for column in (self._terms, self._lengths, self._crcs, self._places):
                del column[:count]
            self.indexed = index

    def term(self, index: int) -> int:
        """The term of an entry, which must be indexed."""
        return self._terms[index - self.indexed]

    def location(self, index: int) -> EntryLocation:
        """The place of an entry's command; the entry must be indexed."""
        position = index - self.indexed
        place = self._places[position]
        return EntryLocation(place >> 40, place & (1 << 40) - 1, self._lengths[position], self._crcs[position])

    def first_in(self, segment: int, before: int) -> int:
        """The first indexed entry in this segment or in a later one, at most `before`; all these are on the disk."""
        return self.indexed + bisect_left(self._places, segment << 40, 0, before - self.indexed)

    def stretch(self, index: int, last: int, bytes_max: int) -> Stretch:
        """The entries from `index` to at most `last` that lie in its segment, within `bytes_max`; at least that one."""
        segment, offset, _, _ = self.location(index)
        entries: list[tuple[int, int, int, int, int]] = []
        end = 0
        for position in range(index - self.indexed, min(last + 1 - self.indexed, len(self._places))):
            place, length = self._places[position], self._lengths[position]
            start = (place & (1 << 40) - 1) - offset
            if entries and (place >> 40 != segment or start + length > bytes_max):
                break
            entries.append((self.indexed + position, self._terms[position], start, length, self._crcs[position]))
            end = start + length
        return Stretch(segment, offset, end, entries)

    def bytes_between(self, low: int, high: int) -> int:
        """The total length of all indexed commands with low <= index < high."""
        return sum(self._lengths[max(0, low - self.indexed):max(0, high - self.indexed)])


class LogSlice(Sequence[Entry]):
    """Entries low..high-1, read on demand. Valid until the journal is changed."""

    def __init__(self, read: Callable[[int], Entry], low: int, high: int) -> None:
        self._read = read
        self._low = low
        self._high = high
        self._seen: list[Entry] = []        # the first entries, as far as they were read in order
        self._room = limits.LOG_SLICE_BYTES_MAX

    def __len__(self) -> int:
        return self._high - self._low

    def __iter__(self) -> Iterator[Entry]:
        for position in range(self._high - self._low):
            if position < len(self._seen):
                yield self._seen[position]
                continue
            entry = self._read(self._low + position)
            if self._room > 0:
                self._seen.append(entry)
                self._room -= len(entry[0])
            yield entry

    @overload
    def __getitem__(self, item: int) -> Entry: ...

    @overload
    def __getitem__(self, item: slice) -> Sequence[Entry]: ...

    def __getitem__(self, item: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(item, slice):
            start, stop, step = item.indices(len(self))
            if step != 1:
                return [self[position] for position in range(start, stop, step)]
            if stop <= len(self._seen):
                return self._seen[start:stop]
            return LogSlice(self._read, self._low + start, self._low + max(start, stop))
        position = item + len(self) if item < 0 else item
        if not 0 <= position < len(self):
            raise IndexError(f"position {item} of {len(self)} entries")
        return self._seen[position] if position < len(self._seen) else self._read(self._low + position)
