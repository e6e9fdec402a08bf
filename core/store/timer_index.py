"""What becomes due when: one entry for each thing that has a time.

Used for TTLs, for the first DELAYED job of each queue, and for the first retained key of each queue. Leases and
sessions have structures of their own, as there are many more of them and their times change with every use.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from sortedcontainers import SortedList

# A time in ms first, then whatever tells entries of the same time apart.
Entry = TypeVar("Entry", bound=tuple[int, object] | tuple[int, int, object])


class TimerIndex(Generic[Entry]):
    """Entries in the order of their times, and of what follows the time among equal ones."""

    __slots__ = ("_bits", "entries")

    def __init__(self, bits: int) -> None:
        """`bits`: it is enough to look once in 2^bits milliseconds."""
        self._bits = bits
        self.entries: SortedList = SortedList()

    def add(self, entry: Entry) -> None:
        """Insert an entry that is not there."""
        self.entries.add(entry)

    def remove(self, entry: Entry) -> None:
        """Remove an entry that is there."""
        self.entries.remove(entry)

    def first_due(self, clock_ms: int) -> Entry | None:
        """The first entry whose time has come."""
        if not self.entries or self.entries[0][0] > clock_ms:
            return None
        entry: Entry = self.entries[0]
        return entry

    def next_due_ms(self) -> int | None:
        """When to look for due entries next: the first time, rounded up so that many entries share one look."""
        if not self.entries:
            return None
        due_ms: int = self.entries[0][0]
        return (due_ms + (1 << self._bits) - 1) >> self._bits << self._bits
