"""Computes how long nothing can happen on a node by itself.

A real one sleeps less: it has turns every 10 ms as long as anything is not in order (cluster/idle.py). Nothing may
depend on these: runs with `fine_turns` have them, the others do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sockpqd.cluster import limits
from sockpqd.cluster.driver import Driver
from tests.sim.world.disk import SlowSync
from tests.sim.world.observed import SlowChild

if TYPE_CHECKING:
    from tests.sim.world.node import SimNode

NEVER = float("inf")
SOON_S = 0.01                   # between turns of a real node that is not quiet
BEYOND_S = 0.0005               # the library compares times with >, so a turn must come after the moment


def idle_until(node: SimNode, driver: Driver, children: list[SlowChild]) -> float:
    """Return when the node has to take its next turn, if nothing arrives before. `children`: of its process."""
    return max(_next_deed(node, driver, children), node.world.events.now + limits.HOUSEKEEPING_S + BEYOND_S)


def _next_deed(node: SimNode, driver: Driver, children: list[SlowChild]) -> float:
    """Return when there is something to do. A turn before the next chores would change nothing."""
    now = node.world.events.now
    if driver.capacity.stuck:
        return now + limits.NO_ROOM_RETRY_S
    if node.world.plan.fine_turns or _sends(driver):
        return now + SOON_S
    until = NEVER
    if driver.store._task is not None:
        ready_at = children[-1].ready_at
        until = ready_at if ready_at > now else now + SOON_S
    syncing = driver.journal.syncing
    if isinstance(syncing, SlowSync):
        until = min(until, max(syncing.over_at, now))
    if driver.replica.is_leader:
        return min(until, now + driver.settings.heartbeat_ms / 1000 + BEYOND_S, _due_at(node, driver))
    deadline = driver.transport.elections._deadline
    if deadline is None:
        return now + SOON_S
    return min(until, node.clock.when(min(deadline, driver._info_at + limits.INFO_S)) + BEYOND_S)


def _due_at(node: SimNode, driver: Driver) -> float:
    """Return when a leader that serves proposes a Tick, in one of its idle turns."""
    due_ms = driver.machine.next_due_ms() if driver.leadership.serving else None
    if due_ms is None:
        return NEVER
    seconds = (due_ms - driver.leadership._time.now_ms()) / 1000
    return node.clock.when(node.clock.monotonic() + max(SOON_S, seconds)) + BEYOND_S


def _sends(driver: Driver) -> bool:
    return any(peer.choked or peer.sending is not None for peer in driver.peers.values())
