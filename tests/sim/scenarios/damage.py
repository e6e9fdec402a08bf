"""Damaged files that look whole."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from tests.sim.scenarios.members import others, served_by, until
from tests.sim.world.node import SimNode
from tests.sim.world.trace import Violation
from tests.sim.world.world import RESTART_S, World

WRITTEN_S = 1.5                 # what others acknowledged is in the journals by then
TOLD_S = 1.0                    # until the node learns of it and ends; then it is restarted


def an_older_copy_is_put_back(world: World) -> Iterator[float]:
    """The leader's message shows the node that its log had more."""
    victim = yield from _copied(world)
    _, copies = victim.copy or (0, {})
    victim.crash(power=True)
    victim.put_back(copies)
    victim.start()
    yield from _noticed(world)


def an_older_copy_is_put_back_while_all_are_down(world: World) -> Iterator[float]:
    """Only the others' records show the node that its log had more."""
    victim = yield from _copied(world)
    _, copies = victim.copy or (0, {})
    nodes = [world.nodes[name] for name in world.voters]
    for node in nodes:
        node.crash(power=True)
    victim.put_back(copies)
    for node in nodes:
        node.start_again()
    yield from _noticed(world)


def _copied(world: World) -> Generator[float, None, SimNode]:
    """Return a follower of which there is an older copy; the others have recorded that it had more."""
    yield from served_by(world)
    leader = world.serving()
    assert leader is not None
    victim = others(world, leader)[0]
    last = victim.up.journal.durable_index
    victim.copy = last, victim.disk.copied()
    yield WRITTEN_S
    yield from until(world, lambda: leader.up.journal.acknowledged(victim.name) > last)
    yield WRITTEN_S
    return victim


def _noticed(world: World) -> Iterator[float]:
    yield TOLD_S + RESTART_S[1]
    if not world.trace.seen["older copies found"]:
        raise Violation("nobody has noticed that a copy is older than what its node had")
    world.trace.fault("script", "an older copy was put back")
