"""Results of several sittings, and what the report makes of them."""

from __future__ import annotations

from pathlib import Path

from tests.mutants.results import Result, append_result, read_results, read_survivors, report


def test_the_newest_result_counts_and_half_a_line_does_not(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.jsonl"
    assert read_results(path) == {}
    append_result(path, ("a.py", "f: x => True"), Result("nothing", ""))
    append_result(path, ("a.py", "f: x => True"), Result("seeds", "seed 7"))
    with path.open("a") as file:
        file.write('["a.py", "g')
    assert read_results(path) == {("a.py", "f: x => True"): Result("seeds", "seed 7")}


def test_the_report_knows_who_may_survive(tmp_path: Path) -> None:
    path = tmp_path / "survivors.toml"
    path.write_text('["a.py"]\n"f: 3" = "only the log"\n"f: 4" = "not caught"\n"f: 9" = "gone"\n["b.py"]\n"g" = "x"\n')
    results = {("a.py", f"f: {key}"): Result(by, "test_a") for key, by in enumerate(
        ["tests", "seeds", "timeout", "nothing", "tests", "nothing"])}
    lines, well = report({"a.py": [f"f: {key}" for key in range(7)]}, results, read_survivors(path))
    assert not well
    assert lines[1].split() == ["a.py", "7", "2", "1", "1", "1", "1", "1"]
    assert lines[2].split() == ["total", "7", "2", "1", "1", "1", "1", "1"]
    assert lines[3:] == [
        'SURVIVED in a.py: "f: 5"',
        "OUTDATED in a.py, caught by tests, test_a: f: 4",
        "OUTDATED in a.py, there is no such mutant: f: 9",
    ]


def test_all_is_well_when_each_survivor_is_known() -> None:
    lines, well = report({"a.py": ["f", "g"]}, {("a.py", "f"): Result("nothing", "")}, {("a.py", "f"): "equivalent"})
    assert well
    assert len(lines) == 3
