"""The promises about pulses and events hold while leaders fail; without what keeps them some run goes red."""

from __future__ import annotations

import os
import signal

import pytest

from tests.sim.cures import Cure
from tests.sim.gateway import campaign
from tests.sim.gateway.cures import CURES, RUN

SEEDS = range(4)
ONCE_RED = 126      # jobs told again to a slower pulse: more than it may give at once


def name(cure: Cure) -> str:
    return cure.name


@pytest.fixture(scope="module")
def report() -> campaign.GatewayReport:
    return campaign.run(SEEDS, **RUN)


def test_no_window_has_too_many_grants(report: campaign.GatewayReport) -> None:
    assert not report.failures, "\n".join([*report.failures.values(), *report.lines()])
    assert report.fullest == 1          # else nothing was tried


def test_a_seed_that_was_red_is_green() -> None:
    _, failure = campaign.one(ONCE_RED)
    assert not failure, failure


def test_leaders_failed_and_grants_were_written(report: campaign.GatewayReport) -> None:
    assert report.seen["failovers"] == len(SEEDS) * RUN["failovers"]
    assert report.seen["grants written once"] > 50 * len(SEEDS)
    assert report.seen["grants written again"] > 5
    assert report.seen["full windows"] > 100
    assert report.seen["grants together"] > 20
    assert report.seen["grants apart"] > 20
    assert report.seen["answers from the lease"] > 50 * len(SEEDS)


def test_subscribers_heard_events_over_failovers(report: campaign.GatewayReport) -> None:
    assert report.seen["events heard"] > 50 * len(SEEDS)
    assert report.seen["messages heard"] > 50 * len(SEEDS)
    assert report.seen["subscriptions continued"] > 10


def test_seeds_in_processes_of_their_own_tell_the_same() -> None:
    short: dict[str, float] = {"seconds": 4.0, "failovers": 1}
    *_, spread = campaign.spread(range(2), 2, **short)
    assert spread == campaign.run(range(2), **short)


def test_a_seed_whose_process_is_killed_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "run", lambda seeds: os.kill(os.getpid(), signal.SIGKILL))
    *_, report = campaign.spread(range(2), 1)
    assert report.runs == 2
    assert sorted(report.failures) == [0, 1]


def test_a_seed_repeats_itself() -> None:
    first, _ = campaign.one(3, seconds=10.0, failovers=1)
    second, _ = campaign.one(3, seconds=10.0, failovers=1)
    assert (first.steps, first.trace.seen, first.trace.last()) == (second.steps, second.trace.seen, second.trace.last())


@pytest.mark.parametrize("cure", CURES, ids=name)
def test_a_removed_cure_breaks_the_promise(cure: Cure, monkeypatch: pytest.MonkeyPatch) -> None:
    cure.remove(monkeypatch)
    cure.check(lambda seed: bool(campaign.one(seed, **cure.fixed)[1]))
