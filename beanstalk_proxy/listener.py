"""The listener of this program: connection limits, timeouts, and the memory held for all clients."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from msgspec import Struct

from sockpqd.beanstalk import ClientConnection, Stay
from sockpqd.connections import ConnectionManager, Listener, MemoryAccount, SlotKind, open_sockets

BACKLOG = 1024                  # connections that wait to be accepted


class ListenerLimits(Struct, frozen=True):
    """The counterpart of a node's `[limits]`; see connections.ConnectionLimits. Clients do not authenticate here."""

    connections_max: int = 10_000
    connections_per_address_max: int = 0
    hello_timeout_s: int = 30
    idle_timeout_s: int = 0
    auth_timeout_s: int = 0
    command_timeout_s: int = 300
    answer_timeout_s: int = 60


class ProxyListener:
    """Listens for clients of beanstalkd (beanstalk.Host)."""

    def __init__(self, limits: ListenerLimits, held_bytes_max: int) -> None:
        self._account = MemoryAccount(held_bytes_max)
        self._connections = ConnectionManager(limits, self._account)
        self._listener: Listener | None = None

    async def open(self, host: str, port: int, connection: Callable[[], ClientConnection]) -> int:
        """Listen on host ("": all addresses) and port (0: any free one), which is returned. Raises OSError."""
        async def serve(accepted: socket.socket) -> None:
            try:
                await asyncio.get_running_loop().connect_accepted_socket(connection, accepted)
            except OSError:                                 # it is gone already
                accepted.close()

        sockets = await open_sockets(host, port, BACKLOG)
        self._listener = Listener(sockets, serve)
        self._connections.watch()
        return int(sockets[0].getsockname()[1])

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    # ---- Host

    def receive(self, transport: asyncio.BaseTransport, connection: ClientConnection) -> Stay | None:
        """See Host. There are no extra places for administrators, as no client can authenticate here."""
        accepted = self._connections.receive(transport, connection)
        if accepted.slot is SlotKind.PROVISIONAL:
            accepted.leave()
        return None if accepted.slot is SlotKind.REFUSED else accepted

    def hold(self, connection: ClientConnection, held_bytes: int) -> None:
        self._account.hold(connection, held_bytes)

    def no_room(self) -> bool:
        return self._account.high
