"""The HTTP server. Its clients share the event loop with the queue, so their use of it is bounded.

They are managed like all connections of the node, but have their own slots, so that health checks are answered even
when all others are taken.

A connection carries one request and is closed after a few seconds, however slow or silent the client is. When too many
have not sent a request, the oldest is closed. Connections that wait for a page are counted separately, so that silent
clients only compete with other silent ones. When there are too many of these, the address with the most loses one: the
oldest that does not read its page or streams changes (live.py) and will reconnect; otherwise the newest, which is
refused. If it were always the oldest, clients arriving faster than pages are generated would all be cut off before they
get theirs. Health checks are answered at once and need no such place. While there are too many of either kind,
connections are accepted slowly, because clients of the queue go first. Streams of events (event_stream.py) are also
counted separately, and live for an hour; a thread writes them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable

from aiohttp import web
from msgspec import Struct

from sockpqd.connections import AcceptedConnection, ConnectionSlots, Expected, SlotKind, address_of
from sockpqd.gateway.monitoring.pages import HttpPages, busy, closing
from sockpqd.gateway.monitoring.stream_thread import Stream
from sockpqd.gateway.server.doors import HTTP, Door, Doors
from sockpqd.gateway.server.hub import Hub

log = logging.getLogger("sockpqd.http")

CONNECTIONS_MAX = 32            # whose request has not come yet, and as many that are answered
FULL_S = 0.005                  # pause before the next one is accepted while there are this many
CONNECTION_S = 10.0             # lifetime of a connection, and
STREAM_S = 3600.0               # of a stream of events
STREAMS_MAX = 32                # of those
SHUTDOWN_S = 0.1                # until handlers that have not ended are cancelled; aiohttp takes 0 for no limit
LINE_BYTES_MAX = 2048           # the first line, and each header
HEADERS_MAX = 50
LIVE = "/live"                  # the path of live.py
READ_COUNTED_BYTES = 4 << 10    # of requests with fewer nothing is counted

_NO_ACCESS_LOG = logging.Logger("nobody", logging.CRITICAL)


class HttpSlots(Struct, frozen=True):
    """The number of slots for HTTP; see SlotLimits."""

    connections_max: int = 2 * CONNECTIONS_MAX + STREAMS_MAX
    connections_per_address_max: int = 0


class HttpServer:
    """The HTTP server; see start()."""

    def __init__(self, pages: HttpPages, hub: Hub, doors: Doors, tls: ssl.SSLContext | None) -> None:
        self.hub = hub
        self.places = ConnectionSlots(HttpSlots())
        self._pages = pages
        self._server = web.Server(self._answer, handler_cancellation=True)
        self._doors = doors
        self._tls = tls
        self._door: Door | None = None
        self._connections: dict[asyncio.Task[None], str | None] = {}    # whose request has not come yet; oldest first
        self._answered: dict[asyncio.Task[None], _OneRequest] = {}      # that wait for a page; oldest first
        self._streams: dict[asyncio.Task[None], str | None] = {}        # streams of events

    async def open(self, host: str, port: int) -> None:
        """Begin to listen. Raises OSError."""
        self._door = await self._doors.open_for(HTTP, host, port, self._serve, self._pause_s)

    @property
    def address(self) -> tuple[str, int]:
        """The host and port listened on; the first if there are several."""
        assert self._door is not None
        return self._door.address

    async def close(self) -> None:
        if self._door is not None:
            self._door.close()
        tasks = [*self._connections, *self._answered, *self._streams]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.shutdown(SHUTDOWN_S)
        self._pages.close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request that has arrived; unless it is a GET, its body may still be arriving, however slowly."""
        protocol = request.protocol
        assert isinstance(protocol, _OneRequest)
        task = protocol.task
        if task in self._connections and request.method in ("GET", "HEAD") and not self._pages.is_quick(request):
            assert task is not None
            protocol.host = self._connections.pop(task)
            protocol.comes_back = request.path == LIVE
            self._answered[task] = protocol
            if len(self._answered) > CONNECTIONS_MAX and not self._make_room_for(task):
                del self._answered[task]
                self._connections[task] = protocol.host         # until it has read that
                return busy()
        return await self._pages.answer(request)

    def _make_room_for(self, newest: asyncio.Task[None]) -> bool:
        """End a request of the address with the most requests; returns False if that would be the newest of all."""
        answered = self._answered
        most = Counter(one.host for one in answered.values()).most_common(1)[0][0]
        its = [task for task, one in answered.items() if one.host == most]
        ended = next((task for task in its if answered[task].comes_back or answered[task].unsent_bytes()), its[-1])
        if ended is newest:
            return False
        ended.cancel()
        del answered[ended]
        return True

    def _pause_s(self) -> float:
        """Return how many seconds to wait before accepting more connections."""
        return FULL_S if max(len(self._connections), len(self._answered)) >= CONNECTIONS_MAX else 0.0

    def waits_for(self, task: asyncio.Task[None]) -> bool:
        """Return whether the request of this connection has not arrived yet."""
        return task in self._connections

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task, None)
        self._answered.pop(task, None)
        self._streams.pop(task, None)

    def _stay(self, task: asyncio.Task[None], limit: asyncio.Timeout) -> bool:
        """Keep a connection that streams events; returns whether there is room.

        Addresses share the room: a stream of the address with the most is ended to make room for one of an address with
        fewer.
        """
        if task not in self._answered:
            return False
        if len(self._streams) >= STREAMS_MAX:
            streams = Counter(self._streams.values())
            most, count = streams.most_common(1)[0]
            if count <= streams[self._answered[task].host] + 1:
                return False
            _end_oldest(self._streams, most)
        self._streams[task] = self._answered.pop(task).host
        limit.reschedule(asyncio.get_running_loop().time() + STREAM_S)
        return True

    async def _serve(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        protocol = _OneRequest(self._server, loop, self)
        task = asyncio.current_task()
        assert task is not None
        protocol.task = task
        try:
            host = address_of(connection.getpeername()[0])
        except OSError:                         # it is gone already
            connection.close()
            return
        try:        # Nothing cancels this: uvloop would close the socket, and the protocol would not hear of it.
            below, _ = await loop.connect_accepted_socket(
                lambda: self._doors.layered(protocol, self._tls), connection)
        except OSError:                         # it is gone already
            connection.close()
            return
        _make_room(self._connections)
        self._connections[task] = host
        task.add_done_callback(self._forget)
        try:
            async with asyncio.timeout(CONNECTION_S) as limit:
                protocol.stay = lambda: self._stay(task, limit)
                await protocol.gone
        except TimeoutError:                    # it is too slow
            pass
        finally:
            protocol.abort()
            below.abort()                       # its handshake may not be complete


class _OneRequest(web.RequestHandler):
    """A connection for one request; the future `gone` is done when it is closed."""

    unauthenticated = False            # each request has its own user

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop, home: HttpServer) -> None:
        super().__init__(
            server, loop=loop, access_log=_NO_ACCESS_LOG, keepalive_timeout=CONNECTION_S, lingering_time=0,
            max_line_size=LINE_BYTES_MAX, max_field_size=LINE_BYTES_MAX, max_headers=HEADERS_MAX,
            auto_decompress=False,
        )
        self.gone = loop.create_future()
        self.task: asyncio.Task[None] | None = None         # that serves it
        self.host: str | None = None                        # its client's address, once its request has come
        self.comes_back = False                             # whether its client asks again when it is cut
        self.stay: Callable[[], bool] = lambda: False       # lets it live longer, if there is room
        self.stream: Stream | None = None                   # of events, while it runs
        self._home = home
        self._accepted: AcceptedConnection | None = None
        self._read_bytes = 0
        self._held_bytes = 0                                # as last reported

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a client, or refuse it if there is no slot for it."""
        super().connection_made(transport)
        accepted = self._home.hub.connection_manager.receive(transport, self, self._home.places)
        if accepted.slot is SlotKind.GRANTED:
            self._accepted = accepted
            return
        accepted.leave()
        self.abort()

    def data_received(self, data: bytes) -> None:
        """Count the bytes of the request that have arrived."""
        if self._accepted is not None:
            self._read_bytes += len(data)
            super().data_received(data)
            self.weigh()

    def pause_writing(self) -> None:
        """Charge the client for output that it does not read."""
        super().pause_writing()
        if self._accepted is not None:
            self._accepted.measure()
            self.weigh()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._accepted is not None:
            self._accepted.kernel_bytes = 0
            self.weigh()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Resolve `gone`, and release everything that was held."""
        super().connection_lost(exc)
        if self._accepted is not None:
            self._accepted.leave()
            self._accepted = None
            self.weigh()
        if not self.gone.done():
            self.gone.set_result(None)

    # ---- ManagedConnection

    def expected(self) -> tuple[str, int]:
        if self.task is not None and self._home.waits_for(self.task):
            return (Expected.REST if self._read_bytes else Expected.HELLO), 0
        return Expected.OURS, 0

    def taken_bytes(self) -> int:
        """See ManagedConnection. For an answer only the amount read by the client counts."""
        return self.stream.sent_bytes if self.stream is not None else -self.unsent_bytes()

    def unsent_bytes(self) -> int:
        unsent = 0 if self.transport is None else self.transport.get_write_buffer_size()
        return unsent if self.stream is None else unsent + self.stream.held_bytes

    def weigh(self) -> None:
        held_bytes = 0
        if self._accepted is not None:
            held_bytes = self.unsent_bytes() + self._accepted.kernel_bytes
            if self._read_bytes >= READ_COUNTED_BYTES:
                held_bytes += self._read_bytes
        if held_bytes != self._held_bytes:
            self._held_bytes = held_bytes
            self._home.hub.account.hold(self, held_bytes)

    def cut(self, why: str) -> None:
        if self._accepted is not None:
            log.info("%s: connection cut, %s", self._accepted.peer, why)
        self.abort()

    def evict(self) -> None:
        """Release what is held for it at once."""
        self.cut("it holds too much memory")

    def abort(self) -> None:
        """Close immediately, dropping unsent output."""
        if self._accepted is not None:
            self._accepted.drop_when_closed()
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer input that is not HTTP. Not logged, as any client could fill the log with it."""
        return closing(web.Response(status=status, text="bad request\n"))


def _make_room(tasks: dict[asyncio.Task[None], str | None]) -> None:
    """End the oldest request of the address that has the most, if there are too many."""
    if len(tasks) < CONNECTIONS_MAX:
        return
    _end_oldest(tasks, Counter(tasks.values()).most_common(1)[0][0])


def _end_oldest(tasks: dict[asyncio.Task[None], str | None], address: str | None) -> None:
    """End the oldest of these requests from this address."""
    oldest = next(task for task, its in tasks.items() if its == address)
    oldest.cancel()
    del tasks[oldest]


async def start(
    doors: Doors, host: str, port: int, tls: ssl.SSLContext | None, pages: HttpPages, hub: Hub,
) -> HttpServer:
    """Serve the pages on host and port (0: any free one), over TLS if a context is given. Raises OSError."""
    server = HttpServer(pages, hub, doors, tls)
    await server.open(host, port)
    return server
