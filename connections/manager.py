"""The connections of a process: their slots, the memory account, and the sweep that enforces the timeouts."""

from __future__ import annotations

import asyncio

from sockpqd.connections.accepted import AcceptedConnection, ManagedConnection
from sockpqd.connections.limits import SWEEP_PIECE, ConnectionLimits
from sockpqd.connections.memory_account import MemoryAccount
from sockpqd.connections.slots import ConnectionSlots, SlotKind
from sockpqd.connections.timeouts import sweep_s


class ConnectionManager:
    """Manages the client connections of a process, on all its listeners."""

    def __init__(self, limits: ConnectionLimits, account: MemoryAccount) -> None:
        self.limits = limits
        self.account = account
        self.slots = ConnectionSlots(limits)
        self.accepted: dict[AcceptedConnection, None] = {}
        self._sweeping: asyncio.Task[None] | None = None

    def receive(
        self, transport: asyncio.BaseTransport, connection: ManagedConnection, slots: ConnectionSlots | None = None,
    ) -> AcceptedConnection:
        """Register a new connection. Without a free slot the `slot` of the result is REFUSED.

        `slots` are the listener's, if it has slots of its own.
        """
        accepted = AcceptedConnection(transport, connection, self.limits, slots or self.slots, self._left)
        if accepted.slot is not SlotKind.REFUSED:
            self.accepted[accepted] = None
        return accepted

    def watch(self) -> None:
        """Check timeouts and kernel memory periodically, in a task, until `close`. Call it in the event loop."""
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep(sweep_s(self.limits)))

    def _left(self, accepted: AcceptedConnection) -> None:
        self.accepted.pop(accepted, None)

    def close(self) -> None:
        """Stop checking timeouts; open connections stay open."""
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def _sweep(self, interval_s: float) -> None:
        """Check the timeouts and the kernel memory of all connections periodically."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(interval_s)
            for number, accepted in enumerate(list(self.accepted), start=1):
                accepted.check(loop.time())
                if number % SWEEP_PIECE == 0:
                    await asyncio.sleep(0)
