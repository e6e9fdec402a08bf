"""Attacks on TLS below the commands: halves of handshakes and records, records without data, aborts.

At the native port, and at that of HTTP.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from tests.hostile.arena import Arena
from tests.hostile.attack import MIB, Attack, Bounds
from tests.key_updates import KeyUpdater

HELLO_S = 3
HANDSHAKE_S = 10.0          # what a handshake may take
CUT_S = HANDSHAKE_S + HELLO_S + 4.0
HALVES = 100                # of each kind,
HTTP_HALVES = 12            # at the port of HTTP: the kernel takes 64 connections that are not accepted yet
FLOODS, UPDATES = 12, 9000  # as many as one read takes,
AT_ONCE = 300               # made in one turn
ABORTERS = 40
UNREAD, LARGE = 100, 8 * MIB
MARK = 600 * MIB            # a quarter of it is what may be held for clients
PIECE = 4096
RECORD = b"\x17\x03\x03\x40\x00"

Door = Callable[[Arena], str]


def native(arena: Arena) -> str:
    """Return the address of the leader's native port."""
    return arena.server()


def http(arena: Arena) -> str:
    """Return the address of the leader's port for HTTP."""
    return arena.cluster.http(arena.leader())


async def halves(arena: Arena, door: Door = native, count: int = HALVES) -> None:
    """Send every kind of half, which must be cut in time, while as much as possible is connected."""
    host, _, port = (await asyncio.to_thread(door, arena)).rpartition(":")
    kinds = (_nothing, _half_hello, _byte_by_byte, _hello_only, _half_record)
    standing: list[str] = []

    async def one(kind: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            async with asyncio.timeout(CUT_S):
                with suppress(ConnectionError):
                    await kind(reader, writer)
                    while await reader.read(PIECE):
                        pass
        except TimeoutError:
            standing.append(kind.__name__)
        finally:
            writer.transport.abort()

    await asyncio.gather(*(one(kind) for kind in kinds for _ in range(count)))
    arena.expect(not standing, f"{len(standing)} of {len(kinds) * count} stood in the end: {set(standing)}")


async def _nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send nothing."""


async def _half_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send half of a ClientHello."""
    hello = _client_hello()
    writer.write(hello[:len(hello) // 2])


async def _byte_by_byte(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a byte of it each second, for as long as the connection lasts."""
    for byte in _client_hello():
        writer.write(bytes([byte]))
        if reader.at_eof():
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(PIECE), 1)


async def _hello_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Leave the answer to the ClientHello unanswered."""
    writer.write(_client_hello())


async def _half_record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Complete the handshake, and begin a record of 16 KiB."""
    client = KeyUpdater()
    try:
        await _greet(client, reader, writer)
    finally:
        client.close()
    writer.write(RECORD + bytes(10_000))


async def updates(arena: Arena, door: Door = native) -> None:
    """Change keys as fast as possible, again and again."""
    connections = 0

    async def change_keys(host: str, port: str) -> None:
        nonlocal connections
        client = KeyUpdater()
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                await _greet(client, reader, writer)
                flood = b""
                for _ in range(UPDATES // AT_ONCE):
                    flood += client.updates(AT_ONCE)
                    await asyncio.sleep(0)
                writer.write(flood)
                connections += 1
                while await reader.read(PIECE):
                    pass
            finally:
                writer.transport.abort()
        finally:
            client.close()

    await _again_and_again(arena, door, FLOODS, change_keys)
    arena.note(f"{connections} connections")


async def aborts(arena: Arena, door: Door = native) -> None:
    """End handshakes when the server has done its part."""
    connections = 0
    hello = _client_hello()

    async def abort(host: str, port: str) -> None:
        nonlocal connections
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(hello)
            await reader.read(PIECE)
        finally:
            writer.transport.abort()
        connections += 1

    await _again_and_again(arena, door, ABORTERS, abort)
    arena.note(f"{connections:,} handshakes aborted")


async def _again_and_again(
    arena: Arena, door: Door, count: int, act: Callable[[str, str], Awaitable[None]],
) -> None:
    """Let this many do this without end, at a listener of the leader."""
    until = time.monotonic() + arena.seconds

    async def one() -> None:
        while (left := until - time.monotonic()) > 0:
            host, _, port = server.rpartition(":")
            with suppress(OSError):
                async with asyncio.timeout(left):
                    await act(host, port)

    server = await asyncio.to_thread(door, arena)
    await asyncio.gather(*(one() for _ in range(count)))


async def put_large(arena: Arena) -> None:
    """Put a job of 8 MiB."""
    def put() -> None:
        with arena.client() as client:
            client.put("large", bytes(LARGE), key="k")
    await asyncio.to_thread(put)


async def unread(arena: Arena) -> None:
    """Ask for it, and read nothing."""
    host, _, port = (await asyncio.to_thread(native, arena)).rpartition(":")
    context = ssl.create_default_context(cafile=arena.cluster.ca)
    writers: list[asyncio.StreamWriter] = []

    async def one() -> None:
        _, writer = await asyncio.open_connection(host, int(port), ssl=context, limit=PIECE)
        writer.write(b"PEEK KEY large k\r\n" * 20)
        writers.append(writer)

    await asyncio.gather(*(one() for _ in range(UNREAD)))
    await asyncio.sleep(arena.seconds)
    for writer in writers:
        writer.transport.abort()


async def _greet(client: KeyUpdater, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Complete the handshake. Raises OSError."""
    complete, data = client.handshake()
    writer.write(data)
    while not complete:
        received = await reader.read(PIECE)
        if not received:
            raise ConnectionError("closed in the handshake")
        complete, data = client.handshake(received)
        writer.write(data)


def _client_hello() -> bytes:
    client = KeyUpdater()
    try:
        return client.handshake()[1]
    finally:
        client.close()


ATTACKS = (
    Attack("tls-halves", "500 halves of handshakes and records are left, or go on by a byte a second", halves,
           tls=True, seconds=CUT_S, config={"limits": {"hello_timeout_s": HELLO_S}},
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
    Attack("tls-updates", "12 clients send 9,000 KeyUpdates at once, again and again", updates, tls=True,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
    Attack("tls-unread", "100 clients ask for a job of 8 MiB and read nothing; the mark is 600 MiB", unread, tls=True,
           prepare=put_large, config={"limits": {"memory_mark": MARK}},
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=300)),
    Attack("tls-aborts", "thousands of handshakes are ended when the server has done its part", aborts, tls=True,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
    Attack("http-halves", "the same, 60 of them, at the port of HTTP", partial(halves, door=http, count=HTTP_HALVES),
           tls=True, seconds=CUT_S, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
    Attack("http-updates", "12 clients of HTTP send 9,000 KeyUpdates at once, again and again",
           partial(updates, door=http), tls=True, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
    Attack("http-aborts", "thousands of handshakes of HTTP are ended when the server has done its part",
           partial(aborts, door=http), tls=True, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
)
