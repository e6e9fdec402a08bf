"""The behaviours of hostile receivers."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.http.push.receivers import Behaviour, Request

TRICKLE_S = 0.05
LARGE = b"x" * 65_536


async def never(request: Request, writer: asyncio.StreamWriter) -> None:
    """Accept the request, and give no answer."""
    await asyncio.Event().wait()


async def trickle(request: Request, writer: asyncio.StreamWriter) -> None:
    """Send headers that never end, a byte at a time."""
    writer.write(b"HTTP/1.1 200 OK\r\nx: ")
    await _repeat(writer, b"x", TRICKLE_S)


async def trickle_body(request: Request, writer: asyncio.StreamWriter) -> None:
    """Send a body that never ends, a byte at a time."""
    writer.write(b"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n")
    await _repeat(writer, b"1\r\nx\r\n", TRICKLE_S)


async def continues(request: Request, writer: asyncio.StreamWriter) -> None:
    """Ask for the body again and again."""
    await _repeat(writer, b"HTTP/1.1 100 Continue\r\n\r\n", 0.01)


def raw(data: bytes) -> Behaviour:
    """Send this and close the connection."""
    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        with suppress(OSError):
            await writer.drain()
        writer.close()
    return behave


def headers_without_end(part: bytes) -> Behaviour:
    """Send this again and again where headers belong."""
    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        await _repeat(writer, part)
    return behave


def body_without_end(head: bytes, sent: list[int] | None = None) -> Behaviour:
    """Send a body without end behind this end of the headers; `sent` gets the lengths of its parts."""
    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + head)
        await _repeat(writer, LARGE, sent=sent)
    return behave


async def _repeat(
    writer: asyncio.StreamWriter, part: bytes, pause_s: float = 0.0, sent: list[int] | None = None
) -> None:
    """Send this until the other side has gone."""
    while not writer.is_closing():
        writer.write(part)
        await writer.drain()
        if sent is not None:
            sent.append(len(part))
        await asyncio.sleep(pause_s)
