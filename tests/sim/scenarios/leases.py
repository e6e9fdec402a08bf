"""Scripted histories about the leader's lease, as in members.py."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.scenarios.members import apart, others, served_by
from tests.sim.world.world import World

OVER_S = 1.0                    # the lease has ended by then, whatever happened


def the_followers_connections_to_the_leader_end(world: World) -> Iterator[float]:
    """A middlebox resets the followers' ends, and drops everything from and to the leader."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    for follower in others(world, leader):
        world.network.end_for(follower.name, leader.name)
    apart(world, leader, *others(world, leader))
    world.trace.fault("script", "the followers have seen the end of the leader's connections")
    yield OVER_S


def the_leaders_connections_end(world: World) -> Iterator[float]:
    """A middlebox resets the leader's ends: the followers wait, and it cannot answer any client."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    for follower in others(world, leader):
        world.network.end_for(leader.name, follower.name)
    apart(world, leader, *others(world, leader))
    world.trace.fault("script", "the leader has seen the end of its connections")
    yield OVER_S
