"""Whole clusters with faults, in which leaders hand over to preferred nodes all the time."""

from __future__ import annotations

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.leader.preference import Preference
from tests.sim.world.world import World

SEEDS = range(10)
SHORT = [
    (limits, "PREFERENCE_REST_S", 0.2), (limits, "PREFERENCE_LOOK_S", 0.02), (limits, "LOSS_S", 0.3),
    (limits, "LOSS_S_MAX", 1.0),
]


def test_no_promise_is_broken_while_leadership_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    better = Preference._better

    def seen(preference: Preference, now: float) -> object:
        found = better(preference, now)
        if found is not None:
            begun.append(found.name)
        return found
    monkeypatch.setattr(Preference, "_better", seen)
    for seed in SEEDS:
        world = World(seed, nodes=3, spares=0, constants=SHORT, fault_s=0.4)
        for number, node in enumerate(world.nodes.values()):
            node.prefer = 1 + 49 * number
        world.run()         # raises Violation
    assert len(begun) > len(SEEDS)
