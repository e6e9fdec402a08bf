"""Answers GET /metrics, /healthz and /readyz for those who watch the program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

REQUEST_BYTES_MAX = 8192
REQUEST_S = 5.0             # for a request and its answer
CONNECTIONS_MAX = 32        # at a time; a further one is closed at once
TEXT = "text/plain; charset=utf-8"
METRICS = "text/plain; version=0.0.4; charset=utf-8"


class Listener:
    """Listens on one address. One request for each connection."""

    def __init__(self, ready: Callable[[], bool], metrics: Callable[[], bytes]) -> None:
        """`ready`: returns whether /readyz answers 200; `metrics`: the text of /metrics."""
        self.place: tuple[str, int] = ("", 0)       # where it listens
        self._ready = ready
        self._metrics = metrics
        self._server: asyncio.Server | None = None
        self._open = 0

    async def start(self, host: str, port: int) -> None:
        """Listen on this address; raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=REQUEST_BYTES_MAX)
        self.place = self._server.sockets[0].getsockname()[:2]

    def close(self) -> None:
        """Stop listening; connections that are open last until they are answered."""
        if self._server:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                if self._open <= CONNECTIONS_MAX:
                    async with asyncio.timeout(REQUEST_S):
                        head = await reader.readuntil(b"\r\n\r\n")
                        writer.write(self._answer(head))
                        await writer.drain()
        finally:
            self._open -= 1
            writer.close()

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b" ", 2)
        path = words[1].split(b"?")[0] if len(words) > 1 else b""
        kind, body = TEXT, b"ok\n"
        if words[0] != b"GET":
            status, body = "405 Method Not Allowed", b"only GET\n"
        elif path == b"/healthz":
            status = "200 OK"
        elif path == b"/readyz":
            status, body = ("200 OK", body) if self._ready() else ("503 Service Unavailable", b"not ready\n")
        elif path == b"/metrics":
            status, kind, body = "200 OK", METRICS, self._metrics()
        else:
            status, body = "404 Not Found", b"see /metrics, /healthz and /readyz\n"
        lines = (
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        return lines.encode() + body
