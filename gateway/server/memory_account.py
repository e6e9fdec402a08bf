"""What this node holds for its clients beside their jobs, in bytes: one sum, and who how much.

It is what they sent and is not executed yet, what they have not read, what they wait for, and the commands of open
transactions. Each pipeline tells when its part has changed; that costs nothing while it has none.

Above HIGH_PERCENT of the limit nobody is read who is ahead, and a body that is not here already is refused at its head.
Above the limit those who hold most lose their connections: whoever only waits or works holds little.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from gateway.limits import HELD_BYTES_MIN, HELD_HIGH_PERCENT, HELD_SHARE_PERCENT

log = logging.getLogger("sockpqd.gateway")


class Holder(Protocol):
    """Somebody for whom something is held."""

    def evict(self) -> None:
        """Let go of it at once."""


class Account:
    """`limit_bytes` is what may be held."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.evicted = 0                # holders that had to go, so far
        self.high = False               # there is little room left
        self._holders: dict[Holder, int] = {}
        self._relieving = False

    def hold(self, holder: Holder, held_bytes: int) -> None:
        """So much is held for this one from now on."""
        before = self._holders.get(holder, 0)
        if held_bytes:
            self._holders[holder] = held_bytes
        elif before:
            del self._holders[holder]
        self.held_bytes += held_bytes - before
        self.high = self.held_bytes * 100 > self.limit_bytes * HELD_HIGH_PERCENT
        if self.held_bytes > self.limit_bytes and not self._relieving:
            self._relieve(holder)

    def _relieve(self, amid: Holder) -> None:
        """Those who hold most go, until there is some room. At once: a round of the loop may bring a lot more.

        `amid` is one who is doing something just now: if it is his turn, he goes soon.
        """
        self._relieving = True
        before, evicted = self.held_bytes, 0
        for holder in sorted(self._holders, key=self._holders.__getitem__, reverse=True):
            if not self.high:
                break
            if holder is amid:
                asyncio.get_running_loop().call_soon(holder.evict)
            else:
                holder.evict()
            self.hold(holder, 0)
            evicted += 1
        self._relieving = False
        self.evicted += evicted
        log.warning("%d bytes were held for clients, more than a node of this size can spare (%d): the %d connections "
                    "that held most were cut", before, self.limit_bytes, evicted)


def held_bytes_max(memory_mark_bytes: int) -> int:
    """What may be held where memory has this mark."""
    return max(HELD_BYTES_MIN, memory_mark_bytes * HELD_SHARE_PERCENT // 100)
