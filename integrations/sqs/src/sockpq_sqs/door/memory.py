"""The memory that is held for clients: bodies that arrive or are worked on, and answers that are not read."""

from __future__ import annotations

from typing import Protocol

HIGH_PERCENT = 75               # from here on no other body is begun


class Holder(Protocol):
    """A client for which memory is held."""

    def evict(self) -> None:
        """Close its connection at once."""


class MemoryAccount:
    """Counts bytes by client; beyond `limit_bytes` the clients for which most is held are cut off."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.evicted = 0                # clients cut off so far
        self._holders: dict[Holder, int] = {}

    @property
    def high(self) -> bool:
        """True if little room is left."""
        return self.held_bytes * 100 > self.limit_bytes * HIGH_PERCENT

    def hold(self, holder: Holder, held_bytes: int) -> None:
        """Set the number of bytes that are held for this client."""
        self.held_bytes += held_bytes - self._holders.get(holder, 0)
        if held_bytes:
            self._holders[holder] = held_bytes
        else:
            self._holders.pop(holder, None)
        if self.held_bytes > self.limit_bytes:
            self._relieve()

    def _relieve(self) -> None:
        """Cut off those that hold most, until there is room again."""
        for holder in sorted(self._holders, key=self._holders.__getitem__, reverse=True):
            if not self.high:
                break
            self.held_bytes -= self._holders.pop(holder)
            self.evicted += 1
            holder.evict()
