"""The comparison of a benchmark's figures with those at another commit."""

from __future__ import annotations

from pathlib import Path

from bench.revisions import as_in, separated, table

PAIRS = [({"cpu": 10.0, "rate": 5.0}, {"cpu": 8.0, "rate": 6.0}), ({"cpu": 20.0}, {"cpu": 12.0}),
         ({"cpu": 10.0}, {"cpu": 9.0})]


def test_benchmarks_are_separated_by_two_dashes() -> None:
    words = ("bench.load", "put", "--connections", "1", "--", "bench.load", "latency")
    assert separated(words) == [("bench.load", "put", "--connections", "1"), ("bench.load", "latency")]


def test_a_load_is_found_where_it_was_a_program(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "mixed.py").touch()
    assert as_in(tmp_path, ("bench.load", "handover", "--jobs", "9")) == ("bench.mixed", "--jobs", "9")
    for benchmark in (("bench.load", "mixed"), ("bench.load", "latency"), ("bench.load",), ("bench.events", "cost")):
        assert as_in(tmp_path, benchmark) == benchmark


def test_a_ratio_is_that_of_two_runs_that_followed_one_another() -> None:
    assert table("abc", ("bench.load",), PAIRS).splitlines() == [
        "| bench.load | abc | here | ratio |",
        "|---|--:|--:|--:|",
        "| cpu | 10.0 | 9.0 | 0.80 (0.60 to 0.90) |",
        "| rate | 5.0 | 6.0 | 1.20 (1.20 to 1.20) |",
    ]
    assert "rate" in table("abc", ("x",), PAIRS, ["rate"])
    assert "cpu" not in table("abc", ("x",), PAIRS, ["rate"])
