"""Files that look whole and are not."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.scenarios.members import others, served_by, until
from tests.sim.world.world import World

WRITTEN_S = 1.5                 # what others acknowledged is in the journals by then
TOLD_S = 1.0


def an_older_copy_is_put_back_while_all_are_down(world: World) -> Iterator[float]:
    """Only what the others wrote down tells the node that its log had more."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    victim = others(world, leader)[0]
    last, copies = victim.up.journal.durable_index, victim.disk.copied()
    yield WRITTEN_S
    yield from until(world, lambda: leader.up.journal.acknowledged(victim.name) > last)
    yield WRITTEN_S
    nodes = [world.nodes[name] for name in world.voters]
    for node in nodes:
        node.crash(power=True)
    victim.put_back(copies)
    for node in nodes:
        node.start_again()
    yield TOLD_S
    world.trace.fault("script", "an older copy was put back")
