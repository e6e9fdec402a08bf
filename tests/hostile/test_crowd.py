"""Hostile connections, against a small server that counts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from tests.hostile.crowd import Crowd

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SAFE_S = 20.0
PIECES, PIECE = 400, 256 << 10      # more than the kernel keeps for two connections
QUIET_S = 0.2


def against(handler: Handler, attack: Callable[[str], Awaitable[None]]) -> None:
    """Run an attack on a server of this kind."""

    served: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        served.add(task)
        try:
            await handler(reader, writer)
        except OSError:
            pass                # who was served has gone
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def both() -> None:
        async with asyncio.timeout(SAFE_S), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            await attack(f"127.0.0.1:{port}")
            server.close()
            await asyncio.gather(*served)

    asyncio.run(both())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; the test's own limit ends it otherwise."""
    while not condition():
        await asyncio.sleep(0.005)


async def later(count: Callable[[], int]) -> int:
    """Return the count after a while."""
    await asyncio.sleep(QUIET_S)
    return count()


def test_each_connection_sends_its_opening_and_hears_the_answers() -> None:
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        writer.write(b"200 OK\r\n503 Busy\r\n200 OK 1\r\n")
        await reader.read()

    async def attack(server: str) -> None:
        async with Crowd(server, 5, opening=lambda number: b"%d\n" % number) as crowd:
            await until(lambda: crowd.good == 10)
            assert crowd.standing == 5
        assert crowd.standing == 0
        assert crowd.cut == 0
        assert sorted(heard) == [b"0\n", b"1\n", b"2\n", b"3\n", b"4\n"]

    against(answer, attack)


def test_what_is_repeated_ends_where_it_should() -> None:
    received: list[int] = []

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = 0
        while size < 1050:
            size += len(await reader.read(1000))
        received.append(size)

    async def attack(server: str) -> None:
        async with Crowd(server, 2, opening=b"x" * 50, repeated=b"y" * 100, most_bytes=1000) as crowd:
            await until(lambda: crowd.cut == 2)
            assert crowd.sent == 2 * 1050
        assert received == [1050, 1050]

    against(count, attack)


def test_who_is_cut_comes_back() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"503 Busy\r\n")

    async def attack(server: str) -> None:
        async with Crowd(server, 3, again_s=0.01) as crowd:
            await until(lambda: crowd.cut >= 12)
        assert crowd.made >= 12

    against(refuse, attack)


def test_who_does_not_read_lets_the_server_wait() -> None:
    taken: list[int] = []

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.transport.set_write_buffer_limits(0)
        for _ in range(PIECES):
            writer.write(bytes(PIECE))
            await writer.drain()
            taken.append(PIECE)

    async def attack(server: str) -> None:
        async with Crowd(server, 2, opening=b"all of it\n", reads=False) as crowd:
            await until(lambda: len(taken) > 0)
            while (before := len(taken)) != await later(lambda: len(taken)):    # until the kernel's buffers are full
                assert len(taken) < 2 * PIECES, f"it was sent all, {before}"
            assert crowd.bytes == 0

    against(flood, attack)


def test_a_server_that_is_not_there_is_no_error() -> None:
    async def attack(server: str) -> None:
        async with Crowd("127.0.0.1:9", 3) as crowd:
            assert (crowd.refused, crowd.standing) == (3, 0)

    against(lambda reader, writer: asyncio.sleep(0), attack)
