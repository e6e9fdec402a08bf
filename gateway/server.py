"""The ports for clients, the time limits of all connections, and their orderly end."""

from __future__ import annotations

import asyncio
import logging
import ssl

from cluster import Complaints, Handshakes, Tls
from gateway.connection import Connection
from gateway.hub import Hub
from gateway.limits import ACCEPT_BACKLOG, HANDSHAKE_S, HANDSHAKES_MAX, LINGER_S, SWEEP_PIECE
from gateway.patience import sweep_s
from gateway.port import Port

log = logging.getLogger("sockpqd.gateway")


class Server:
    """Accepts clients for a hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._servers: list[asyncio.Server] = []
        self._complaints = Complaints(log)
        self._handshakes = Handshakes(HANDSHAKES_MAX, HANDSHAKE_S, self._complaints.tell)
        self._sweeping: asyncio.Task[None] | None = None

    async def start(
        self, host: str, number: int, *, port: Port = Port(), context: ssl.SSLContext | None = None  # noqa: B008
    ) -> tuple[str, int]:
        """Listen on host and port number (0: a free one), with TLS if there is a context; may be called for several
        ports. Returns the address listened on. Raises OSError.
        """
        def protocol() -> asyncio.Protocol:
            connection = Connection(self._hub, port, self._complaints)
            if context is None:
                return connection
            return Tls(context, connection, self._handshakes, server_side=True)

        loop = asyncio.get_running_loop()
        server = await loop.create_server(protocol, host, number, backlog=ACCEPT_BACKLOG)
        self._servers.append(server)
        interval_s = sweep_s(self._hub.limits)
        if self._sweeping is None and interval_s is not None:
            self._sweeping = loop.create_task(self._sweep(interval_s))
        address = server.sockets[0].getsockname()
        return str(address[0]), int(address[1])

    def stop_accepting(self) -> None:
        """No new clients from here on."""
        for server in self._servers:
            server.close()

    async def close(self) -> None:
        """Close all connections behind what is answered; takes little more than a second at most."""
        self.stop_accepting()
        self._handshakes.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        connections = self._hub.connections
        for connection in list(connections):
            connection.hang_up()
        deadline = asyncio.get_running_loop().time() + LINGER_S + 0.5
        while connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(connections):
            connection.abort()

    async def _sweep(self, interval_s: float) -> None:
        """Look at all connections now and then."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(interval_s)
            for number, connection in enumerate(list(self._hub.connections), start=1):
                connection.look(loop.time())
                if number % SWEEP_PIECE == 0:
                    await asyncio.sleep(0)
