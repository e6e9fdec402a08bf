"""The comparison of versions of Python notices a difference, and the documents name the versions that are tried."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.pythons.debian import SUITES, is_done, note_done
from tests.pythons.mixed import differing

ROOT = Path(__file__).parents[2]


def test_a_seed_with_two_digests_is_named_with_the_versions() -> None:
    same = ["0 aa", "1 bb"]
    assert differing({"3.11": same, "3.13": same, "3.14": ["0 aa", "1 cc"]}) == ["seed 1: 3.11 and 3.14 differ"]
    assert differing({"3.11": same, "3.13": list(same)}) == []


def test_a_folder_that_was_moved_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "sid"
    folder.mkdir()
    assert not is_done(folder)
    note_done(folder)
    assert is_done(folder)
    assert not is_done(folder.rename(tmp_path / "elsewhere"))


def test_the_documents_name_the_first_and_the_last_version() -> None:
    first, *_, last = SUITES
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == f">={first}"
    assert f"CPython {first} to {last};" in (ROOT / "docs" / "COMPATIBILITY.md").read_text("utf-8")
    assert f"VERSIONS ?= {' '.join(SUITES)}\n" in (ROOT / "Makefile").read_text("utf-8")
