"""Histories about the leader's lease, told by a script as in members.py."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.scenarios.members import apart, others, served_by
from tests.sim.world.world import World

OVER_S = 1.0                    # the lease is over by then, whatever happened


def the_followers_connections_to_the_leader_end(world: World) -> Iterator[float]:
    """A middlebox resets the followers' ends, and drops everything from and to the leader, which hears nothing."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    for follower in others(world, leader):
        world.network.end_for(follower.name, leader.name)
    apart(world, leader, *others(world, leader))
    world.trace.fault("script", "the followers have seen the end of the leader's connections")
    yield OVER_S


def the_leaders_connections_end(world: World) -> Iterator[float]:
    """The same, and it is the leader who sees it: the followers wait, and it can answer nobody."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    for follower in others(world, leader):
        world.network.end_for(leader.name, follower.name)
    apart(world, leader, *others(world, leader))
    world.trace.fault("script", "the leader has seen the end of its connections")
    yield OVER_S
