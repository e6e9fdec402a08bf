"""Work of which little is done at a time, for hosts that take turns.

Whoever asks for a thousand things holds up himself: the next host has its turn after one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class Turns:
    """`limit`: how many have their turn at the same time."""

    def __init__(self, limit: int) -> None:
        self._free = limit              # not 0 only while nobody waits
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}      # by host; the first one is the next

    @contextlib.asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait for the turn of this host; it is over when the block ends."""
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
            else:                               # its turn had come
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
                self._waiting[host] = waiting   # behind the others
            if not come.done():                 # done: its client has gone
                come.set_result(None)
                return
        self._free += 1
