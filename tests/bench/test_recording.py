"""The records of benchmarks, and the tables and pictures made of them."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from bench.reports.recording import Record, columns, heading, machine, read, written
from bench.reports.tables import replaced, tables
from tests.bench.running import run

ROOT = Path(__file__).parents[2]

RECORD = Record(
    "mixed", "2026-01-02T03:04:05+00:00", "0.1.0", "3 local nodes",
    {"cores": 2, "cpu": "a CPU", "kernel": "6.1", "python": "3.11.2"}, {"jobs": 1000, "rate": 0.5, "freeze": False},
    [{"step": "PUT", "per_second": 1234.5, "p99_9_ms": 2.0}, {"step": "DONE", "per_second": 99.0, "cpu_us": None}],
    {"ratio": 0.923}, {}, {"PUT: 503 Busy": 2},
)


def keep(path: Path, *records: Record) -> Path:
    path.write_text("".join(json.dumps(asdict(record)) + "\n" for record in records))
    return path


def test_of_the_same_measurement_the_last_one_counts(tmp_path: Path) -> None:
    later = replace(RECORD, at="2026-01-03T00:00:00+00:00", summary={"ratio": 1.0})
    other = replace(RECORD, at="2026-01-01T00:00:00+00:00", options={"jobs": 2000})
    assert read([keep(tmp_path / "a", later, other), keep(tmp_path / "b", RECORD)]) == [other, later]


@pytest.mark.parametrize("line", ["{", "[]", '{"program": "mixed"}'])
def test_a_line_that_is_no_record_is_told_with_its_place(tmp_path: Path, line: str) -> None:
    path = keep(tmp_path / "a", RECORD)
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match="a:2: "):
        read([path])


def test_a_machine_is_described_without_its_name() -> None:
    described = machine()
    assert described["cores"] == os.cpu_count()
    assert all(described.values())
    assert platform.node() not in described.values()


def test_figures_have_as_many_digits_as_say_something() -> None:
    assert [written(value) for value in (None, "x", 1234, 1234.56, 123.45, 1.234, 0.0)] == [
        "-", "x", "1,234", "1,235", "123.5", "1.23", "0.00",
    ]


def test_columns_without_values_are_left_out() -> None:
    assert columns(RECORD.rows) == ["step", "per_second", "p99_9_ms"]
    assert [heading(name) for name in ("p99_9_ms", "cpu_us_per_job")] == ["p99.9 ms", "CPU µs per job"]


def test_a_table_tells_what_was_measured_how() -> None:
    assert tables([RECORD]) == {"mixed": """\
3 local nodes, sockpqd 0.1.0, 2026-01-02, 2 cores a CPU, Linux 6.1, Python 3.11.2.
Options: jobs 1,000, rate 0.5, freeze no.

| step | per second | p99.9 ms |
|---|--:|--:|
| PUT | 1,234 | 2.00 |
| DONE | 99.00 | - |

Ratio: 0.92.

Problems: 2 x PUT: 503 Busy.
"""}


def test_tables_go_to_their_places_again_and_again() -> None:
    document = "a\n<!-- mixed -->\nold\n<!-- /mixed -->\nb\n<!-- fan -->\n<!-- /fan -->\n"
    once = replaced(document, {"mixed": "new \\1\n"})
    assert once == "a\n<!-- mixed -->\nnew \\1\n<!-- /mixed -->\nb\n<!-- fan -->\n<!-- /fan -->\n"
    assert replaced(once, {"mixed": "new \\1\n"}) == once
    with pytest.raises(ValueError, match="no place"):
        replaced(document, {"depth": "x\n"})


def test_tables_are_written_into_a_document(tmp_path: Path) -> None:
    path = keep(tmp_path / "a", RECORD)
    document = tmp_path / "document"
    document.write_text("<!-- mixed -->\n<!-- /mixed -->\n")
    ended = run("bench.reports.tables", path, "--into", document)
    assert ended.exit_code == 0, ended.stderr
    assert "| PUT | 1,234 | 2.00 |" in document.read_text()
    assert "| PUT | 1,234 | 2.00 |" in run("bench.reports.tables", path).stdout
    path.write_text("x\n")
    ended = run("bench.reports.tables", path)
    assert ended.exit_code == 1
    assert "a:1:" in ended.stderr


def test_the_document_has_a_place_for_each_program() -> None:
    programs = ("author", "fan", "depth", "latency", "failover", "handover", "tails")
    text = (ROOT / "docs" / "BENCHMARKS.md").read_text()
    assert replaced(text, dict.fromkeys(programs, "x\n")).count("\nx\n") == len(programs)
    for program in programs:
        assert f"python -m bench.load {program}" in text
