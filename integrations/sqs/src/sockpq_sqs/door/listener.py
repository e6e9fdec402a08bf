"""Accepts connections, only some in each turn of the loop, gives each its place, and does the handshake of TLS."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from sockpq_sqs.door.connection import NO_LINGER, Connection
from sockpq_sqs.door.connections import Connections
from sockpq_sqs.door.limits import (
    ACCEPTS_PER_TURN,
    BACKLOG,
    EXHAUSTED_S,
    HANDSHAKE_S,
    KEEPALIVE_IDLE_S,
    KEEPALIVE_INTERVAL_S,
    KEEPALIVE_PROBES,
    SEND_BUFFER_BYTES,
)
from sockpq_sqs.settings import is_loopback

log = logging.getLogger("sockpq-sqs")


async def open_sockets(host: str, port: int, *, reuse_port: bool) -> list[socket.socket]:
    """Open listening sockets for host ("": all) and port (0: any free one), one for each address. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            sockets.append(socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=reuse_port))
            sockets[-1].setblocking(False)
    except OSError:
        for opened in sockets:
            opened.close()
        raise
    return sockets


class Listener:
    """Accepts on its sockets until it is closed."""

    def __init__(
        self, sockets: list[socket.socket], connections: Connections,
        make: Callable[[socket.socket, str | None], Connection], tls: ssl.SSLContext | None,
    ) -> None:
        """`make` returns a connection for a socket and the address of its client, None for this machine."""
        self._sockets = sockets
        self._connections = connections
        self._make = make
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], Connection] = {}
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        for listening in sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Stop accepting, close the sockets, and end handshakes."""
        for listening in self._sockets:
            if listening in self._pauses:
                self._pauses.pop(listening).cancel()
            else:
                self._loop.remove_reader(listening)
            listening.close()
        self._sockets = []
        for connection in self._tasks.values():
            if not connection.made:
                connection.cut("the program ends")

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
            connection = self._make(accepted, address_of(address[0]))
            if not self._connections.place(connection):
                _drop(accepted)
                continue
            task = self._loop.create_task(self._begin(accepted, connection))
            self._tasks[task] = connection
            task.add_done_callback(self._tasks.pop)

    def _resume(self, listening: socket.socket) -> None:
        del self._pauses[listening]
        self._loop.add_reader(listening, self._accept, listening)

    async def _begin(self, accepted: socket.socket, connection: Connection) -> None:
        """Make the connection. Nothing cancels this: uvloop would close the socket, and nobody would hear of it."""
        try:
            accepted.setblocking(False)
            _set_up(accepted)
            await self._loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_S if self._tls is not None else None)
        except OSError:                         # it is gone already, or its handshake failed
            if not connection.made:
                self._connections.leave(connection)
                accepted.close()


def _set_up(accepted: socket.socket) -> None:
    """Let TCP notice that a host has vanished, and bound what the kernel holds for the client. Raises OSError."""
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)


def _drop(accepted: socket.socket) -> None:
    """Close a connection that has no place, so that the kernel keeps nothing of it."""
    with suppress(OSError):
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    accepted.close()


def address_of(host: str) -> str | None:
    """Return the address to count, None for this machine. For IPv6 it is the /64, as one host has 2^64 addresses."""
    if is_loopback(host):
        return None
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))
