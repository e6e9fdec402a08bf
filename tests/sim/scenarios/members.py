"""Scripted histories: those that a campaign found, and those that it hardly ever meets.

A script is a generator over a world: it does something, and yields how many seconds pass before it continues. Clients
work at the same time; when it ends, the run ends like every other, with all checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sockpqd.core import ChangeMember, MemberChange, Operation, SwitchService
from tests.sim.world.node import SimNode
from tests.sim.world.trace import Violation
from tests.sim.world.world import World

STEP_S = 0.01
PATIENCE_S = 6.0

SCRIPTED: dict[str, Any] = {
    "nodes": 3, "spares": 1, "weights": {}, "clients": 3, "think_s": 0.05, "pipeline": (1, 2), "clones": 0.0,
    "drift": 0.0, "wrong_clocks": 1, "heartbeat_ms": 50, "grace_ms": 0, "segment_bytes": 32 << 10,
    "window_bytes": 1 << 20, "fine_turns": False, "child_s": (0.0,), "constants": [], "extended": 0.0,
    "subscribed": False, "upgraded": False,
}


def until(world: World, holds: Callable[[], Any]) -> Iterator[float]:
    """Wait for a condition; raises Violation when it takes too long."""
    end = world.events.now + PATIENCE_S
    while not holds():
        if world.events.now > end:
            raise Violation(f"the script waits in vain{world.describe()}")
        yield STEP_S


def apart(world: World, node: SimNode, *others: SimNode) -> None:
    """Block all messages between this node and those."""
    for other in others:
        world.network.block(node.name, other.name, reset=False)
        world.network.block(other.name, node.name, reset=False)


def together(world: World, node: SimNode, other: SimNode) -> None:
    """Restore the line between these two."""
    world.network.channels[node.name, other.name].hurry()
    world.network.channels[other.name, node.name].hurry()


def served_by(world: World) -> Iterator[float]:
    """Wait until some node serves and work is done."""
    yield from until(world, lambda: world.serving() is not None and world.checks.acknowledged() > 10)


def others(world: World, node: SimNode) -> list[SimNode]:
    """Return all voters but this one."""
    return [world.nodes[name] for name in world.voters if name != node.name]


def joins(world: World, node: SimNode) -> Iterator[float]:
    """Add a node, and wait until it counts."""
    leader = world.serving()
    assert leader is not None
    address = world.addresses[node.name]
    world.write_file(node)
    leader.ask(world.command(ChangeMember(address.name, MemberChange.JOIN, peer=address.peer, client=address.client)))
    node.start_again()
    yield from until(world, lambda: node.name in world.voters and node.voter)


def transfers(world: World, node: SimNode) -> Iterator[float]:
    """Give leadership to a node, and wait until it serves."""
    leader = world.serving()
    assert leader is not None
    leadership = leader.up.leadership
    assert leadership.handover.begin(node.name) is None
    leader.wake(world.events.now)
    yield from until(world, lambda: node.serving)
    leadership.handover.end()


def a_wiped_voter_meets_a_deposed_leader(world: World) -> Iterator[float]:
    """It has forgotten what it acknowledged in the new leader's term, and would acknowledge what the old leader has.

    A leader steps down when no majority answers for a while; this one's clock hardly advances in that time.
    """
    yield from served_by(world)
    old = world.serving()
    assert old is not None
    old.clock.slow_down(0.1)
    apart(world, old, *others(world, old))
    yield from until(world, lambda: any(node.up.leadership.serving for node in others(world, old)))
    new = next(node for node in others(world, old) if node.up.leadership.serving)
    yield 0.1
    victim = next(node for node in others(world, old) if node is not new)
    victim.crash(power=True)
    victim.wipe()
    apart(world, victim, new)
    together(world, victim, old)
    victim.start()
    old.clock.slow_down(10)
    yield from until(world, lambda: victim.up.replica.leader_node is not None)
    world.trace.fault("script", "the old leader has found the wiped voter")
    yield 2.0


def a_voter_that_was_away_does_not_know_the_leader(world: World) -> Iterator[float]:
    """The leader joined while the voter was down, so the voter does not know its name."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    away = others(world, leader)[0]
    away.crash(power=False)
    yield from joins(world, world.nodes["n4"])
    yield from transfers(world, world.nodes["n4"])
    world.trace.fault("script", "the new node leads")
    away.start()
    yield 0.5


def a_wiped_voter_does_not_know_the_leader(world: World) -> Iterator[float]:
    """The leader joined later, so the file of the node that lost its disk does not name it."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    victim = others(world, leader)[0]
    yield from joins(world, world.nodes["n4"])
    yield from transfers(world, world.nodes["n4"])
    victim.crash(power=True)
    victim.wipe()
    world.trace.fault("script", "the new node leads")
    victim.start()
    yield 0.5


def a_removed_node_comes_back_to_strangers(world: World) -> Iterator[float]:
    """It is added again with its old disk, and the leader joined in between."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    gone = others(world, leader)[0]
    leader.ask(world.command(ChangeMember(gone.name, MemberChange.REMOVE, leader.machine.membership.configuration)))
    yield from until(world, lambda: gone.name not in world.voters)
    yield 0.2
    gone.crash(power=False)
    yield from joins(world, world.nodes["n4"])
    yield from transfers(world, world.nodes["n4"])
    world.trace.fault("script", "the new node leads")
    address = world.addresses[gone.name]
    world.nodes["n4"].ask(
        world.command(ChangeMember(address.name, MemberChange.JOIN, peer=address.peer, client=address.client)),
    )
    gone.start()
    yield 0.5


def a_wiped_voter_votes_before_it_has_caught_up(world: World) -> Iterator[float]:
    """It gets the log over a slow line. Before that is through, the leader is cut off; the third node lags behind."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    lagging, victim = others(world, leader)
    world.network.block(leader.name, lagging.name, reset=False)
    yield 0.4
    victim.crash(power=True)
    victim.wipe()
    apart(world, victim, lagging)
    world.network.channels[leader.name, victim.name].bytes_per_s = 3000.0
    victim.start()
    yield from until(world, lambda: victim.running and victim.up.replica.leader_node is not None)
    yield 0.1
    world.trace.fault("script", "the wiped voter hears the leader")
    apart(world, leader, victim, lagging)
    together(world, victim, lagging)
    yield 2.5


def two_operators_remove_a_node_each(world: World) -> Iterator[float]:
    """The leader and those who are to go decide it; then these are on one side, the leader on the other."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    first, second, third, fourth = others(world, leader)
    apart(world, leader, third, fourth)
    configuration = leader.machine.membership.configuration
    commands = [world.command(ChangeMember(node.name, MemberChange.REMOVE, configuration)) for node in (first, second)]
    for command in commands:
        leader.ask(command)
    yield from until(world, lambda: all(command.state != "open" for command in commands))
    world.trace.fault("script", "the removals have been decided")
    apart(world, leader, first, second)
    apart(world, third, first, second, fourth)
    together(world, leader, third)
    yield 2.0


def a_removed_leader_is_asked_for_more(world: World) -> Iterator[float]:
    """It keeps leading, because no node can take over, and an operator removes a second node."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    rest = others(world, leader)
    for node in rest:
        node.switch(online=False)
    yield 0.5
    operations: tuple[Operation, ...] = (
        ChangeMember(leader.name, MemberChange.REMOVE, 0), ChangeMember(rest[0].name, MemberChange.REMOVE, 1),
        SwitchService(True),
    )
    for number, operation in enumerate(operations):
        if leader.leads():
            leader.ask(world.command(operation))
            yield from until(world, lambda number=number: world.checks.model.configuration > number)
    world.trace.fault("script", "the leader is no member")
    assert leader.name not in world.voters
    yield 1.0


def a_removed_node_asks_for_votes(world: World) -> Iterator[float]:
    """All others know that it was removed. The leader dies, and no other node stands for election for a while."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    gone, *rest = others(world, leader)
    leader.ask(world.command(ChangeMember(gone.name, MemberChange.REMOVE, leader.machine.membership.configuration)))
    yield from until(world, lambda: gone.name not in world.voters)
    left = world.checks.configurations.left[gone.name]
    yield from until(world, lambda: all(node.machine.index >= left for node in (gone, *rest)))
    for node in rest:
        node.switch(online=False)
    leader.crash(power=True)
    world.trace.fault("script", "the leader is dead")
    yield 2.5
    leader.start()
    yield 0.1
