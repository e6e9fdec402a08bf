"""The listener of `sockpq-beanstalkd` has the same limits of connections, timeouts and memory as a node's."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import uvloop
from click.testing import CliRunner

from sockpqd.beanstalk import BeanstalkdServer, ClientConnection
from sockpqd.beanstalk_proxy.listener import ListenerLimits, ProxyListener
from sockpqd.beanstalk_proxy.main import main
from tests.beanstalk.helpers.memory import MemoryBackend, Queue

HOST = "127.0.0.1"
PATIENCE_S = 60.0
KIB = 1024
BODY = 60 * KIB


class Program:
    """The listener, before a queue in memory."""

    def __init__(self, door: ProxyListener, server: BeanstalkdServer, queue: Queue, port: int) -> None:
        self.door = door
        self.server = server
        self.queue = queue
        self._port = port
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(self, data: bytes = b"") -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection(HOST, self._port)
        self.writers.append(writer)
        writer.write(data)
        return reader

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.01)


def at_door(
    test: Callable[[Program], Awaitable[None]], limits: ListenerLimits = ListenerLimits(),  # noqa: B008
    held_bytes_max: int = 1 << 20,
) -> None:
    async def run() -> None:
        queue = Queue()
        door, server = ProxyListener(limits, held_bytes_max), BeanstalkdServer("i", now=queue.now)
        port = await door.open(HOST, 0, lambda: ClientConnection(server, MemoryBackend(queue), door))
        program = Program(door, server, queue, port)
        try:
            await test(program)
        finally:
            for writer in program.writers:
                writer.transport.abort()
            door.close()
            await program.until(lambda: not server.connections)
            assert door._account.held_bytes == 0
            assert not door._connections.accepted
    uvloop.run(asyncio.wait_for(run(), 3 * PATIENCE_S))


async def rest(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        return await reader.read(-1)


def test_silence_and_half_a_command_are_cut() -> None:
    async def test(program: Program) -> None:
        for data, answer in ((b"", b""), (b"put", b""), (b"put 0 0 60 100\r\nx", b"")):
            assert await rest(await program.connect(data)) == answer
    at_door(test, ListenerLimits(hello_timeout_s=1, command_timeout_s=1))


def test_who_finds_no_place_is_turned_away() -> None:
    async def test(program: Program) -> None:
        places = program.door._connections.slots
        places.connections_max = 1 - 16             # of the further ones for this machine one is left
        kept = await program.connect(b"list-tube-used\r\n")
        assert await kept.readline() == b"USING default\r\n"
        turned_away = await program.connect()
        with contextlib.suppress(ConnectionError):
            assert await rest(turned_away) == b""
        assert len(program.server.connections) == 1
    at_door(test)


def test_memory_is_bounded() -> None:
    async def test(program: Program) -> None:
        body = b"put 0 0 60 %d\r\n" % BODY + bytes(BODY - 1)
        first = [await program.connect(body) for _ in range(4)]
        await program.until(lambda: program.door._account.high)
        refused = await program.connect(b"put 0 0 60 5\r\n")
        await asyncio.sleep(0.05)
        program.writers[-1].write(b"hello\r\nlist-tube-used\r\n")
        assert await refused.readline() == b"OUT_OF_MEMORY\r\n"
        assert await refused.readline() == b"USING default\r\n"
        await program.until(lambda: program.door._account.evicted > 0)      # it has been high for a second
        assert any(reader.at_eof() for reader in first) or program.door._account.held_bytes < 4 * BODY
    at_door(test, held_bytes_max=5 * BODY)


def test_a_web_page_is_no_client() -> None:
    async def test(program: Program) -> None:
        answer = await rest(await program.connect(
            b"POST / HTTP/1.1\r\nHost: localhost:11300\r\n\r\nput 0 0 60 1\r\nx\r\n"))
        assert answer == b"UNKNOWN_COMMAND\r\n"
        assert not program.queue.jobs
    at_door(test)


def test_an_address_that_is_taken_is_said_in_words() -> None:
    with socket.create_server((HOST, 0)) as taken:
        address = f"{HOST}:{taken.getsockname()[1]}"
        done = CliRunner().invoke(main, ["--listen", address, "--servers", f"{HOST}:1"])
    assert (done.exit_code, done.stderr) == (1, f"Error: cannot listen on {address}: Address already in use\n")
