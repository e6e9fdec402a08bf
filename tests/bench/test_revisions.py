"""What became of the figures of a benchmark since another commit."""

from __future__ import annotations

from bench.revisions import separated, table

PAIRS = [({"cpu": 10.0, "rate": 5.0}, {"cpu": 8.0, "rate": 6.0}), ({"cpu": 20.0}, {"cpu": 12.0}),
         ({"cpu": 10.0}, {"cpu": 9.0})]


def test_benchmarks_are_separated_by_two_dashes() -> None:
    words = ("bench.load", "put", "--connections", "1", "--", "bench.latency")
    assert separated(words) == [("bench.load", "put", "--connections", "1"), ("bench.latency",)]


def test_a_ratio_is_that_of_two_runs_that_followed_one_another() -> None:
    assert table("abc", ("bench.load",), PAIRS).splitlines() == [
        "| bench.load | abc | here | ratio |",
        "|---|--:|--:|--:|",
        "| cpu | 10.0 | 9.0 | 0.80 (0.60 to 0.90) |",
        "| rate | 5.0 | 6.0 | 1.20 (1.20 to 1.20) |",
    ]
    assert "rate" in table("abc", ("x",), PAIRS, ["rate"])
    assert "cpu" not in table("abc", ("x",), PAIRS, ["rate"])
