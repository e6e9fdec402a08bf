"""A small campaign of tests.chaos.results: `make chaos-results` has more tasks."""

from __future__ import annotations

from tests.chaos import results


def test_each_task_has_one_result_and_one_history_although_leaders_are_killed() -> None:
    outcome = results.run(240, every_s=1.0)
    assert outcome.problems == {}
    assert outcome.kills
    assert outcome.attempts == sum(1 + results.failures_of(f"t{number}") for number in range(240))
