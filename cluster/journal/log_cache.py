"""The newest entries in memory: those read many times in each turn, and all that are not on disk yet."""

from __future__ import annotations

from sockpqd.cluster.journal.log_index import Entry

_ENTRY_BYTES = 200          # memory of an entry besides its command


class LogCache:
    """The entries from index `first` to the end of the log."""

    def __init__(self, window_bytes: int) -> None:
        self.entries: list[Entry] = []
        self.first = 1
        self._bytes = 0
        self._window_bytes = window_bytes

    def add(self, command: bytes, index: int, term: int) -> None:
        if not self.entries:
            self.first = index
        self.entries.append((command, index, term))
        self._bytes += len(command) + _ENTRY_BYTES

    def truncate(self, index: int) -> None:
        """Remove this entry and all after it."""
        count = max(0, index - self.first)
        self._bytes -= sum(len(entry[0]) + _ENTRY_BYTES for entry in self.entries[count:])
        del self.entries[count:]
        self.first = min(self.first, index)

    def evict(self) -> None:
        """If the entries, all on disk, take too much memory, keep the newest: half of the limit, and at least one."""
        if self._bytes <= self._window_bytes:
            return
        count = 0
        while self._bytes > self._window_bytes // 2 and count < len(self.entries) - 1:
            self._bytes -= len(self.entries[count][0]) + _ENTRY_BYTES
            count += 1
        del self.entries[:count]
        self.first += count
