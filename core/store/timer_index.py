"""An index of timers: one entry for each thing with a due time, in the order of these times.

Used for TTLs, for the first DELAYED job of each queue, and for the first retained key of each queue. Leases and
sessions have structures of their own, as there are many more of them and their times change with every use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from sortedcontainers import SortedList

NOTHING_MS = 1 << 64            # beyond any time: they have 64 bits at most

# A time in ms, then fields that distinguish entries of the same time.
Entry = TypeVar("Entry", bound=tuple[int, object] | tuple[int, int, object])


class TimerIndex(Generic[Entry]):
    """Entries in the order of their times, equal times in the order of the following fields."""

    __slots__ = ("_bits", "_entries", "first_ms")

    def __init__(self, bits: int) -> None:
        """`bits`: checking once every 2^bits milliseconds is enough."""
        self._bits = bits
        self._entries: SortedList = SortedList()
        self.first_ms = NOTHING_MS        # the first time, compared with the clock by each entry of the log

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def add(self, entry: Entry) -> None:
        """Insert an entry that is not there."""
        self._entries.add(entry)
        self.first_ms = min(self.first_ms, entry[0])

    def remove(self, entry: Entry) -> None:
        """Remove an entry that is there."""
        self._entries.remove(entry)
        if entry[0] == self.first_ms:
            self.first_ms = self._entries[0][0] if self._entries else NOTHING_MS

    def replace(self, entries: Iterable[Entry]) -> None:
        """Replace all entries with these."""
        self._entries = SortedList(entries)
        self.first_ms = self._entries[0][0] if self._entries else NOTHING_MS

    def first_due(self, clock_ms: int) -> Entry | None:
        """Return the first entry if it is due; otherwise None."""
        if self.first_ms > clock_ms:
            return None
        entry: Entry = self._entries[0]
        return entry

    def next_due_ms(self) -> int | None:
        """Return the time of the next check for due entries: the first, rounded up so that many share one check."""
        if not self._entries:
            return None
        return (self.first_ms + (1 << self._bits) - 1) >> self._bits << self._bits
