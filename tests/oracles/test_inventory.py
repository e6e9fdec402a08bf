"""The inventory tells each thing that must not be, and nothing that may be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracles.inventory import differences

TOLD: dict[str, Any] = {
    "acknowledged": [1, 2, 3, 4], "maybe_put": [5], "refused": [6], "finished": [1, 2], "maybe_finished": [3],
}


@pytest.mark.parametrize("left", [[4], [3, 4], [4, 5], [5, 4, 3]])
def test_what_may_be_is_no_difference(left: list[int]) -> None:
    assert differences(left, **TOLD) == []


@pytest.mark.parametrize(("left", "difference"), [
    ([], "1 jobs lost: [4]"),
    ([4, 4], "1 jobs there twice: [4]"),
    ([1, 4], "1 jobs finished and there: [1]"),
    ([4, 6], "1 jobs refused and there: [6]"),
    ([4, 9], "1 jobs invented: [9]"),
])
def test_what_must_not_be_is_told(left: list[int], difference: str) -> None:
    assert differences(left, **TOLD) == [difference]


def test_a_job_that_was_finished_twice_is_told() -> None:
    assert differences([], [1], finished=[1, 1]) == ["1 jobs finished twice: [1]"]


def test_all_that_is_wrong_is_told() -> None:
    assert differences([7, 7], [1]) == ["1 jobs lost: [1]", "1 jobs there twice: [7]", "1 jobs invented: [7]"]
