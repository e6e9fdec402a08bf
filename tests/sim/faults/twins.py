"""A second process with the name of a node, as somebody starts it elsewhere by mistake: it dials the others for good.

The product's network layer decides about it (cluster/wire/duplicate_nodes.py). Where it is let in, the node that had
the place loses its connection, because only one of them can have it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sockpqd.cluster import limits
from sockpqd.cluster.wire import duplicate_nodes
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.world.world import World

REDIAL_S = (0.05, 0.3)
FIRST, SECOND = b"first", b"second"     # the random bytes of the two processes


class Twin:
    """A second process with the name of this node."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    def dial(self) -> None:
        """Greet all that are connected to the node, and do so again after a while."""
        world = self._world
        for other, node in world.nodes.items():
            if other != self._name and node.running and world.network.linked(self._name, other):
                self._greet(other)
        world.events.after(world.rng.uniform(*REDIAL_S), self.dial)

    def _greet(self, other: str) -> None:
        world, network = self._world, self._world.network
        greeting, now = world.nodes[self._name].hello(other), world.events.now
        heard_at = network.channels[self._name, other].heard_at
        present: Any = SimpleNamespace(
            greeting=replace(greeting, process=FIRST), heard_at=heard_at, transport=None)
        link: Any = SimpleNamespace(incoming=present, up=True)
        second: Any = SimpleNamespace(dialed=False, transport=None)
        if duplicate_nodes.refused_duplicate(second, replace(greeting, process=SECOND), link, now):
            world.trace.seen["twins refused"] += 1
            return
        if now - heard_at < limits.DUPLICATE_S:
            raise Violation(f"a twin of {self._name} takes its place at {other}, which heard that just now")
        world.trace.seen["twins let in"] += 1
        network.lose(self._name, other)
