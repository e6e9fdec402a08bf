"""Summaries of many measured values."""

from __future__ import annotations

import random

import pytest

from bench.load_generator.figures import LoadFigures, percentile, percentile_name


@pytest.mark.parametrize(
    ("count", "part", "expected"),
    [(1, 0, 1), (1, 50, 1), (1, 99.9, 1), (2, 50, 1), (2, 51, 2), (10, 90, 9), (10, 91, 10), (100, 99, 99),
     (1000, 99.9, 999), (1001, 99.9, 1000), (100_000, 99.99, 99_990), (7, 100, 7)],
)
def test_a_percentile_is_the_least_value_that_covers_so_many(count: int, part: float, expected: int) -> None:
    assert percentile(range(1, count + 1), part) == expected


def test_nothing_has_no_percentiles() -> None:
    assert percentile([], 50) is None
    assert LoadFigures().latency("PUT")["p50_ms"] is None
    assert LoadFigures().distribution("PUT") == []
    assert LoadFigures().windows("PUT", 0, 1.0) == []


def test_latencies_are_told_in_milliseconds_whatever_their_order() -> None:
    figures = LoadFigures()
    values = list(range(1, 1001))
    random.Random(1).shuffle(values)
    for value in values:
        figures.noter("PUT")(5_000_000, 5_000_000 + value * 1_000_000)
    assert figures.latency("PUT") == {
        "p50_ms": 500.0, "p90_ms": 900.0, "p99_ms": 990.0, "p99_9_ms": 999.0, "max_ms": 1000.0,
    }
    points = dict(figures.distribution("PUT"))
    assert points[50.0] == 500.0
    assert points[99.9] == 999.0
    assert points[100.0] == 1000.0
    assert 99.95 not in points      # a thousand values do not tell


def test_only_commands_count_as_commands() -> None:
    figures = LoadFigures()
    figures.noter("PUT")(0, 1)
    figures.noter("delivery")(0, 1)
    assert figures.commands == 1


def test_the_course_of_time_has_its_gaps() -> None:
    figures = LoadFigures()
    for at_ms, latency_ms in ((100, 1), (400, 3), (1600, 7)):
        now = 50_000_000 + at_ms * 1_000_000
        figures.noter("PUT")(now - latency_ms * 1_000_000, now)
    assert figures.windows("PUT", 50_000_000, 0.5) == [
        [0.5, 4.0, 3.0, 3.0], [1.0, 0.0, 0.0, 0.0], [1.5, 0.0, 0.0, 0.0], [2.0, 2.0, 7.0, 7.0],
    ]


def test_names_of_percentiles_are_words() -> None:
    assert [percentile_name(part) for part in (50.0, 99.9)] == ["p50_ms", "p99_9_ms"]
