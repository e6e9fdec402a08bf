"""The listening socket, and the orderly end of all connections."""

from __future__ import annotations

import asyncio
import logging

from gateway.connection import Connection
from gateway.hub import Hub
from gateway.limits import ACCEPT_BACKLOG, LINGER_S

log = logging.getLogger("sockpqd.gateway")


class Server:
    """Accepts clients for a hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen on host and port (0: a free one); returns the address listened on. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self._hub), host, port, backlog=ACCEPT_BACKLOG)
        address = self._server.sockets[0].getsockname()
        return str(address[0]), int(address[1])

    def stop_accepting(self) -> None:
        """No new clients from here on."""
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        """Close all connections behind what is answered; takes little more than a second at most."""
        self.stop_accepting()
        connections = self._hub.connections
        for connection in list(connections):
            connection.hang_up()
        deadline = asyncio.get_running_loop().time() + LINGER_S + 0.5
        while connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(connections):
            connection.abort()
