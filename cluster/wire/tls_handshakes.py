"""Schedules the TLS handshakes of one port.

A handshake costs up to a millisecond or more, and after an election all clients connect at once. So only a few
milliseconds of handshakes are done in each turn of the loop: connected clients are served meanwhile, and no heartbeat
is late. Silent connections cost nothing but a place, which they lose to new ones. When no place is left, addresses
share them: a new connection takes the place of one whose address has more of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

SLICE_S = 0.004
SILENT_S = 1.0                  # a connection silent for this long gives way when there is no place left
SWEEP_S = 0.5


class Handshake(Protocol):
    """A connection whose handshake is not complete."""

    def step(self) -> None:
        """Continue the handshake with received bytes."""

    @property
    def waits_for_us(self) -> bool:
        """True if the other side has sent something that has not been handled yet."""

    def refuse(self, why: str) -> None:
        """Log the reason and close the connection."""

    def abort(self) -> None:
        """Close the connection at once."""


class Handshakes:
    """The handshakes in progress, at most `limit`, each at most `timeout_s` seconds long."""

    def __init__(
        self, limit: int, timeout_s: float, refused: Callable[[Any, str], None],
        address_of: Callable[[str], str | None] = lambda host: host,
    ) -> None:
        """`refused(address, why)` is called when a connection is refused, in its handshake or later.

        `address_of(host)`: what counts as one address.
        """
        self.refused = refused
        self._address_of = address_of
        self._limit = limit
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._begun: dict[Handshake, float] = {}        # start times, the oldest first
        self._addresses: dict[Handshake, str | None] = {}
        self._by_address: dict[str | None, dict[Handshake, None]] = {}      # the oldest of each first
        self._queue: deque[Handshake] = deque()
        self._scheduled = False
        self._sweeping: asyncio.TimerHandle | None = None

    def begin(self, handshake: Handshake, host: str) -> bool:
        """Register a connection from this host; returns False if it must be closed because there is no place left.

        To make room, a connection is closed: one of the address with the most connections, if it has more than the new
        one's address; otherwise the one that has been silent longest, if for at least SILENT_S.
        """
        now, address = self._loop.time(), self._address_of(host)
        if len(self._begun) >= self._limit:
            other = self._of_most(address) or self._silent(now - SILENT_S)
            if other is None:
                return False
            self.end(other)
            other.abort()
        self._begun[handshake] = now
        self._addresses[handshake] = address
        self._by_address.setdefault(address, {})[handshake] = None
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(SWEEP_S, self._sweep)
        return True

    def _of_most(self, address: str | None) -> Handshake | None:
        """Return a handshake of the address that has the most; None if `address` would then have as many."""
        most = max(self._by_address.values(), key=len)
        if len(most) <= len(self._by_address.get(address, ())) + 1:
            return None
        return next((other for other in most if not other.waits_for_us), next(iter(most)))

    def _silent(self, before: float) -> Handshake | None:
        """Return the handshake that has been silent longest, if it began before this time."""
        silent = next((other for other in self._begun if not other.waits_for_us), None)
        return None if silent is None or self._begun[silent] > before else silent

    def end(self, handshake: Handshake) -> None:
        """Remove a handshake that is complete or whose connection ended."""
        if self._begun.pop(handshake, None) is not None:
            address = self._addresses.pop(handshake)
            of_address = self._by_address[address]
            del of_address[handshake]
            if not of_address:
                del self._by_address[address]

    def due(self, handshake: Handshake) -> None:
        """Queue a handshake for its next step()."""
        self._queue.append(handshake)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._work)

    def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        for handshake in list(self._begun):
            self.end(handshake)
            handshake.abort()
        self._queue.clear()

    def _work(self) -> None:
        until = self._loop.time() + SLICE_S
        try:
            while self._queue:
                self._queue.popleft().step()
                if self._loop.time() > until:
                    break
        finally:                                # an error of one handshake, which the loop logs, stops no other
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
