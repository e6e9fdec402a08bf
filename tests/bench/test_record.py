"""`make bench-record`: its steps belong to places of the document, and keep to what the machine has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import record
from bench.record import STEPS, Step, done, forget, main, missing, with_places
from bench.reports.recording import read

ROOT = Path(__file__).parents[2]


def test_each_step_has_a_place_in_the_document() -> None:
    places = set(re.findall(r"^<!-- ([a-z_ ]+) -->$", (ROOT / record.DOCUMENT).read_text(), re.MULTILINE))
    assert {step.section for step in STEPS} == places


def test_each_record_has_a_place_in_the_document() -> None:
    text = (ROOT / record.DOCUMENT).read_text()
    assert not [one.program for one in read([ROOT / record.RECORD]) if f"<!-- {one.program} -->\n" not in text]


def test_the_files_stand_before_the_words_of_other_programs() -> None:
    step = Step("revisions", ("bench.revisions", "abc", "--", "bench.load", "put"), 1, "into")
    assert with_places(step, Path("/f")) == (
        "bench.revisions", "abc", "--into", "docs/BENCHMARKS.md", "--", "bench.load", "put")
    assert with_places(Step("author", ("bench.load", "author"), 1), Path("/f")) == (
        "bench.load", "author", "--record", "bench/results/two-cores.jsonl")


def test_what_lacks_a_program_or_a_package_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    step = Step("author", ("bench.load", "author"), 1, programs=("no-such-program",), packages=("no_such_package",))
    assert list(missing(step)) == ["no-such-program", "no_such_package"]
    assert done(step)
    assert "left out, as there is no no-such-program, no_such_package" in capsys.readouterr().err


def test_earlier_records_of_a_section_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "RECORD", tmp_path / "records")
    lines = [json.dumps({"program": name, "at": number}) + "\n" for number, name in enumerate(("fan", "author", "fan"))]
    record.RECORD.write_text("".join(lines))
    forget({"fan"})
    assert record.RECORD.read_text() == lines[1]


def test_what_a_program_prints_stands_in_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "DOCUMENT", tmp_path / "document.md")
    record.DOCUMENT.write_text("<!-- turns -->\nold\n<!-- /turns -->\n")
    assert done(Step("turns", ("this",), 1, "lines"))
    text = record.DOCUMENT.read_text()
    assert text.startswith("<!-- turns -->\n* The Zen of Python")
    assert "* Beautiful is better than ugly.\n" in text
    assert "\n\nMeasured on 20" in text


def test_the_steps_can_be_listed() -> None:
    listed = CliRunner().invoke(main, ["--list", "--only", "failover"])
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.output.splitlines()] == ["failover", "failover"]
