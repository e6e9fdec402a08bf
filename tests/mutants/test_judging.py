"""A mutant is judged on a copy, by tests and then by seeds, and a program that does not end is killed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.judging import Ended, Unsound, Workshop, _failure
from tests.mutants.mutations import mutants

SOURCE = b"x = 1 < 2\n"
MUTANT = mutants(SOURCE)[0]


class Scripted(Workshop):
    """Runs nothing: answers as planned, and notes what the module looked like."""

    def __init__(self, root: Path, *answers: str) -> None:
        super().__init__(root)
        self.answers = list(answers)
        self.seen: list[tuple[str, bytes]] = []

    def _run(self, command: Sequence[str], limit_s: float, **environment: str) -> Ended:
        self.seen.append((command[2], (self.root / "a.py").read_bytes()))
        return Ended(self.answers.pop(0), 1.0, "said")


@pytest.mark.parametrize(("answers", "verdict", "run"), [
    (["red"], ("tests", "said"), ["pytest"]),
    (["timeout"], ("timeout", "said"), ["pytest"]),
    (["green", "red"], ("seeds", "said"), ["pytest", "tests.mutants.seeds"]),
    (["green", "timeout"], ("timeout", "said"), ["pytest", "tests.mutants.seeds"]),
    (["green", "green"], ("nothing", "tests and 60 seeds"), ["pytest", "tests.mutants.seeds"]),
])
def test_the_first_that_is_not_green_ends_it(answers: list[str], verdict: Any, run: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(SOURCE)
    workshop = Scripted(tmp_path, "green", "green", *answers)
    assert workshop.judge("a.py", MUTANT, ["tests/test_a.py"]) == verdict
    assert workshop.seen[:2] == [("pytest", SOURCE), ("tests.mutants.seeds", SOURCE)]
    assert workshop.seen[2:] == [(name, MUTANT.applied(SOURCE)) for name in run]
    assert (tmp_path / "a.py").read_bytes() == SOURCE


def test_what_is_red_without_a_mutant_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(SOURCE)
    with pytest.raises(Unsound, match=r"pytest .* fails without any mutant: said"):
        Scripted(tmp_path, "red").judge("a.py", MUTANT, ["tests/test_a.py"])


def test_a_mutant_is_seen_by_the_program(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(SOURCE)
    (tmp_path / "test_a.py").write_text("import a\n\ndef test_it():\n    assert a.x\n")
    workshop = Workshop(tmp_path)
    workshop._seeds = [sys.executable, "-c", "import a; assert a.x"]
    by, said = workshop.judge("a.py", MUTANT, ["test_a.py"])
    assert (by, said[:28]) == ("tests", "FAILED test_a.py::test_it - ")


@pytest.mark.parametrize(("program", "how"), [
    ("", "green"), ("raise SystemExit(1)", "red"), ("while True: pass", "timeout"), ("x = bytes(8 << 30)", "red"),
])
def test_how_a_program_ends(program: str, how: str, tmp_path: Path) -> None:
    assert Workshop(tmp_path)._run([sys.executable, "-c", program], 1.0).how == how


def test_the_first_failure_is_told_or_else_the_last_line() -> None:
    assert _failure(["..F", "FAILED a - x", "FAILED b - y", "2 failed"]) == "FAILED a - x"
    assert _failure(["Killed"]) == "Killed"
    assert _failure([]) == ""
