"""Gives each connection that is accepted its place, and does the handshake of TLS."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from sockpq_sqs.door.accepting import Acceptor
from sockpq_sqs.door.connection import NO_LINGER, Connection
from sockpq_sqs.door.connections import Connections
from sockpq_sqs.door.limits import (
    HANDSHAKE_S,
    KEEPALIVE_IDLE_S,
    KEEPALIVE_INTERVAL_S,
    KEEPALIVE_PROBES,
    SEND_BUFFER_BYTES,
)
from sockpq_sqs.settings import is_loopback

log = logging.getLogger("sockpq-sqs")


class Listener:
    """Accepts on its sockets until it is closed."""

    def __init__(
        self, sockets: list[socket.socket], connections: Connections,
        make: Callable[[socket.socket, str | None], Connection], tls: ssl.SSLContext | None,
    ) -> None:
        """`make` returns a connection for a socket and the address of its client, None for this machine."""
        self._connections = connections
        self._make = make
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], Connection] = {}
        self._acceptor = Acceptor(sockets, self._take, log)

    def close(self) -> None:
        """Stop accepting, close the sockets, and end handshakes."""
        self._acceptor.close()
        for connection in self._tasks.values():
            if not connection.made:
                connection.cut("the program ends")

    async def wait_closed(self) -> None:
        """Wait until no more connections begin."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _take(self, accepted: socket.socket, address: str) -> float:
        connection = self._make(accepted, address_of(address))
        if self._connections.place(connection):
            task = self._loop.create_task(self._begin(accepted, connection))
            self._tasks[task] = connection
            task.add_done_callback(self._tasks.pop)
        else:
            _drop(accepted)
        return 0.0

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
