"""Turns of a user's requests: a few are executed at a time, and addresses whose requests wait take turns."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sockpq_http.access.peer import Peer
from sockpq_http.problems.errors import AGAIN
from sockpq_http.problems.problem import Problem


class HungUp(Exception):
    """The client has hung up before its request had a place: nobody waits for an answer."""


class Turns:
    """The places of one user's requests.

    A free place goes to the address that has fewest of them, and there to the request that came first. When too many
    wait, the last one of the address that has most of these gives up. A request whose client hangs up gives its place
    back at once, and counts as its address's until it has ended.
    """

    def __init__(self, places: int, waiting_max: int, patience_s: float, leaving_max: int) -> None:
        """`waiting_max`: requests that may wait, for `patience_s` seconds at most; `leaving_max`: requests that may be
        without a place, while they end.
        """
        self._free = places
        self._waiting_max = waiting_max
        self._patience_s = patience_s
        self._leaving_max = leaving_max
        self._leaving = 0
        self._taken: Counter[str] = Counter()
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}    # the address that had its turn last at the end

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return sum(map(len, self._lines.values()))

    @asynccontextmanager
    async def turn(self, peer: Peer) -> AsyncIterator[None]:
        """Execute a request of this client in the block. Raises HungUp, or Problem when there is no place in time."""
        await self._take(peer)
        leaves = False

        def hang_up() -> None:
            nonlocal leaves
            if self._leaving < self._leaving_max:
                leaves = True
                self._leaving += 1
                self._pass_on()

        peer.when_gone(hang_up)
        try:
            yield
        finally:
            peer.forget(hang_up)
            self._uncount(peer.address)
            if leaves:
                self._leaving -= 1
            else:
                self._pass_on()

    async def _take(self, peer: Peer) -> None:
        """Take a place, in turn."""
        if self._free:
            self._count(peer.address)
            return
        place = self._join(peer.address)

        def hang_up() -> None:
            if self._remove(peer.address, place):
                place.set_exception(HungUp())

        peer.when_gone(hang_up)
        try:
            async with asyncio.timeout(self._patience_s):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._uncount(peer.address)         # it came just then
                self._pass_on()
            self._remove(peer.address, place)
            if isinstance(error, TimeoutError):
                raise _too_many() from None
            raise
        finally:
            peer.forget(hang_up)

    def _join(self, address: str) -> asyncio.Future[None]:
        """Join the line of an address. Raises Problem when too many wait."""
        if self.waiting >= self._waiting_max:
            most = max(self._lines.values(), key=len, default=deque())
            if len(most) <= len(self._lines.get(address, ())) + 1:
                raise _too_many()
            most.pop().set_exception(_too_many())
        place = asyncio.get_running_loop().create_future()
        self._lines.setdefault(address, deque()).append(place)
        return place

    def _remove(self, address: str, place: asyncio.Future[None]) -> bool:
        """Remove a request from its line; returns whether it was there."""
        line = self._lines.get(address)
        if line is None or place not in line:
            return False
        line.remove(place)
        if not line:
            del self._lines[address]
        return True

    def _pass_on(self) -> None:
        """Pass a place that was given back on to the next request."""
        self._free += 1
        while self._lines:
            address = min(self._lines, key=lambda one: self._taken[one])
            line = self._lines.pop(address)
            place = line.popleft()
            if line:
                self._lines[address] = line
            if not place.done():                # else it was cancelled just now
                self._count(address)
                place.set_result(None)
                return

    def _count(self, address: str) -> None:
        self._free -= 1
        self._taken[address] += 1

    def _uncount(self, address: str) -> None:
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]


def _too_many() -> Problem:
    return Problem(503, "too many requests of this user are in progress", "busy", code=503, reason="Busy",
                   headers=AGAIN)
