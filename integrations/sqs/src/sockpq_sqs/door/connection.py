"""A connection of a client: what is expected of it, and since when."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from contextlib import suppress
from enum import StrEnum
from typing import Protocol

from aiohttp import web
from aiohttp.http import RawRequestMessage

from sockpq_sqs.door.limits import FIELD_BYTES_MAX, HEADERS_MAX, LINE_BYTES_MAX, LINGER_S

NO_LINGER = struct.pack("=ii", 1, 0)            # l_onoff, l_linger: the kernel keeps nothing of the connection
_NO_ACCESS_LOG = logging.Logger("nobody", logging.CRITICAL)


class Stage(StrEnum):
    """The stage of a connection; the value completes a sentence about its client."""

    HELLO = "has sent no request"
    IDLE = "has been idle"
    REQUEST = "has not completed its request"
    WORK = "waits for us"


class Host(Protocol):
    """The connections of a door."""

    def opened(self, connection: Connection) -> None:
        """Register a new connection."""

    def lost(self, connection: Connection) -> None:
        """Forget a connection, and release what was held for it."""

    def held(self, connection: Connection, held_bytes: int) -> None:
        """Set the memory that is held for a connection."""

    def cut_off(self, connection: Connection, why: str) -> None:
        """Count a connection that is cut off."""


class Connection(web.RequestHandler):
    """A connection; aiohttp reads its requests one after the other, up to 32 ahead.

    `address`: of the client, None for this machine; `known` becomes True with its first request that was
    verified.
    """

    def __init__(self, server: web.Server, host: Host, accepted: socket.socket, address: str | None) -> None:
        """`accepted`: its socket."""
        super().__init__(
            server, loop=asyncio.get_running_loop(), access_log=_NO_ACCESS_LOG, tcp_keepalive=False,
            lingering_time=LINGER_S, max_line_size=LINE_BYTES_MAX, max_field_size=FIELD_BYTES_MAX,
            max_headers=HEADERS_MAX, auto_decompress=False,
        )
        self.address = address
        self.known = False
        self.made = False                       # whether it came to be: a handshake may fail
        self.stage = Stage.HELLO
        self.work: asyncio.Task[object] | None = None       # that answers a request
        self._host = host
        self._accepted = accepted
        self._since = self._read_since = asyncio.get_running_loop().time()
        self._unsent_bytes = 0                  # at the last check

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record that the connection is made, its handshake of TLS included."""
        super().connection_made(transport)
        self.made = True
        self._host.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End, and with it the request that is being answered."""
        super().connection_lost(exc)
        self._messages.clear()                  # errors among them refer to this connection, and to what it received
        self._host.lost(self)

    def data_received(self, data: bytes) -> None:
        """Record that a request begins."""
        if self.stage is Stage.HELLO or self.stage is Stage.IDLE:
            self.enter(Stage.REQUEST)
        super().data_received(data)
        if self._messages and not isinstance(self._messages[-1][0], RawRequestMessage):
            self.close()                        # it is no HTTP: what follows is not read

    def enter(self, stage: Stage) -> None:
        """Begin a stage, whose time limit runs from now on."""
        self.stage = stage
        self._since = self._loop.time()

    def unsent_bytes(self) -> int:
        """Return the number of bytes of answers that the kernel has not taken."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def pause_writing(self) -> None:
        """Count an answer that the client does not read."""
        super().pause_writing()
        self._host.held(self, self.unsent_bytes())

    def resume_writing(self) -> None:
        """Stop counting the unread answer."""
        super().resume_writing()
        self._host.held(self, 0)

    def overdue(self, now: float, limits_s: dict[Stage, int], answer_timeout_s: int) -> str | None:
        """Return the reason to cut the client off, or None. Call it from time to time."""
        unsent_bytes = self.unsent_bytes()
        if not unsent_bytes or unsent_bytes < self._unsent_bytes:
            self._read_since = now
        self._unsent_bytes = unsent_bytes
        if unsent_bytes:
            return "does not read its answers" if 0 < answer_timeout_s < now - self._read_since else None
        limit_s = limits_s.get(self.stage, 0)
        return str(self.stage) if 0 < limit_s < now - self._since else None

    def cut(self, why: str) -> None:
        """Close at once; unsent output is dropped, by the kernel as well. A handshake of TLS fails."""
        self._host.cut_off(self, why)
        with suppress(OSError):                 # it is closed already
            self._accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            if not self.made:
                self._accepted.shutdown(socket.SHUT_RDWR)
        if self.transport is not None:
            self.transport.abort()

    def make_room(self) -> None:
        """Close at once, as another connection needs the place."""
        self.cut("made room for others")

    def evict(self) -> None:
        """Release what is held for it at once."""
        self.cut("holds too much memory")

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None,
    ) -> web.StreamResponse:
        """Answer input that is not HTTP. It is not logged, as anybody could fill the log with it.

        The traceback of the error refers to what was received, and with it to itself: a flood of such connections would
        take hundreds of megabytes until the garbage collector runs.
        """
        if exc is not None:
            exc.__traceback__ = exc.__context__ = exc.__cause__ = None
        response = web.Response(status=status, text="bad request\n")
        response.force_close()
        return response
