"""The door of this program: who is let in, how long it may be silent, and how much memory is held for all."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from msgspec import Struct

from sockpqd.beanstalk import Connection, Stay
from sockpqd.visits import Account, House, Listener, Place, open_sockets

BACKLOG = 1024                  # connections that wait to be accepted


class DoorLimits(Struct, frozen=True):
    """The limits that a node has in `[limits]`; see visits.VisitLimits. Nobody authenticates here."""

    connections_max: int = 10_000
    connections_per_address_max: int = 0
    hello_timeout_s: int = 30
    idle_timeout_s: int = 0
    auth_timeout_s: int = 0
    command_timeout_s: int = 300
    answer_timeout_s: int = 60


class Door:
    """Listens for clients of beanstalkd (beanstalk.Host)."""

    def __init__(self, limits: DoorLimits, held_bytes_max: int) -> None:
        self._account = Account(held_bytes_max)
        self._house = House(limits, self._account)
        self._listener: Listener | None = None

    async def open(self, host: str, port: int, connection: Callable[[], Connection]) -> int:
        """Listen on host ("": all addresses) and port (0: any free one), which is returned. Raises OSError."""
        async def serve(accepted: socket.socket) -> None:
            try:
                await asyncio.get_running_loop().connect_accepted_socket(connection, accepted)
            except OSError:                                 # it is gone already
                accepted.close()

        sockets = await open_sockets(host, port, BACKLOG)
        self._listener = Listener(sockets, serve)
        self._house.watch()
        return int(sockets[0].getsockname()[1])

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    # ---- Host

    def receive(self, transport: asyncio.BaseTransport, connection: Connection) -> Stay | None:
        """See Host. There is no operator's way in: nobody can prove here to be one."""
        visit = self._house.receive(transport, connection)
        if visit.place is Place.TRIAL:
            visit.leave()
        return None if visit.place is Place.NONE else visit

    def hold(self, connection: Connection, held_bytes: int) -> None:
        self._account.hold(connection, held_bytes)

    def no_room(self) -> bool:
        return self._account.high
