"""The server: listens on the client ports, enforces timeouts, and closes connections in an orderly way."""

from __future__ import annotations

import asyncio
import logging
import ssl

from cluster import Handshakes, RefusalLog, TlsTransport
from gateway.limits import ACCEPT_BACKLOG, HANDSHAKE_S, HANDSHAKES_MAX, LINGER_S, SWEEP_PIECE
from gateway.server.connection import Connection
from gateway.server.hub import Hub
from gateway.server.listener import Listener, open_sockets
from gateway.server.port import Port
from gateway.server.timeouts import sweep_s

log = logging.getLogger("sockpqd.gateway")


class Server:
    """Accepts clients for a hub."""

    def __init__(self, hub: Hub, handshakes_max: int | None = None) -> None:
        self._hub = hub
        self._listeners: list[Listener] = []
        self._complaints = RefusalLog(log)
        self._handshakes = Handshakes(
            HANDSHAKES_MAX if handshakes_max is None else handshakes_max, HANDSHAKE_S, self._complaints.refused,
        )
        self._sweeping: asyncio.Task[None] | None = None

    async def start(
        self, host: str, number: int, *, port: Port = Port(), context: ssl.SSLContext | None = None  # noqa: B008
    ) -> tuple[str, int]:
        """Listen on host and port number (0: any free one), with TLS if a context is given; can be called for several
        ports. Returns the address listened on. Raises OSError.
        """
        def protocol() -> asyncio.Protocol:
            connection = Connection(self._hub, port, self._complaints)
            if context is None:
                return connection
            return TlsTransport(context, connection, self._handshakes, server_side=True)

        sockets = await open_sockets(host, number, ACCEPT_BACKLOG)
        self._listeners.append(Listener(sockets, protocol))
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep(sweep_s(self._hub.limits)))
        address = sockets[0].getsockname()
        return str(address[0]), int(address[1])

    def stop_accepting(self) -> None:
        """Stop accepting new clients."""
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    async def close(self) -> None:
        """Close all connections after their pending answers; takes little more than a second at most."""
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
        for connection in [*connections, *self._hub.refused]:
            connection.abort()

    async def _sweep(self, interval_s: float) -> None:
        """Check the timeouts of all connections periodically."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(interval_s)
            for number, connection in enumerate(list(self._hub.connections), start=1):
                connection.look(loop.time())
                if number % SWEEP_PIECE == 0:
                    await asyncio.sleep(0)
