"""Events over HTTP, as server-sent events (spec/events 6): the request for /events, and the
connection of a stream until its thread has it (stream_thread.py)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from aiohttp import HttpVersion11, web

from sockpqd.core import EVENT_TYPES
from sockpqd.gateway.events.filters import Filter
from sockpqd.gateway.monitoring.stream_thread import ALIVE, Direct, Stream, StreamGuard, StreamThread
from sockpqd.gateway.protocol.arguments import unsigned
from sockpqd.gateway.protocol.grammar.events import read_names, read_types

UNSENT_S = 0.001        # between two looks whether the head of the answer is sent
TLS_PIECE_BYTES = 16_384        # one record; a stream has one in 20 ms, 800 KB/s


@runtime_checkable
class Hearer(Protocol):
    """A connection that can stream events."""

    stream: Stream | None


def asked(request: web.BaseRequest) -> tuple[Filter, int | None]:
    """Parse the query: `types` and `names` as of SUBSCRIBE, and the number after which to begin.

    The number is `from`, or the header with which a client reconnects. Raises ArgumentError.
    """
    query = request.rel_url.query
    types = "|".join(query.getall("types", []) + query.getall("type", [])) or "|".join(EVENT_TYPES)
    names = "|".join(query.getall("names", []) + query.getall("name", []))
    after = request.headers.get("Last-Event-ID") or query.get("from")
    exact, prefixes = read_names(names.encode()) if names else ((), ())
    return Filter(read_types(types.encode()), exact, prefixes), None if after is None else unsigned(after.encode())


async def tell(
    request: web.BaseRequest, thread: StreamThread, wish: Filter, after: int | None, guard: StreamGuard,
) -> web.StreamResponse:
    """Let the thread send events until the client goes, does not read, or its user is deleted."""
    response = web.StreamResponse(headers={
        "Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Server": "sockpqd",
        "X-Accel-Buffering": "no",
    })
    response.force_close()
    transport = request.transport
    assert transport is not None
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    stream = thread.begin(wish, after, guard, lambda: _call(loop, over.set))
    hearer = request.protocol
    if isinstance(hearer, Hearer):
        hearer.stream = stream                          # what it holds counts for this connection
    stream.chunked = request.version >= HttpVersion11
    try:
        await response.prepare(request)
        await response.write(ALIVE)
        while transport.get_write_buffer_size():        # from now on the thread writes
            await asyncio.sleep(UNSENT_S)
        if transport.get_extra_info("ssl_object") is None:
            stream.connect(Direct(transport.get_extra_info("socket").fileno()))
        else:
            stream.connect(Encrypted(transport, loop))
        await over.wait()
        transport.abort()
    except ConnectionError:
        pass
    finally:
        thread.end(stream)
    return response


class Encrypted:
    """A connection with TLS, for which the loop encrypts a piece of bounded size each time the thread asks.

    This limits what the loop has to encrypt in one turn, however much is due to all streams.
    """

    def __init__(self, transport: asyncio.WriteTransport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting = 0               # bytes that the loop has not been at

    def send(self, data: bytes) -> int:
        """Give a piece to the loop, unless it has one, or the client does not read."""
        if self._waiting or self._transport.get_write_buffer_size():
            return 0
        piece = data[:TLS_PIECE_BYTES]
        self._waiting = len(piece)
        _call(self._loop, lambda: self._write(piece))
        return len(piece)

    def close(self) -> None:
        """Let the loop close the connection."""

    def _write(self, data: bytes) -> None:
        self._transport.write(data)
        self._waiting = 0


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call it in the loop, if the loop still runs."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
