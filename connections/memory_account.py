"""Accounts for the memory this node holds for its clients besides their jobs, in bytes: in total and per client.

It counts input not executed yet, output not read yet, blocked commands, and the commands of open transactions. Each
pipeline reports when its share changes, which costs nothing while it holds nothing.

Above HELD_HIGH_PERCENT of the limit, clients that are ahead are not read, and a body that has yet to arrive is refused
on its command line alone. Above the limit, the clients that hold most are disconnected; ordinary workers hold little.
The same happens when it stays that high: clients that hold what they have and ask for no more could otherwise keep
everybody from putting jobs for as long as they like.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from sockpqd.connections.limits import (
    HELD_BYTES_MIN,
    HELD_HIGH_PERCENT,
    HELD_HIGH_S,
    HELD_RELIEVED_PERCENT,
    HELD_SHARE_PERCENT,
)

log = logging.getLogger("sockpqd.gateway")


class Holder(Protocol):
    """A client for which memory is held."""

    def evict(self) -> None:
        ...


class MemoryAccount:
    """The memory account of a node; at most `limit_bytes` may be held."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.evicted = 0                # holders evicted so far
        self.high = False               # little room is left
        self._holders: dict[Holder, int] = {}
        self._relieving = False
        self._timer: asyncio.TimerHandle | None = None      # while it is high: for when that has lasted too long

    def hold(self, holder: Holder, held_bytes: int) -> None:
        """Set the number of bytes held for this holder."""
        before = self._holders.get(holder, 0)
        if held_bytes:
            self._holders[holder] = held_bytes
        elif before:
            del self._holders[holder]
        self.held_bytes += held_bytes - before
        high = self.held_bytes * 100 > self.limit_bytes * HELD_HIGH_PERCENT
        if high is not self.high:
            self.high = high
            self._time_it()
        if self.held_bytes > self.limit_bytes and not self._relieving:
            self._relieve(HELD_HIGH_PERCENT, holder)

    def _time_it(self) -> None:
        """Start or stop the timer of a high account."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(HELD_HIGH_S, self._too_long) if self.high else None

    def _too_long(self) -> None:
        """Evict the largest holders: the account has been high for too long."""
        self._timer = None
        self._relieve(HELD_RELIEVED_PERCENT)

    def _relieve(self, percent: int, amid: Holder | None = None) -> None:
        """Evict the largest holders until no more than `percent` of the limit is held; at once, as one iteration of the
        loop can bring a lot more.

        `amid`: the holder that is making this call; it is evicted only in the next iteration.
        """
        self._relieving = True
        before, evicted = self.held_bytes, 0
        for holder in sorted(self._holders, key=self._holders.__getitem__, reverse=True):
            if self.held_bytes * 100 <= self.limit_bytes * percent:
                break
            if holder is amid:
                asyncio.get_running_loop().call_soon(holder.evict)
            else:
                holder.evict()
            self.hold(holder, 0)
            evicted += 1
        self._relieving = False
        self.evicted += evicted
        log.warning("%d bytes were held for clients, of %d that a node of this size can spare: the %d connections "
                    "that held most were cut", before, self.limit_bytes, evicted)


def held_bytes_max(memory_mark_bytes: int) -> int:
    """Return the limit of the account for this memory mark."""
    return max(HELD_BYTES_MIN, memory_mark_bytes * HELD_SHARE_PERCENT // 100)
