"""All doors of a node for clients: the only module of the gateway that listens.

A door is a port of one kind. Its opener passes the function that serves its connections; each of these is registered
with the node's ConnectionManager (connections/), which assigns its slot, timeouts and share in the memory account. A
new kind of door needs a row here; the test of the doors lists everything else it needs.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

from sockpqd.cluster import Handshakes, RefusalLog, TlsTransport
from sockpqd.connections import ConnectionManager, Listener, address_of, open_sockets
from sockpqd.gateway.limits import ACCEPT_BACKLOG, HANDSHAKE_BYTES, HANDSHAKE_S, HANDSHAKES_MAX

log = logging.getLogger("sockpqd.gateway")


class DoorKind(Struct, frozen=True):
    """A kind of listener: its name, and how many connections may wait to be accepted."""

    name: str
    backlog: int = ACCEPT_BACKLOG       # connections that the kernel completes before they are accepted


NATIVE = DoorKind("native")
LEGACY = DoorKind("legacy")                 # native, without TLS, for clients that cannot authenticate
BEANSTALKD = DoorKind("beanstalkd")
HTTP = DoorKind("http", backlog=64)
KINDS = (NATIVE, LEGACY, BEANSTALKD, HTTP)

Serve = Callable[[socket.socket], Coroutine[Any, Any, None]]


class Door:
    """A listener that accepts connections of one kind until it is closed."""

    def __init__(
        self, kind: DoorKind, sockets: list[socket.socket], serve: Serve, pause_s: Callable[[], float],
    ) -> None:
        address = sockets[0].getsockname()
        self.kind = kind
        self.address = str(address[0]), int(address[1])     # the first if there are several
        self._listener = Listener(sockets, serve, pause_s)

    def close(self) -> None:
        self._listener.close()


class Doors:
    """The doors of one node. `connections`: those of all doors together."""

    def __init__(self, connections: ConnectionManager, handshakes_max: int | None = None) -> None:
        self.complaints = RefusalLog(log)
        self._connections = connections
        room = connections.account.limit_bytes // 2 // HANDSHAKE_BYTES
        self.handshakes_max = min(HANDSHAKES_MAX if handshakes_max is None else handshakes_max, room)
        self._handshakes = Handshakes(self.handshakes_max, HANDSHAKE_S, self.complaints.refused, address_of)

    async def open(
        self, kind: DoorKind, host: str, number: int, protocol: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext | None = None,
    ) -> Door:
        """Listen on host and port number (0: any free one), with TLS if a context is given; `protocol` makes what
        serves a connection. Raises OSError, and ValueError for a kind that is not listed.
        """
        async def serve(connection: socket.socket) -> None:
            try:
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: self.layered(protocol(), context), connection)
            except OSError:                                 # it is gone already
                connection.close()

        return await self.open_for(kind, host, number, serve)

    async def open_for(
        self, kind: DoorKind, host: str, number: int, serve: Serve, pause_s: Callable[[], float] = lambda: 0.0,
    ) -> Door:
        """Open a door for a server that makes protocols itself, and has them `layered`.

        `pause_s`: returns how many seconds to wait before accepting more connections.
        """
        if kind not in KINDS:
            raise ValueError(f"{kind.name!r} is no kind of door that is known")
        door = Door(kind, await open_sockets(host, number, kind.backlog), serve, pause_s)
        self._connections.watch()
        return door

    def layered(self, protocol: asyncio.Protocol, context: ssl.SSLContext | None) -> asyncio.Protocol:
        """Return the protocol for a TCP connection: this one, or TLS with it on top if a context is given.

        All doors share the budget of handshakes and the rules for records.
        """
        if context is None:
            return protocol
        return TlsTransport(context, protocol, self._handshakes, server_side=True)

    def close(self) -> None:
        """End handshakes that have not succeeded, and enforce timeouts no longer."""
        self._handshakes.close()
        self._connections.close()
