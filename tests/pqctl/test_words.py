"""Sizes, times and counts in the words that people read."""

from __future__ import annotations

import pytest

from sockpqd.gateway.dashboard.pages.parts.view import size
from sockpqd.pqctl.actions.queues.counts import in_words
from sockpqd.pqctl.actions.queues.settings import with_unit
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


@pytest.mark.parametrize(("name", "value", "shown"), [
    ("expire", "0", "0 (none)"), ("retain", "604800", "604800 s (7.0 days)"), ("retain_bytes", "67108864",
                                                                         "67108864 bytes (64.0 MiB)"),
    ("data_bytes_max", "0", "0 (no limit)"), ("numbered", "0", "0"), ("limit", "100000", "100000"),
    ("grace", "-", "-"), ("order", "FIFO", "FIFO"),
])
def test_settings_are_shown_as_they_are_given_with_words_behind(name: str, value: str, shown: str) -> None:
    assert with_unit(name, value) == shown


def test_counters_are_sizes_or_counts_and_none_of_one_is_a_plural() -> None:
    counters = {"dead": 1, "retained": 6, "retained_bytes": 796, "waiters": 1, "pauses": 2, "buried": 0}
    assert in_words("", counters) == "; 1 dead, 6 retained, 796 B retained, 1 waiter, 2 pauses"
