"""A concurrency limit that is fair between hosts.

A host that queues a thousand tasks delays only itself: other hosts get their turn after one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class FairTurns:
    """Grants at most `limit` turns at a time, round-robin by host."""

    def __init__(self, limit: int) -> None:
        self._free = limit              # greater than 0 only if none are waiting
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}      # by host; the first is next

    @contextlib.asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait for a turn of this host and hold it until the block ends."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(host)
        try:
            yield
        finally:
            self._next()

    async def _wait(self, host: str) -> None:
        come = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(host, deque()).append(come)
        try:
            await come
        except asyncio.CancelledError:
            if come.cancelled():
                self._forget(host, come)
            else:                               # its turn had already come
                self._next()
            raise

    def _forget(self, host: str, come: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(host)
        if waiting is not None and come in waiting:
            waiting.remove(come)
            if not waiting:
                del self._waiting[host]

    def _next(self) -> None:
        while self._waiting:
            host = next(iter(self._waiting))
            waiting = self._waiting.pop(host)
            come = waiting.popleft()
            if waiting:
                self._waiting[host] = waiting   # after the other hosts
            if not come.done():                 # done: its client is gone
                come.set_result(None)
                return
        self._free += 1
