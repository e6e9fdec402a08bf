"""The checks have teeth: with a cure taken out of the product, some seed of a few goes red; with it, it is green."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.sim import campaign
from tests.sim.cures import CURES, Cure

# The runs in which cures are looked for, unless they say otherwise.
PLAIN = {"passing": False, "ended": False, "upgraded": False, "grouped": False}
OUTDATED = "AttributeError", "NameError", "TypeError"       # no promise is broken: the product has changed
# Several cures show in the same run, which needs to be green only once.
RUNS = {(cure.red, id(cure.fixed)): cure for cure in CURES if cure.red is not None}.values()


def name(cure: Cure) -> str:
    return cure.name


@pytest.mark.parametrize("cure", CURES, ids=name)
def test_a_removed_cure_breaks_a_promise(cure: Cure, monkeypatch: pytest.MonkeyPatch) -> None:
    cure.remove(monkeypatch)
    cure.check(lambda seed: is_red(seed, cure.fixed))


@pytest.mark.parametrize("cure", RUNS, ids=name)
def test_the_recorded_run_look_with_the_cure(cure: Cure) -> None:
    assert cure.red is not None
    _, failure = campaign.one(cure.red, **PLAIN | dict(cure.fixed))
    assert not failure, failure


def test_a_cure_whose_absence_shows_no_more_is_named_soon() -> None:
    def take_nothing_out(_: pytest.MonkeyPatch) -> None:
        """Take nothing out."""

    tried: list[int] = []

    def look(seed: int) -> bool:
        tried.append(seed)
        return False

    with pytest.raises(AssertionError, match=r"^take_nothing_out: neither seed 900"):
        Cure(take_nothing_out, {}, red=900).check(look)
    assert tried == [900, *range(60)]


def is_red(seed: int, fixed: Mapping[str, Any]) -> bool:
    failure = campaign.one(seed, **PLAIN | dict(fixed))[1]
    assert not any(error in failure for error in OUTDATED), f"its removal is outdated: {failure}"
    return bool(failure)
