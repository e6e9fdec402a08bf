"""Every scenario, once, short and under a light load; see __main__.py for campaigns.

One that has a twin with listeners is played by the twin alone, as the faults are the same. Some are for campaigns only.

A run that proves nothing is void and is tried again. What a good run is judged by is in runner.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec import structs

from tests.chaos.all_scenarios import ALL
from tests.chaos.machines import clocks, disks
from tests.chaos.runner import Result, run, table
from tests.chaos.scenarios import Scenario

pytestmark = pytest.mark.usefixtures("toxiproxy_server")

AT_ONCE = 2             # most of a run is waiting
ATTEMPTS = 5
PAUSE_S = 0.03          # of producers: a lane has not the time for more jobs
GAP_MAX_S = 30.0        # a safety limit: how long gaps really are is measured by campaigns, on machines that are quiet
KEEP = os.environ.get("CHAOS_KEEP")

NAMES = [scenario.name for scenario in ALL]
ONCE = [scenario for scenario in ALL
        if f"heard: {scenario.name}" not in NAMES and not scenario.campaigns_only]

Runs = dict[str, Future[list[Result]]]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """All scenarios that were asked for, under way: the tests wait for theirs."""
    asked = [item.callspec.params.get("scenario") for item in request.session.items if hasattr(item, "callspec")]
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield {one.name: pool.submit(_attempts, one) for one in asked if isinstance(one, Scenario) and not _lacks(one)}
    finally:
        pool.shutdown(cancel_futures=True)


def _attempts(scenario: Scenario) -> list[Result]:
    scenario = structs.replace(scenario, load=structs.replace(scenario.load, pause_s=PAUSE_S))
    results: list[Result] = []
    while len(results) < ATTEMPTS and (not results or results[-1].void):
        results.append(run(scenario, seed=len(results), keep=Path(KEEP) if KEEP else None))
    return results


def _lacks(scenario: Scenario) -> str:
    """What this machine lacks for it."""
    if scenario.fake_clocks and clocks.library() is None:
        return "no libfaketime: install the package libfaketime"
    if scenario.disk_mb is not None and not disks.can_mount():
        return "a small disk needs root and mount"
    return ""


@pytest.mark.parametrize("scenario", ONCE, ids=lambda scenario: scenario.name.replace(" ", "-"))
def test_scenario(scenario: Scenario, runs: Runs) -> None:
    if lacking := _lacks(scenario):
        pytest.skip(lacking)
    results = runs[scenario.name].result()
    last = results[-1]
    print(table(results, {scenario.name: scenario.goal_s}))
    assert last.violations == (), last.report
    assert not last.void, [result.void for result in results]
    assert last.gap_s < GAP_MAX_S
