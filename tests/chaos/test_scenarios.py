"""Every scenario, once and short; see __main__.py for campaigns.

A run that proves nothing is void and is tried again. What a good run is judged by is in runner.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos import clocks, disks
from tests.chaos.runner import Result, run, table
from tests.chaos.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.usefixtures("toxiproxy_server")

ATTEMPTS = 3
GAP_MAX_S = 30.0        # a safety limit: how long gaps really are is measured by campaigns, on machines that are quiet
KEEP = os.environ.get("CHAOS_KEEP")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "-"))
def test_scenario(scenario: Scenario) -> None:
    if scenario.fake_clocks and clocks.library() is None:
        pytest.skip("no libfaketime: install the package libfaketime")
    if scenario.disk_mb is not None and not disks.can_mount():
        pytest.skip("a small disk needs root and mount")
    results: list[Result] = []
    while len(results) < ATTEMPTS and (not results or results[-1].void):
        results.append(run(scenario, seed=len(results), keep=Path(KEEP) if KEEP else None))
    last = results[-1]
    print(table(results, {scenario.name: scenario.goal_s}))
    assert last.violations == (), last.report
    assert not last.void, [result.void for result in results]
    assert last.gap_s < GAP_MAX_S
