"""Connections that watch very many tubes, and end at the same time."""

from __future__ import annotations

from sockpqd.beanstalk.limits import NAMES_PER_COMMAND, TUBES_LEFT_AT_ONCE
from tests.beanstalk.helpers.transcript import Client, World

TUBES = 3 * TUBES_LEFT_AT_ONCE
FEW = 5


def watching(world: World, name: str, tubes: int) -> Client:
    """Return a client that waits for a job of this many tubes and `default`."""
    client = world.client(name)
    client.conversation.receive(b"".join(b"watch t%d\r\n" % number for number in range(tubes)) + b"reserve\r\n")
    client.take_turns()
    return client


def test_the_tubes_of_a_connection_that_ended_are_dropped_in_portions() -> None:
    world = World()
    clients = [watching(world, name, TUBES) for name in "ab"]
    use = world.server.tubes
    assert use.watching["t1"] == use.waiting["t1"] == 2
    for client in clients:
        client.conversation.lost()
    assert sum(use.watching.values()) + sum(use.waiting.values()) >= 4 * TUBES, "nothing is dropped outside a turn"
    while world.turns.line:
        before, budget = sum(use.watching.values()) + sum(use.waiting.values()), world.turns.budget
        world.turns.line.pop(0)()
        dropped = before - sum(use.watching.values()) - sum(use.waiting.values())
        assert dropped <= TUBES_LEFT_AT_ONCE
        assert budget - world.turns.budget >= dropped // NAMES_PER_COMMAND
    assert not use.watching
    assert not use.waiting
    assert use.names() == ["default"]


def test_a_few_tubes_are_dropped_at_once() -> None:
    world = World()
    client = watching(world, "a", FEW)
    client.conversation.lost()
    assert not world.server.tubes.watching
    assert not world.server.tubes.waiting


def test_a_connection_that_stays_keeps_its_tubes() -> None:
    world = World()
    stays, leaves = watching(world, "a", TUBES), watching(world, "b", TUBES)
    leaves.conversation.lost()
    stays.take_turns()
    use = world.server.tubes
    assert use.watching["t1"] == use.waiting["t1"] == 1
    assert use.watching["default"] == use.waiting["default"] == 1
