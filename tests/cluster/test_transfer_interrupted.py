"""A follower gets a snapshot, and the transfer is interrupted at every point: it starts again, and harms nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.wire.messages import Ack, Message, SnapshotChunk
from sockpqd.core import Put
from tests.cluster.helpers.small_cluster import SmallCluster, SmallNode
from tests.cluster.test_hazards import lagging, snapshot_everywhere

PIECE_BYTES = 4000
GAP_S = 0.004           # between the arrival of two pieces
ANSWER = -1             # the point behind the last piece: the follower's answer is on its way

Interrupt = Callable[[SmallCluster, SmallNode, SmallNode], None]


def connection_breaks(world: SmallCluster, leader: SmallNode, away: SmallNode) -> None:
    world.flap(leader.name, away.name)


def piece_is_lost(world: SmallCluster, leader: SmallNode, away: SmallNode) -> None:
    """Lose a piece by a defect: a connection loses nothing."""


def follower_loses_power(world: SmallCluster, leader: SmallNode, away: SmallNode) -> None:
    world.kill(away.name)
    world.start(away.name)


def leader_loses_power(world: SmallCluster, leader: SmallNode, away: SmallNode) -> None:
    world.kill(leader.name)
    world.events.at(world.now + 2, lambda: world.start(leader.name) and None)


def snapshot_is_replaced(world: SmallCluster, leader: SmallNode, away: SmallNode) -> None:
    """Replace the snapshot by newer ones until its file is removed."""
    world.events.at(world.now, lambda: snapshot_everywhere(world, [leader.name]))


class Transfer:
    """Lets the pieces arrive one by one, and something happen when piece `point` would."""

    def __init__(self, world: SmallCluster, away: SmallNode, point: int, interrupt: Interrupt) -> None:
        self.interrupted = False
        self.pieces = 0
        self._world = world
        self._away = away
        self._point = point
        self._interrupt = interrupt

    def passes(self, source: str, target: str, message: Message) -> bool:
        """Filter the messages of the network."""
        if self.interrupted or self._away.name not in (source, target):
            return True
        if isinstance(message, Ack) and message.snapshot is not None and self._point == ANSWER:
            return self._now(target)
        if isinstance(message, SnapshotChunk):
            self._later(source, message)
            return False
        return True

    def _later(self, source: str, piece: SnapshotChunk) -> None:
        world, number = self._world, self.pieces
        connection = world.links[frozenset((source, self._away.name))]
        self.pieces += 1

        def arrive() -> None:
            if number != self._point or self.interrupted or self._now(source):
                world.deliver(source, self._away.name, piece, connection)
        world.events.at(world.now + number * GAP_S, arrive)

    def _now(self, leader: str) -> bool:
        """Interrupt; returns whether the message that was to arrive now still does."""
        self.interrupted = True
        world = self._world
        world.events.at(world.now, lambda: self._interrupt(world, world[leader], self._away))
        return self._interrupt is snapshot_is_replaced


def history(point: int, interrupt: Interrupt) -> Transfer:
    """Run one such history; checks that the cluster serves meanwhile and has lost nothing in the end."""
    world = SmallCluster(3)
    away = lagging(world)
    before = world.bodies(world.leader().name)
    run = Transfer(world, away, point, interrupt)
    world.filter = run.passes
    world.start(away.name)
    world.run_until(lambda: run.interrupted or world.settled(), 60)
    meanwhile = world.leader().propose(Put("q", 0, b"meanwhile"))
    world.run_until(lambda: meanwhile.state != "open", 10)
    assert meanwhile.state == "applied" or interrupt is leader_loses_power
    world.run_until(lambda: all(node.driver for node in world) and world.settled(), 60)
    world.put_now(b"in the end")
    world.run_until(world.settled)
    assert len(world.states()) == 1
    bodies = world.bodies(away.name)
    assert bodies[:len(before)] == before
    assert bodies[-1] == b"in the end"
    assert (b"meanwhile" in bodies) or meanwhile.state != "applied"
    left = [name for name in away.disk.names_now if name.endswith(".tmp")]
    assert not left
    return run


@pytest.mark.parametrize("interrupt", [
    connection_breaks, piece_is_lost, follower_loses_power, leader_loses_power, snapshot_is_replaced,
])
def test_a_transfer_interrupted_at_any_point_starts_again(
    interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SNAPSHOT_CHUNK_BYTES", PIECE_BYTES)
    point = 0
    while (run := history(point, interrupt)).interrupted:
        point += 1
    assert run.pieces == point > 5
    assert history(ANSWER, interrupt).interrupted
