"""Events over HTTP, as server-sent events (spec/events 6): what /events is asked for, and one stream of them."""

from __future__ import annotations

import asyncio

from aiohttp import web

from core import EVENT_TYPES
from gateway.auth.permissions import may_hear
from gateway.events.filters import Filter
from gateway.events.subscriptions import Subscriptions
from gateway.protocol.arguments import unsigned
from gateway.protocol.grammar.events import read_names, read_types
from gateway.rights import Rights

ALIVE_S = 15.0          # a stream without events says so often that it lives


def asked(request: web.BaseRequest) -> tuple[Filter, int | None]:
    """What the query asks for: `types` and `names` as of SUBSCRIBE, and the number to begin behind.

    That is `from`, or the header by which a client comes back. Raises ArgumentError.
    """
    query = request.rel_url.query
    types = "|".join(query.getall("types", []) + query.getall("type", [])) or "|".join(EVENT_TYPES)
    names = "|".join(query.getall("names", []) + query.getall("name", []))
    after = request.headers.get("Last-Event-ID") or query.get("from")
    exact, prefixes = read_names(names.encode()) if names else ((), ())
    return Filter(read_types(types.encode()), exact, prefixes), None if after is None else unsigned(after.encode())


async def tell(
    request: web.BaseRequest, subscriptions: Subscriptions, wish: Filter, after: int | None, rights: Rights | None,
) -> web.StreamResponse:
    """Tell events until the client goes, or does not read. `rights`: of its user; None: all."""
    response = web.StreamResponse(headers={
        "Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Server": "sockpqd",
        "X-Accel-Buffering": "no",
    })
    response.force_close()
    hearer = _Hearer(request, rights)
    subscription = subscriptions.add(hearer, wish, after)
    try:
        await response.prepare(request)
        await response.write(b":\n\n")
        subscriptions.begin(subscription)
        while not hearer.ended:
            await response.write(await hearer.next() or b":\n\n")
    except ConnectionError:
        pass
    finally:
        subscriptions.remove(subscription)
    return response


class _Hearer:
    """The client as a subscriber."""

    def __init__(self, request: web.BaseRequest, rights: Rights | None) -> None:
        self.ended = False
        self._request = request
        self._rights = rights
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._woken = asyncio.Event()

    async def next(self) -> bytes:
        """What is to be sent next; b"" when there was nothing for a while."""
        try:
            async with asyncio.timeout(ALIVE_S):
                await self._woken.wait()
        except TimeoutError:
            return b""
        self._woken.clear()
        pieces, self._waiting, self._bytes = self._waiting, [], 0
        return b"".join(pieces)

    # ---- Subscriber

    def tell(self, lines: list[bytes]) -> None:
        """Send lines."""
        pieces = [_as_sent(line) for line in lines]
        self._waiting += pieces
        self._bytes += sum(map(len, pieces))
        self._woken.set()

    def unsent_bytes(self) -> int:
        """How much of what was sent the client has not taken yet."""
        transport = self._request.transport
        return self._bytes + (0 if transport is None else transport.get_write_buffer_size())

    def may_hear(self, event_type: str, name: str) -> bool:
        """Whether the rights of the user cover such an event."""
        return self._rights is None or may_hear(self._rights, event_type, name)

    def cut(self, why: str) -> None:
        """Close the connection."""
        self.ended = True
        self._woken.set()
        if self._request.transport is not None:
            self._request.transport.abort()


def _as_sent(line: bytes) -> bytes:
    """A line of the protocol, `250 813 FINI order_17`, as an event of the stream; data behind it follow in lines."""
    head, _, data = line.partition(b"\r\n")
    _, number, text = head.split(b" ", 2)
    lines = [text, *data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")] if data else [text]
    event = text.partition(b" ")[0]
    return b"id: %s\nevent: %s\n" % (number, event) + b"".join([b"data: %s\n" % one for one in lines]) + b"\n"
