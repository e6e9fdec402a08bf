"""The memory held for a beanstalkd client is reported to the host of the connection, and released with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sockpqd.beanstalk import BeanstalkdServer, ClientConnection
from tests.beanstalk.helpers.host import OpenHost
from tests.beanstalk.helpers.memory import MemoryBackend, Queue
from tests.beanstalk.test_connection import Transport

TUBES = 5000


class World:
    """A connection, its host and its transport; another connection of the server's."""

    def __init__(self) -> None:
        self.queue, self.host, self.transport = Queue(), OpenHost(), Transport()
        self.server = BeanstalkdServer("i", now=self.queue.now)
        self.connection = self.connect(self.transport)

    def connect(self, transport: Transport) -> ClientConnection:
        connection = ClientConnection(self.server, MemoryBackend(self.queue), self.host)
        connection.connection_made(transport)
        return connection

    @property
    def held(self) -> int:
        return self.host.held.get(self.connection, 0)


def with_world(test: Callable[[World], None]) -> None:
    async def run() -> None:
        world = World()
        test(world)
        world.connection.connection_lost(None)
        assert world.held == 0
    asyncio.run(run())


def test_most_connections_hold_nothing() -> None:
    def test(world: World) -> None:
        world.connection.data_received(b"put 0 0 60 3\r\nabc\r\nreserve\r\nwatch a\r\ndelete 1\r\n")
        assert world.host.held == {}
    with_world(test)


def test_a_body_that_is_on_its_way() -> None:
    def test(world: World) -> None:
        world.connection.data_received(b"put 0 0 60 30000\r\n")
        for _ in range(3):
            world.connection.data_received(bytes(9000))
        assert world.held == 27_000
        world.connection.data_received(bytes(3000) + b"\r\n")
        assert world.held == 0
    with_world(test)


def test_names_watched_and_jobs_reserved() -> None:
    def test(world: World) -> None:
        for number in range(200):
            world.connection.data_received(b"watch %0100d\r\n" % number)
        assert world.held > 200 * 100
        for number in range(200):
            world.connection.data_received(b"ignore %0100d\r\n" % number)
        assert world.held == 0
        world.connection.data_received(b"put 0 0 60 1\r\nx\r\nreserve\r\n" * 20)
        before = world.held
        assert before > 0
        world.connection.data_received(b"put 0 0 60 1\r\nx\r\nreserve\r\n")
        assert world.held > before
    with_world(test)


def test_a_list_of_very_many_tubes_while_it_is_made() -> None:
    def test(world: World) -> None:
        other = world.connect(Transport())
        for number in range(TUBES):
            other._conversation._tubes._use.take(world.server.tubes.watching, f"{number:0100}")  # type: ignore[union-attr]
        world.connection.data_received(b"list-tubes\r\n")
        assert world.held >= TUBES * 50
    with_world(test)


def test_a_body_for_which_there_is_no_room_is_dropped_and_the_connection_goes_on() -> None:
    def test(world: World) -> None:
        world.host.full = True
        world.connection.data_received(b"put 0 0 60 30000\r\n" + bytes(9000))
        assert world.held == 0
        world.connection.data_received(bytes(21_000) + b"\r\nput 0 0 60 1\r\nx\r\n")
        assert world.transport.got == b"OUT_OF_MEMORY\r\nINSERTED 1\r\n", "what has come already is taken"
    with_world(test)


def test_turns_tell_what_is_waited_for() -> None:
    def test(world: World) -> None:
        connection = world.connection
        assert connection.expected() == ("hello", 0)
        connection.data_received(b"watch")
        assert connection.expected() == ("hello", 0), "half a line is no command"
        connection.data_received(b" a\r\nput 0 0 60 3\r\n")
        assert connection.expected() == ("rest", 2)
        connection.data_received(b"ab")
        assert connection.expected() == ("rest", 2)
        connection.data_received(b"c\r\n")
        assert connection.expected() == ("next", 2)
        connection.data_received(b"reserve\r\nreserve\r\n")
        assert connection.expected() == ("ours", 0), "it waits for a job"
    with_world(test)
