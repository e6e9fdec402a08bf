"""A small campaign of tests.chaos.results (`make chaos-results` has more tasks), and what its comparison notices."""

from __future__ import annotations

import random

import pytest

from tests.chaos import results
from tests.chaos.shown import History, header_block

SHOWN = History("DONE", 2, header_block(results.headers_of("t4")), b"t4", b"no", b"42")


def test_each_task_has_one_result_and_one_history_although_leaders_are_killed() -> None:
    outcome = results.run(240, every_s=1.0)
    assert outcome.problems == {}
    assert outcome.kills
    assert outcome.attempts == sum(1 + results.failures_of(f"t{number}") for number in range(240))


@pytest.mark.parametrize(("shown", "problems"), [
    (SHOWN, 0), (None, 1), (SHOWN._replace(state="BURIED"), 1), (SHOWN._replace(attempts=3), 1),
    (SHOWN._replace(headers=b""), 1), (SHOWN._replace(data=b"t5"), 1), (SHOWN._replace(error=b""), 1),
    (SHOWN._replace(result=b"43"), 1),
])
def test_what_a_server_shows_otherwise_is_noticed(shown: History | None, problems: int) -> None:
    campaign = results.Campaign([], 1, random.Random(0))
    campaign.log["t4"] = results.TaskLog(4, 2, {2: "no", 1: "never"}, [b"42"], answers=[b"42", b"42"])
    campaign.compare_with([shown])
    assert campaign.problems.total() == problems


@pytest.mark.parametrize(("found", "answers"), [
    ([b"42"], [b"42"]), ([b"42"], [b"42", b"43"]), ([b"42", b"43"], [b"42", b"42"]),
])
def test_two_results_and_an_answer_too_few_are_noticed(found: list[bytes], answers: list[bytes]) -> None:
    campaign = results.Campaign([], 1, random.Random(0))
    campaign.log["t4"] = results.TaskLog(4, 2, {1: "never", 2: "no"}, found, answers=answers)
    campaign.compare_with([SHOWN])
    assert campaign.problems.total() == 1
