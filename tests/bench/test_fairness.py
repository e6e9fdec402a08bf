"""The cases of bench/fairness.py come out as docs/FAIRNESS.md tells."""

from __future__ import annotations

from pathlib import Path

from bench import fairness
from core import Policy

TEXT = (Path(__file__).parents[2] / "docs" / "FAIRNESS.md").read_text()


def test_short_queries_need_8_2_seconds_where_fifo_needs_15() -> None:
    assert round(fairness.simulate(Policy.FAIR, 1).mean_s, 1) == 8.2
    assert fairness.simulate(None, 1).mean_s == 15


def test_more_workers_and_a_greater_multiplier_win_more() -> None:
    assert fairness.simulate(Policy.FAIR, 1, 4).mean_s < fairness.simulate(Policy.FAIR, 1).mean_s
    assert fairness.simulate(Policy.FAIR, 2).mean_s < fairness.simulate(None, 2).mean_s


def test_the_page_has_these_tables() -> None:
    for row in fairness.table("", (1, 2, 4)).splitlines()[2:]:
        assert row in TEXT
