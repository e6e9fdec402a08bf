"""Scripted histories about what a restarted node may have forgotten, as in members.py."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.scenarios import members
from tests.sim.scenarios.disks import BODY, SETTLED_S, puts
from tests.sim.scenarios.members import others, until
from tests.sim.world.world import World

SLOW_BYTES_PER_S = 3000.0       # a greeting passes at once, an entry does not
CONNECTED_S = 0.05


def the_leader_is_gone_after_it_greeted_a_started_node(world: World) -> Iterator[float]:
    """The leader sends the end of its log, which has an entry that no other node gets, and never comes back.

    The started node lacks what the third one has, so the third must be elected, by two of three that forgot nothing.
    """
    yield from until(world, world.serving)
    yield SETTLED_S                             # a leader that has just begun may have to wait for its followers again
    leader = world.serving()
    assert leader is not None
    started, third = others(world, leader)
    started.held_down = True
    started.crash(power=False)
    outcome = puts(world, leader, b"missed")
    yield from until(world, lambda: outcome.state == "applied")
    yield SETTLED_S
    for other in (started, third):
        world.network.channels[leader.name, other.name].bytes_per_s = SLOW_BYTES_PER_S
    puts(world, leader, BODY)
    yield members.STEP_S
    started.start_again()
    yield from until(world, lambda: leader.name in started.up.peers and started.up.peers[leader.name].up)
    yield CONNECTED_S
    world.trace.fault("script", "the leader is gone for good")
    leader.held_down = True
    leader.crash(power=True)
    yield from until(world, lambda: world.serving() is third)
