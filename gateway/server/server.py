"""The server for native clients: opens their ports, and closes their connections in an orderly way."""

from __future__ import annotations

import asyncio
import ssl

from sockpqd.gateway.limits import LINGER_S
from sockpqd.gateway.server.connection import Connection
from sockpqd.gateway.server.doors import LEGACY, NATIVE, Door, Doors
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.port import Port


class Server:
    """Accepts clients for a hub."""

    def __init__(self, hub: Hub, doors: Doors) -> None:
        self._hub = hub
        self.doors = doors
        self._open: list[Door] = []

    async def start(
        self, host: str, number: int, *, port: Port = Port(), context: ssl.SSLContext | None = None  # noqa: B008
    ) -> tuple[str, int]:
        """Listen on host and port number (0: any free one), with TLS if a context is given; can be called for several
        ports. Returns the address listened on. Raises OSError.
        """
        def protocol() -> asyncio.Protocol:
            return Connection(self._hub, port, self.doors.complaints)

        kind = NATIVE if port.user is None else LEGACY
        self._open.append(await self.doors.open(kind, host, number, protocol, context))
        return self._open[-1].address

    def stop_accepting(self) -> None:
        for door in self._open:
            door.close()
        self._open.clear()

    async def close(self) -> None:
        """Close all connections after their pending answers; takes little more than a second at most."""
        self.stop_accepting()
        self.doors.close()
        connections = self._hub.connections
        for connection in list(connections):
            connection.hang_up()
        deadline = asyncio.get_running_loop().time() + LINGER_S + 0.5
        while connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for connection in [*connections, *self._hub.refused]:
            connection.abort()
