"""Sizes, times and counts in the words that people read."""

from __future__ import annotations

import pytest

from sockpqd.gateway.dashboard.pages.parts.view import size
from sockpqd.pqctl.output.text import counted, lasting, sized


@pytest.mark.parametrize(("count", "words"), [
    (0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (1536, "1.5 KiB"), (1_234_567, "1.2 MiB"), (5 << 30, "5.0 GiB"),
    (3 << 50, "3072.0 TiB"),
])
def test_sizes_have_the_unit_that_makes_them_short(count: int, words: str) -> None:
    assert sized(count) == size(count) == words         # the dashboard writes them alike


@pytest.mark.parametrize(("seconds", "words"), [
    (0, "0 s"), (0.5, "0.5 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2.0 h"), (86400, "24.0 h"),
    (172800, "2.0 days"), (1_000_000, "11.6 days"),
])
def test_times_have_the_unit_that_makes_them_short(seconds: float, words: str) -> None:
    assert lasting(seconds) == words


def test_one_is_no_plural() -> None:
    assert [counted(count, "job") for count in (0, 1, 2, 1234)] == ["0 jobs", "1 job", "2 jobs", "1,234 jobs"]
    assert counted(2, "priority", "priorities") == "2 priorities"
