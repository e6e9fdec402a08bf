"""All connections of a door: their places, their timeouts, and the memory that is held for them."""

from __future__ import annotations

import asyncio

from sockpq_sqs.door.connection import Connection, Stage
from sockpq_sqs.door.figures import Figures
from sockpq_sqs.door.limits import MIB, SWEEP_PIECE
from sockpq_sqs.door.memory import MemoryAccount
from sockpq_sqs.door.places import Places
from sockpq_sqs.settings import Limits


class Connections:
    """Keeps the connections (connection.Host)."""

    def __init__(self, limits: Limits, figures: Figures) -> None:
        self.account = MemoryAccount(limits.memory_mib * MIB)
        self._all: dict[Connection, None] = {}
        self._places = Places(
            limits.connections_max, limits.connections_per_address_max or max(1, limits.connections_max // 2))
        self._figures = figures
        self._answer_timeout_s = limits.answer_timeout_s
        self._limits_s = {
            Stage.HELLO: limits.hello_timeout_s, Stage.IDLE: limits.idle_timeout_s,
            Stage.REQUEST: limits.request_timeout_s,
        }
        figures.connections = lambda: len(self._all)
        figures.held_bytes = lambda: self.account.held_bytes

    def __len__(self) -> int:
        return len(self._all)

    def place(self, connection: Connection) -> bool:
        """Take a place for a connection that is about to be made; returns False if there is none."""
        return self._places.take(connection)

    def leave(self, connection: Connection) -> None:
        """Release the place of a connection that was never made."""
        self._places.leave(connection)

    def recognise(self, connection: Connection) -> None:
        """Record that a connection is a user's."""
        if not connection.known:
            connection.known = True
            self._places.recognise(connection)

    def working(self) -> list[asyncio.Task[object]]:
        """Return the tasks that answer requests."""
        return [connection.work for connection in self._all if connection.work is not None]

    def close_idle(self) -> None:
        """Close all connections without a request."""
        for connection in list(self._all):
            if connection.work is None:
                connection.force_close()

    async def check(self) -> None:
        """Cut off the clients that take too long, in pieces."""
        now = asyncio.get_running_loop().time()
        for number, connection in enumerate(list(self._all), start=1):
            why = connection.overdue(now, self._limits_s, self._answer_timeout_s)
            if why is not None:
                connection.cut(why)
            if number % SWEEP_PIECE == 0:
                await asyncio.sleep(0)

    # ---- connection.Host

    def opened(self, connection: Connection) -> None:
        """See Host."""
        self._all[connection] = None

    def lost(self, connection: Connection) -> None:
        """See Host."""
        self._all.pop(connection, None)
        self._places.leave(connection)
        self.account.hold(connection, 0)

    def held(self, connection: Connection, held_bytes: int) -> None:
        """See Host."""
        self.account.hold(connection, held_bytes)

    def cut_off(self, connection: Connection, why: str) -> None:
        """See Host."""
        self._figures.cut[why] += 1
