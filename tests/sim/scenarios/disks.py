"""Scripted histories about disks, as in members.py."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

from sockpqd.core import Put
from tests.sim.clients.outcomes import Outcome
from tests.sim.scenarios import members
from tests.sim.scenarios.members import others, until
from tests.sim.world.node import SimNode
from tests.sim.world.world import World

SCRIPTED: dict[str, Any] = {**members.SCRIPTED, "clients": 0, "spares": 0, "fragments": False}
QUEUE = "q"
BODY = bytes(20_000)            # several pages: the next small frame writes but one of them again
SETTLED_S = 1.2                 # no node has anything to write by then
SERVED_S = 3.0


def puts(world: World, leader: SimNode, body: bytes) -> Outcome:
    """Propose a job; returns its outcome."""
    outcome = Outcome(Put(QUEUE, 0, body), world.told)
    world.outcomes.append(outcome)
    leader.propose([outcome])
    return outcome


def a_sync_fails_and_its_bytes_stay_visible(world: World) -> Iterator[float]:
    """The node ends, is started again, reads what it wrote and acknowledges it; then the whole site loses power.

    The machine of the leader does not come back. The third node was cut off from it when the entry was acknowledged.
    """
    yield from until(world, lambda: world.serving() is not None)
    leader = world.serving()
    assert leader is not None
    victim, away = others(world, leader)
    first = puts(world, leader, b"first")
    yield from until(world, lambda: first.state == "applied")
    yield SETTLED_S
    members.apart(world, leader, away)
    victim.disk.fail_next("sync", errno.EIO)
    outcome = puts(world, leader, BODY)
    yield from until(world, lambda: not victim.running)
    victim.start()
    yield from until(world, lambda: outcome.state == "applied")
    for node in (leader, victim, away):
        node.held_down = True
        node.crash(power=True)
    world.trace.fault("script", "an entry is acknowledged, and the site loses power")
    victim.start_again()
    away.start_again()
    yield SERVED_S
