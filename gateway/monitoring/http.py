"""The HTTP server. Its clients share the event loop with the queue, so their use of it is bounded.

A connection carries one request and is closed after a few seconds, however slow or silent the client is. When there are
too many, the oldest is closed: a page takes milliseconds, so that client is not asking or not reading. Those whose
request has come are counted apart, so that whoever connects and says nothing is in the way of others like them only;
while there are too many of these, connections are accepted slowly, as clients of the queue go first. Connections on
which events are told (event_stream.py) are counted apart, too, and live for an hour; a thread writes them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from aiohttp import web

from gateway.limits import EXHAUSTED_S
from gateway.monitoring.pages import Pages, closing
from gateway.server.listener import open_sockets

log = logging.getLogger("sockpqd.http")

CONNECTIONS_MAX = 32            # whose request has not come yet, and as many that are answered
FULL_S = 0.005                  # pause before the next one is accepted while there are this many
CONNECTION_S = 10.0             # lifetime of a connection, and
STREAM_S = 3600.0               # of one that events are told on
STREAMS_MAX = 32                # of those
HANDSHAKE_S = 3.0               # of TLS
LINE_BYTES_MAX = 2048           # the first line, and each header
HEADERS_MAX = 50
BACKLOG = 64                    # connections the kernel completes before we accept them

_NO_ACCESS_LOG = logging.Logger("nobody", logging.CRITICAL)


class HttpServer:
    """The listening HTTP server; see start()."""

    def __init__(self, pages: Pages, listeners: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        self._pages = pages
        self._server = web.Server(self._answer, handler_cancellation=True)
        self._listeners = listeners
        self._tls = tls
        self._connections: dict[asyncio.Task[None], None] = {}      # whose request has not come yet; oldest first
        self._answered: dict[asyncio.Task[None], None] = {}         # whose request has; oldest first
        self._streams: dict[asyncio.Task[None], None] = {}          # those that events are told on
        loop = asyncio.get_running_loop()
        self._accepting = [loop.create_task(self._accept(listener)) for listener in listeners]

    @property
    def address(self) -> tuple[str, int]:
        """The host and port listened on; the first if there are several."""
        address = self._listeners[0].getsockname()
        return str(address[0]), int(address[1])

    async def close(self) -> None:
        """Close everything immediately."""
        tasks = [*self._accepting, *self._connections, *self._answered, *self._streams]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        await self._server.shutdown(0)
        self._pages.close()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("cannot accept HTTP connections: %s. If file descriptors have run out, raise "
                            "LimitNOFILE.", error)
                await asyncio.sleep(EXHAUSTED_S)
                continue
            full = _make_room(self._connections)
            task = loop.create_task(self._serve(connection))
            self._connections[task] = None
            task.add_done_callback(self._forget)
            if full:
                await asyncio.sleep(FULL_S)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request that has come; of others than GET the body may still be on its way, however slowly."""
        task = getattr(request.protocol, "task", None)
        if task in self._connections and request.method in ("GET", "HEAD"):
            del self._connections[task]
            _make_room(self._answered)
            self._answered[task] = None
        return await self._pages.answer(request)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task, None)
        self._answered.pop(task, None)
        self._streams.pop(task, None)

    def _stay(self, task: asyncio.Task[None], limit: asyncio.Timeout) -> bool:
        """Let a connection stay, on which events are told; returns whether there is room."""
        if len(self._streams) >= STREAMS_MAX or task not in self._answered:
            return False
        self._streams[task] = self._answered.pop(task)
        limit.reschedule(asyncio.get_running_loop().time() + STREAM_S)
        return True

    async def _serve(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        protocol = _OneRequest(self._server, loop)
        task = asyncio.current_task()
        assert task is not None
        protocol.task = task
        try:
            async with asyncio.timeout(CONNECTION_S) as limit:
                protocol.stay = lambda: self._stay(task, limit)
                await loop.connect_accepted_socket(
                    lambda: protocol, connection, ssl=self._tls,
                    ssl_handshake_timeout=HANDSHAKE_S if self._tls else None,
                )
                await protocol.gone
        except (OSError, TimeoutError):         # a failed handshake, or too slow
            pass
        finally:
            if protocol.transport is not None:
                protocol.transport.abort()
            else:
                connection.close()


class _OneRequest(web.RequestHandler):
    """A connection for one request; the future `gone` is done when it is closed."""

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            server, loop=loop, access_log=_NO_ACCESS_LOG, keepalive_timeout=CONNECTION_S, lingering_time=0,
            max_line_size=LINE_BYTES_MAX, max_field_size=LINE_BYTES_MAX, max_headers=HEADERS_MAX,
            auto_decompress=False,
        )
        self.gone = loop.create_future()
        self.task: asyncio.Task[None] | None = None         # that serves it
        self.stay: Callable[[], bool] = lambda: False       # lets it live longer, if there is room

    def connection_lost(self, exc: BaseException | None) -> None:
        """Resolve `gone`."""
        super().connection_lost(exc)
        if not self.gone.done():
            self.gone.set_result(None)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer input that is not HTTP. Not logged, as any client could fill the log with it."""
        return closing(web.Response(status=status, text="bad request\n"))


def _make_room(tasks: dict[asyncio.Task[None], None]) -> bool:
    """End the oldest if there are too many; returns whether there were."""
    if len(tasks) < CONNECTIONS_MAX:
        return False
    oldest = next(iter(tasks))
    oldest.cancel()
    del tasks[oldest]
    return True


async def start(host: str, port: int, tls: ssl.SSLContext | None, pages: Pages) -> HttpServer:
    """Serve the pages on host and port (0: any free one), over TLS if a context is given. Raises OSError."""
    return HttpServer(pages, await open_sockets(host, port, BACKLOG), tls)
