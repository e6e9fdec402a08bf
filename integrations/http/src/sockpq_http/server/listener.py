"""Accepts connections, only some in each turn of the loop, gives each its place, and does the handshake of TLS."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress

from sockpq_http.server.connection import GuardedConnection
from sockpq_http.server.metrics import Metrics
from sockpq_http.server.places import Places

log = logging.getLogger("sockpq-http")

ACCEPTS_PER_TURN = 32       # so that a flood does not keep others waiting
BACKLOG = 1024              # connections that the kernel keeps meanwhile
EXHAUSTED_S = 0.5           # for which nothing is accepted when file descriptors have run out
GONE_S = 30                 # after which a host that does not answer counts as gone
SEND_BYTES = 131_072        # what the kernel holds for a client

_NO_LINGER = struct.pack("=ii", 1, 0)           # l_onoff, l_linger


async def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Open listening sockets for host ("": all) and port (0: any free one), one for each address. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            sockets.append(socket.create_server(address, family=family, backlog=BACKLOG))
            sockets[-1].setblocking(False)
    except OSError:
        for opened in sockets:
            opened.close()
        raise
    return sockets


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
        self.sockets = sockets
        self._places = places
        self._metrics = metrics
        self._make = make
        self._tls = tls
        self._handshake_timeout_s = handshake_timeout_s if tls is not None else None
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], GuardedConnection] = {}
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        for listening in sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Stop accepting, close the sockets, and end handshakes."""
        for listening in self.sockets:
            if listening in self._pauses:
                self._pauses.pop(listening).cancel()
            else:
                self._loop.remove_reader(listening)
            listening.close()
        self.sockets = []
        for connection in self._tasks.values():
            if not connection.made:
                connection.make_room()

    async def wait_closed(self) -> None:
        """Wait until no more connections begin."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, ConnectionError):      # none is waiting, or it is gone already
                return
            except OSError as error:                        # no descriptors, or no memory for another connection
                log.warning("cannot accept connections: %s. If file descriptors have run out, raise LimitNOFILE.",
                            error)
                self._loop.remove_reader(listening)
                self._pauses[listening] = self._loop.call_later(EXHAUSTED_S, self._resume, listening)
                return
            connection = self._make(accepted, address[0])
            if not self._places.take(connection):
                self._metrics.cut.labels("places").inc()
                _drop(accepted)
                continue
            task = self._loop.create_task(self._begin(accepted, connection))
            self._tasks[task] = connection
            task.add_done_callback(self._tasks.pop)

    def _resume(self, listening: socket.socket) -> None:
        del self._pauses[listening]
        self._loop.add_reader(listening, self._accept, listening)

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
