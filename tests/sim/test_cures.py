"""The checks have teeth: with a cure taken out of the product, some seed of a few goes red; with it none does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.sim import campaign
from tests.sim.cures import CURES, Cure

GREEN = range(2)        # of each kind of run, beside the recorded seeds; other seeds are for `make sim`
PLAIN = {"passing": False, "upgraded": False}      # the runs in which cures are looked for, unless they say otherwise
# Several cures show in runs of the same kind, and these need to be green only once.
RUNS = {id(cure.fixed): cure for cure in CURES}.values()


def name(cure: Cure) -> str:
    return cure.name


@pytest.mark.parametrize("cure", CURES, ids=name)
def test_a_removed_cure_breaks_a_promise(cure: Cure, monkeypatch: pytest.MonkeyPatch) -> None:
    cure.remove(monkeypatch)
    seed = next((seed for seed in cure.seeds() if is_red(seed, cure.fixed)), None)
    assert seed is not None
    if seed != cure.red:
        print(f"{cure.name}: seed {cure.red} is not red any more; record red={seed}, which saves the search")


@pytest.mark.parametrize("cure", RUNS, ids=name)
def test_the_same_runs_are_green_with_the_cure(cure: Cure) -> None:
    for seed in GREEN:
        _, failure = campaign.one(seed, **PLAIN | dict(cure.fixed))
        assert not failure, failure


@pytest.mark.parametrize("cure", CURES, ids=name)
def test_the_recorded_seed_is_green_with_the_cure(cure: Cure) -> None:
    if cure.red is not None and cure.red not in GREEN:
        _, failure = campaign.one(cure.red, **PLAIN | dict(cure.fixed))
        assert not failure, failure


def is_red(seed: int, fixed: Mapping[str, Any]) -> bool:
    return bool(campaign.one(seed, **PLAIN | dict(fixed))[1])
