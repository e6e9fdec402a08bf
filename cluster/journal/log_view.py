"""The log as a sequence by position from its first entry, which pysyncobj reads many times in each turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import overload

from sockpqd.cluster.journal.log_cache import LogCache
from sockpqd.cluster.journal.log_index import Entry, LogSlice

_LIST_ENTRIES_MAX = 256         # longer slices are not copied


class LogView(Sequence[Entry]):
    """The entries `first_index` to `last_index`, of which the newest are in memory."""

    def __init__(self, window_bytes: int) -> None:
        self.first_index = 1
        self.last_index = 0
        self._cache = LogCache(window_bytes)
        self._oldest: Entry | None = None           # the entry at first_index, once it was read

    @abstractmethod
    def entry(self, index: int) -> Entry:
        """The entry with this index."""

    def _show_from(self, index: int) -> None:
        self.first_index = index
        self._oldest = None

    def __len__(self) -> int:
        return self.last_index + 1 - self.first_index

    @overload
    def __getitem__(self, item: int) -> Entry: ...

    @overload
    def __getitem__(self, item: slice) -> Sequence[Entry]: ...

    def __getitem__(self, item: int | slice) -> Entry | Sequence[Entry]:
        if item == -1:              # pysyncobj asks for the last and the first one constantly
            return self._cache.entries[-1]
        if item == 0 and self._oldest is not None:
            return self._oldest
        if isinstance(item, slice):
            return self._slice(item)
        return self.entry(item + (self.first_index if item >= 0 else self.last_index + 1))

    def _slice(self, item: slice) -> Sequence[Entry]:
        size = self.last_index + 1 - self.first_index
        start, stop = item.start or 0, size if item.stop is None else item.stop
        if start < 0 or stop < 0 or item.step is not None:
            start, stop, step = item.indices(size)
            if step != 1:
                return [self[position] for position in range(start, stop, step)]
        if stop > size:
            stop = size
        if start >= stop:
            return []
        low = self.first_index + start - self._cache.first
        if low >= 0 and stop - start <= _LIST_ENTRIES_MAX:
            return self._cache.entries[low:low + stop - start]
        return LogSlice(self.entry, self.first_index + start, self.first_index + stop)
