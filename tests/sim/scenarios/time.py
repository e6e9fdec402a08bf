"""Scripted histories about replicated time, as in members.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.sim.scenarios import members
from tests.sim.scenarios.members import until
from tests.sim.world.events import UNIX_MS
from tests.sim.world.node import SimNode
from tests.sim.world.trace import Violation
from tests.sim.world.world import World

SCRIPTED: dict[str, Any] = {**members.SCRIPTED, "clients": 0, "spares": 0}
HOUR_MS = 3_600_000
IDLE_S = 8.0
LATE_MS = 300


def _serves(world: World) -> Iterator[float]:
    yield from until(world, world.serving)


def _led_by_another(world: World) -> Iterator[float]:
    """Wait until a node whose clock is right serves."""
    yield from _serves(world)
    leader = world.serving()
    if leader is not None and leader.name == world.wrong_clock:
        yield from members.transfers(world, members.others(world, leader)[0])


def _on_time(world: World) -> None:
    node = world.serving()
    assert node is not None
    late_ms = UNIX_MS + world.events.now * 1000 - node.machine.clock_ms
    if late_ms > LATE_MS:
        raise Violation(f"replicated time is {late_ms:.0f} ms late")
    world.trace.fault("script", "looked at the clock")


def _dies(world: World, node: SimNode) -> Iterator[float]:
    node.held_down = True
    node.crash(power=True)
    yield from until(world, lambda: world.serving() not in (None, node))


def time_passes_without_entries(world: World) -> Iterator[float]:
    """The clock of one of the two that are left is an hour behind, and the last entry is old."""
    yield from _led_by_another(world)
    world.nodes[world.wrong_clock].clock.wall_offset_ms = -HOUR_MS
    leader = world.serving()
    assert leader is not None
    yield IDLE_S
    yield from _dies(world, leader)
    _on_time(world)


def one_was_told_and_one_was_not(world: World) -> Iterator[float]:
    """The same, and one of the two was started a moment ago and has no time from a leader. It asks the other."""
    yield from _led_by_another(world)
    wrong = world.nodes[world.wrong_clock]
    wrong.clock.wall_offset_ms = -HOUR_MS
    leader = world.serving()
    assert leader is not None
    third = next(node for node in members.others(world, leader) if node is not wrong)
    yield IDLE_S
    third.crash(power=True)
    members.apart(world, third, leader)
    third.start()
    wrong.switch(online=False)          # the one that knows nothing is to lead
    yield from _dies(world, leader)
    _on_time(world)


def followers_are_restarted(world: World) -> Iterator[float]:
    """The same, and both were, one after the other: the leader has sent them the time."""
    yield from _led_by_another(world)
    wrong = world.nodes[world.wrong_clock]
    wrong.clock.wall_offset_ms = -HOUR_MS
    leader = world.serving()
    assert leader is not None
    yield IDLE_S
    for node in members.others(world, leader):
        node.crash(power=True)
        node.start()
        yield 1.0
    yield from _dies(world, leader)
    _on_time(world)


def a_cluster_was_down(world: World) -> Iterator[float]:
    """No process has measured the time: it is read from the clocks."""
    yield from _led_by_another(world)
    for node in world.nodes.values():
        node.held_down = True
        node.crash(power=True)
    yield IDLE_S
    for node in world.nodes.values():
        node.start_again()
    yield from _serves(world)
    _on_time(world)
