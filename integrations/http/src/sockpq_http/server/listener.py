"""Gives each connection that is accepted its place, and does the handshake of TLS."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress

from sockpq_http.server.accepting import Acceptor
from sockpq_http.server.connection import GuardedConnection
from sockpq_http.server.metrics import Metrics
from sockpq_http.server.places import Places

log = logging.getLogger("sockpq-http")

GONE_S = 30                 # after which a host that does not answer counts as gone
SEND_BYTES = 131_072        # what the kernel holds for a client

_NO_LINGER = struct.pack("=ii", 1, 0)           # l_onoff, l_linger


class Listener:
    """Accepts on its sockets until it is closed, in place of an asyncio server."""

    def __init__(
        self, sockets: list[socket.socket], places: Places, metrics: Metrics,
        make: Callable[[socket.socket, str], GuardedConnection], tls: ssl.SSLContext | None,
        handshake_timeout_s: float,
    ) -> None:
        """`make` returns the connection of a socket that was accepted from a client at this address.

        `handshake_timeout_s`: the time that a handshake of TLS may take.
        """
        self._places = places
        self._metrics = metrics
        self._make = make
        self._tls = tls
        self._handshake_timeout_s = handshake_timeout_s if tls is not None else None
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], GuardedConnection] = {}
        self._acceptor = Acceptor(sockets, self._take, log)

    @property
    def sockets(self) -> list[socket.socket]:
        """The sockets that it accepts from."""
        return self._acceptor.sockets

    def close(self) -> None:
        """Stop accepting, close the sockets, and end handshakes."""
        self._acceptor.close()
        for connection in self._tasks.values():
            if not connection.made:
                connection.make_room()

    async def wait_closed(self) -> None:
        """Wait until no more connections begin."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _take(self, accepted: socket.socket, address: str) -> float:
        connection = self._make(accepted, address)
        if self._places.take(connection):
            task = self._loop.create_task(self._begin(accepted, connection))
            self._tasks[task] = connection
            task.add_done_callback(self._tasks.pop)
        else:
            self._metrics.cut.labels("places").inc()
            _drop(accepted)
        return 0.0

    async def _begin(self, accepted: socket.socket, connection: GuardedConnection) -> None:
        """Make the connection. Nothing cancels this: uvloop would close the socket, and nobody would hear of it."""
        try:
            accepted.setblocking(False)
            _set_up(accepted)
            await self._loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=self._handshake_timeout_s)
        except OSError:                         # it is gone already, or its handshake failed
            if not connection.made:
                self._places.leave(connection)
                accepted.close()
                if self._tls is not None:
                    self._metrics.cut.labels("handshake").inc()


def _set_up(accepted: socket.socket) -> None:
    """Let the kernel hold little, and notice a host that has vanished. Raises OSError."""
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, GONE_S // 3)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, GONE_S // 6)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


def _drop(accepted: socket.socket) -> None:
    """Close a connection that has no place, so that the kernel keeps nothing of it."""
    with suppress(OSError):
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    accepted.close()
