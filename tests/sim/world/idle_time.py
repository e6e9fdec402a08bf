"""When a simulated node takes its next turn by itself: as a real one does, which need not look for its children."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster import limits
from cluster.driver import Driver
from cluster.idle import next_turn_at
from tests.sim.world.disk import SlowSync
from tests.sim.world.observed import SlowChild

if TYPE_CHECKING:
    from tests.sim.world.node import SimNode

NEVER = float("inf")
BEYOND_S = 0.0005               # the library compares times with >, so a turn must come after the moment


def idle_until(node: SimNode, driver: Driver, children: list[SlowChild]) -> float:
    """When the node has to take its next turn, if nothing arrives before. `children`: those of its process."""
    now = node.world.events.now
    if node.world.plan.fine_turns:
        return now + limits.TICK_S
    shown = node.clock.monotonic()
    until = node.clock.when(next_turn_at(driver, shown, shown))
    syncing = driver.journal.syncing
    if isinstance(syncing, SlowSync):
        until = min(until, max(syncing.over_at, now))
    return max(until, now + limits.HOUSEKEEPING_S + BEYOND_S)
