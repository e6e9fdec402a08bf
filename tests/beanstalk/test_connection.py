"""The shell around a conversation: when it reads from its socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from sockpqd.beanstalk import BeanstalkdServer, ClientConnection
from sockpqd.beanstalk.limits import READ_COMMANDS, READ_MUCH_BYTES
from tests.beanstalk.helpers.host import OpenHost
from tests.beanstalk.helpers.memory import MemoryBackend, Queue
from tests.beanstalk.helpers.transcript import HandTurns

BIG = b"put 0 0 60 1000000\r\n" + b"x" * 300_000       # of a job that is too big, whose end is still to come


class Transport(asyncio.Transport):
    """A socket that is read, or not."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.got = b""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: bytes) -> None:      # type: ignore[override]
        self.got += data

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


def held_back_by_answers(connection: ClientConnection, _: BeanstalkdServer) -> Callable[[], None]:
    """Let the client not read its answers."""
    connection.pause_writing()
    return connection.resume_writing


def held_back_by_another(_: ClientConnection, server: BeanstalkdServer) -> Callable[[], None]:
    """Let another connection end, whose jobs are not back yet."""
    other = ClientConnection(server, MemoryBackend(Queue()), OpenHost())
    other.connection_made(Transport())
    server.begin_leaving(other._conversation)
    return lambda: server.left(other._conversation)


@pytest.mark.parametrize("hold_back", [held_back_by_answers, held_back_by_another])
def test_reading_goes_on_when_what_was_held_back_is_dropped(
    hold_back: Callable[[ClientConnection, BeanstalkdServer], Callable[[], None]],
) -> None:
    async def test() -> None:
        server, transport = BeanstalkdServer("i"), Transport()
        connection = ClientConnection(server, MemoryBackend(Queue()), OpenHost())
        connection.connection_made(transport)
        let_go = hold_back(connection, server)
        connection.data_received(BIG)
        assert not transport.reading
        let_go()
        await asyncio.sleep(0)
        assert transport.reading
        connection.data_received(b"x" * 700_000 + b"\r\n")
        assert transport.got == b"JOB_TOO_BIG\r\n"
    asyncio.run(test())


class World:
    """A connection whose turns the test grants."""

    def __init__(self) -> None:
        self.turns, self.transport = HandTurns(), Transport()
        self.server = BeanstalkdServer("i", turns=self.turns)
        self.connection = ClientConnection(self.server, MemoryBackend(Queue()), OpenHost())
        self.connection.connection_made(self.transport)

    def take_turn(self) -> None:
        self.turns.line.pop(0)()


def with_world(test: Callable[[World], None]) -> None:
    async def run() -> None:
        test(World())
    asyncio.run(run())


def test_others_are_read_first_after_much_was_read() -> None:
    def test(world: World) -> None:
        world.connection.data_received(b"put 0 0 60 900000\r\n" + b"x" * READ_MUCH_BYTES)
        assert not world.transport.reading
        world.connection.data_received(b"x" * READ_MUCH_BYTES)          # TLS had it already
        assert len(world.turns.line) == 1
        before = world.turns.budget
        world.take_turn()
        assert world.transport.reading
        assert world.turns.budget == before - READ_COMMANDS
        world.connection.data_received(b"x" * (READ_MUCH_BYTES - 1))
        assert world.transport.reading
    with_world(test)


def test_much_is_not_read_at_once_of_a_client_that_is_being_closed_either() -> None:
    def test(world: World) -> None:
        world.connection.data_received(b"list-tube-used\r\n")
        world.connection._stay.kernel_bytes = 1         # it does not read
        world.connection.close()
        world.connection.data_received(bytes(READ_MUCH_BYTES))
        assert not world.transport.reading
        world.take_turn()
        assert world.transport.reading
    with_world(test)


def test_a_turn_that_comes_after_the_end_does_nothing() -> None:
    def test(world: World) -> None:
        world.connection.data_received(bytes(READ_MUCH_BYTES))
        world.connection.connection_lost(None)
        before = world.turns.budget
        while world.turns.line:
            world.take_turn()
        assert world.turns.budget == before
    with_world(test)
