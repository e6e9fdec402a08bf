"""Whole clusters with faults: as many seeds as fit into the time, and never fewer than a few."""

from __future__ import annotations

import os
import time

from tests.sim import campaign

SEEDS_MIN = 100
SEEDS_MAX = 100_000
BUDGET_S = float(os.environ.get("SIM_SECONDS", "120"))


def test_no_promise_is_broken() -> None:
    report = campaign.Report()
    end = time.monotonic() + BUDGET_S
    for report in campaign.run(range(SEEDS_MAX)):
        assert not report.failures, "\n".join([*report.failures.values(), *report.lines()])
        if report.runs >= SEEDS_MIN and time.monotonic() > end:
            break
    print(*report.lines(), sep="\n")
    assert report.void < report.runs / 10, "\n".join(report.lines())
