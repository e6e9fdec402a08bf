"""The TLS handshakes of one port.

A handshake costs a good part of a millisecond or more, and after an election a whole fleet connects at once. So they
are done in turns, some milliseconds in each round of the loop: whoever is connected is served meanwhile, and no
heartbeat is late. Those that say nothing cost nothing but a place, which they lose to the next ones.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

SLICE_S = 0.004
SILENT_S = 1.0                  # who says nothing for so long gives way when there is no place left
SWEEP_S = 0.5


class Handshake(Protocol):
    """A connection that is not trusted yet."""

    def step(self) -> None:
        """Go on."""

    @property
    def waits_for_us(self) -> bool:
        """Has it said something that we have not looked at?"""

    def refuse(self, why: str) -> None:
        """Close it."""

    def abort(self) -> None:
        """Close it at once."""


class Handshakes:
    """Who may have one, and when."""

    def __init__(self, limit: int, timeout_s: float, refused: Callable[[Any, str], None]) -> None:
        """`refused(address, why)`: something is wrong with a connection, in its handshake or later."""
        self.refused = refused
        self._limit = limit
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._begun: dict[Handshake, float] = {}        # when they began, the oldest first
        self._queue: deque[Handshake] = deque()
        self._scheduled = False
        self._sweeping: asyncio.TimerHandle | None = None

    def begin(self, handshake: Handshake) -> bool:
        """Somebody connected; may it stay? When there is no place left the longest silent one gives way."""
        now = self._loop.time()
        if len(self._begun) >= self._limit:
            silent = next((other for other in self._begun if not other.waits_for_us), None)
            if silent is None or now - self._begun[silent] < SILENT_S:
                return False
            self.end(silent)
            silent.abort()
        self._begun[handshake] = now
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(SWEEP_S, self._sweep)
        return True

    def end(self, handshake: Handshake) -> None:
        """It is done, or the connection is gone."""
        self._begun.pop(handshake, None)

    def due(self, handshake: Handshake) -> None:
        """Call its step() soon."""
        self._queue.append(handshake)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._work)

    def close(self) -> None:
        """End all that are not done."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for handshake in list(self._begun):
            handshake.abort()
        self._begun.clear()
        self._queue.clear()

    def _work(self) -> None:
        until = self._loop.time() + SLICE_S
        while self._queue:
            self._queue.popleft().step()
            if self._loop.time() > until:
                break
        self._scheduled = bool(self._queue)
        if self._queue:
            self._loop.call_soon(self._work)

    def _sweep(self) -> None:
        self._sweeping = None
        expired = self._loop.time() - self._timeout_s
        for handshake, begun in list(self._begun.items()):
            if begun > expired:
                break
            if not handshake.waits_for_us:
                self.end(handshake)
                handshake.refuse(f"its handshake was not done after {self._timeout_s:g} s")
        if self._begun:
            self._sweeping = self._loop.call_later(SWEEP_S, self._sweep)
