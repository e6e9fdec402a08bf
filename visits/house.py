"""The shared state of all doors of a process: places, memory account, and the sweep that enforces timeouts."""

from __future__ import annotations

import asyncio

from sockpqd.visits.limits import SWEEP_PIECE, VisitLimits
from sockpqd.visits.memory_account import Account
from sockpqd.visits.places import Place, Places
from sockpqd.visits.timeouts import sweep_s
from sockpqd.visits.visit import Guest, Visit


class House:
    """The clients of a process, whichever door they came by."""

    def __init__(self, limits: VisitLimits, account: Account) -> None:
        self.limits = limits
        self.account = account
        self.places = Places(limits)
        self.visits: dict[Visit, None] = {}
        self._sweeping: asyncio.Task[None] | None = None

    def receive(self, transport: asyncio.BaseTransport, guest: Guest, places: Places | None = None) -> Visit:
        """Begin the visit of an accepted connection, if there is a place: see `Visit.place`.

        `places`: of its door, if that has places of its own.
        """
        visit = Visit(transport, guest, self.limits, places or self.places, self._left)
        if visit.place is not Place.NONE:
            self.visits[visit] = None
        return visit

    def watch(self) -> None:
        """Enforce the timeouts from now on."""
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep(sweep_s(self.limits)))

    def _left(self, visit: Visit) -> None:
        self.visits.pop(visit, None)

    def close(self) -> None:
        """Enforce no timeouts any more."""
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def _sweep(self, interval_s: float) -> None:
        """Check the timeouts of all connections periodically, and what the kernel holds for them."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(interval_s)
            for number, visit in enumerate(list(self.visits), start=1):
                visit.look(loop.time())
                if number % SWEEP_PIECE == 0:
                    await asyncio.sleep(0)
