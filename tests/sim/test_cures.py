"""The checks have teeth: with a cure taken out of the product, some seed of a few goes red; with it none does."""

from __future__ import annotations

import pytest

from tests.sim import campaign, cures, job_cures, session_cures, time_cures

CURES = cures.CURES | session_cures.CURES | job_cures.CURES | time_cures.CURES
SEEDS = range(400)      # the first red one ends the search
GREEN = range(8)


@pytest.mark.parametrize("name", CURES)
def test_a_removed_cure_breaks_a_promise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CURES[name].remove(monkeypatch)
    assert any(campaign.one(seed, **CURES[name].fixed)[1] for seed in SEEDS)


@pytest.mark.parametrize("name", CURES)
def test_the_same_runs_are_green_with_the_cure(name: str) -> None:
    for seed in GREEN:
        _, failure = campaign.one(seed, **CURES[name].fixed)
        assert not failure, failure
