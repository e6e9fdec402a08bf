"""Nodes of two releases in one cluster: Later stands for an operation that came with feature level 3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sockpqd.core import Later
from sockpqd.core.handlers import dispatch
from tests.sim.scenarios import members
from tests.sim.scenarios.members import served_by, transfers, until
from tests.sim.world.plan import NEW_LEVEL, OLD_LEVEL
from tests.sim.world.world import World

SCRIPTED: dict[str, Any] = {**members.SCRIPTED, "constants": [(dispatch, "LEVELS", {Later: NEW_LEVEL})]}


def a_cluster_is_upgraded_node_by_node(world: World) -> Iterator[float]:
    """Each node that is upgraded leads next; when the last one is, the level rises."""
    nodes = [world.nodes[name] for name in world.voters]
    for node in nodes:
        node.known_level = OLD_LEVEL
    yield from served_by(world)
    for node in nodes:
        if any(one.machine.level > OLD_LEVEL for one in nodes):
            return                          # too early: the checks say so if somebody does not know it
        node.crash(power=False)
        node.known_level = NEW_LEVEL
        node.start_again()
        yield from until(world, lambda node=node: node.voter and world.serving() is not None and _together(world))
        if world.serving() is not node:
            yield from transfers(world, node)
        yield 0.5
    yield from until(world, lambda: all(node.machine.level == NEW_LEVEL for node in nodes))
    world.trace.fault("script", "all nodes are upgraded, and so is the cluster")


def _together(world: World) -> bool:
    """Return whether all are connected to the serving node, up to date, and voters as far as it knows."""
    leader = world.serving()
    return leader is not None and all(
        peer.up and peer.match == leader.up.journal.last_index and peer.info is not None and peer.info.voter
        for peer in leader.up.peers.values())
