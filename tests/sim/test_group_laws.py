"""Limits, rates, pauses, sleeps and the order of groups hold by the history alone, whatever leader decides."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.sim import campaign
from tests.sim.cures.cure import Cure
from tests.sim.cures.groups import GROUPED, SAID
from tests.sim.test_cures import PLAIN
from tests.sim.world.plan import SLOW_GROUPS

LONG: dict[str, Any] = {**SLOW_GROUPS, "nodes": 3, "clients": 3, "trouble_s": 240.0}
FAILOVERS_MIN = 20
HAND_OUTS_MIN = 100


def test_the_laws_hold_over_many_failovers() -> None:
    world, failure = campaign.one(2, **LONG)
    assert not failure, failure
    assert world.trace.seen["leaderships"] > FAILOVERS_MIN
    assert world.checks.groups is not None
    assert world.checks.groups.given > HAND_OUTS_MIN


def test_the_recorded_runs_are_green() -> None:
    for seed in {cure.red for cure, _ in SAID}:
        assert seed is not None
        _, failure = campaign.one(seed, **PLAIN | GROUPED)
        assert not failure, failure


@pytest.mark.parametrize(("cure", "said"), SAID, ids=[cure.name for cure, _ in SAID])
def test_the_law_is_broken_without(cure: Cure, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cure.remove(monkeypatch)
    cure.check(lambda seed: _breaks(seed, cure, said))


def _breaks(seed: int, cure: Cure, said: str) -> bool:
    failure = campaign.one(seed, **PLAIN | dict(cure.fixed))[1]
    return re.search(said, failure.partition("\n")[0]) is not None
