"""A mutant is judged on a copy, by tests and then by seeds, and a program that does not end is killed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.forks import Ended, Forks, Stopped, failure
from tests.mutants.judging import Unsound, Workshop
from tests.mutants.mutations import mutants

SOURCE = b"x = 1 == 1\n"
MUTANT = mutants(SOURCE)[0]


class Scripted(Workshop):
    """Runs nothing: answers as planned, and notes what the module looked like."""

    def __init__(self, root: Path, in_place: str, *answers: str, seeds: int = 60) -> None:
        super().__init__(root, seeds)
        self.in_place = in_place
        self.answers = list(answers)
        self.seen: list[tuple[str, bytes]] = []

    def _run(self, program: Sequence[str], limit_s: float = 0.0) -> Ended:
        self.seen.append((program[0], (self.root / "a.py").read_bytes()))
        return Ended(self.answers.pop(0), 1.0, "said")

    def _in_place(self, module: str, line: int, changed: bytes, tests: Sequence[str]) -> Ended:
        assert changed == MUTANT.applied(SOURCE)
        return Ended(self.in_place, 1.0, "said")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_bytes(SOURCE)
    return tmp_path


@pytest.fixture
def forks(tmp_path: Path) -> Iterator[Forks]:
    found = Forks(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize(("in_place", "answers", "verdict", "run"), [
    ("red", [], ("tests", "said"), []),
    ("timeout", [], ("timeout", "said"), []),
    ("green", ["red"], ("seeds", "said"), ["tests.mutants.seeds"]),
    ("green", ["timeout"], ("timeout", "said"), ["tests.mutants.seeds"]),
    ("green", ["green"], ("nothing", "tests and 60 seeds"), ["tests.mutants.seeds"]),
    ("import", ["red"], ("tests", "said"), ["pytest"]),
    ("import", ["timeout"], ("timeout", "said"), ["pytest"]),
    ("import", ["green", "red"], ("seeds", "said"), ["pytest", "tests.mutants.seeds"]),
])
def test_the_first_that_is_not_green_ends_it(
    in_place: str, answers: list[str], verdict: Any, run: list[str], folder: Path,
) -> None:
    programs = ["pytest", "tests.mutants.seeds"]
    learned = {"import": programs, "green": programs[1:]}.get(in_place, [])
    workshop = Scripted(folder, in_place, *["green"] * len(learned), *answers)
    assert workshop.judge("a.py", MUTANT, ["test_a.py"]) == verdict
    assert workshop.seen == [
        *((name, SOURCE) for name in learned), *((name, MUTANT.applied(SOURCE)) for name in run)]
    assert (folder / "a.py").read_bytes() == SOURCE


def test_without_seeds_nothing_else_is_run(folder: Path) -> None:
    workshop = Scripted(folder, "green", seeds=0)
    assert workshop.judge("a.py", MUTANT, ["test_a.py"]) == ("nothing", "tests and 0 seeds")
    assert workshop.seen == []


def test_what_is_red_without_a_mutant_is_said(folder: Path) -> None:
    with pytest.raises(Unsound, match=r"pytest .* fails without any mutant: said"):
        Scripted(folder, "import", "red").judge("a.py", MUTANT, ["test_a.py"])
    with pytest.raises(Unsound, match="a test fails without any mutant: said"):
        Scripted(folder, "unsound").judge("a.py", MUTANT, ["test_a.py"])


def test_what_is_no_program_is_not_judged(folder: Path) -> None:
    with pytest.raises(SyntaxError):
        Scripted(folder, "green").judge("a.py", mutants(b"x=0\ny = 1 == 1")[0], ["test_a.py"])


def test_how_programs_end(forks: Forks, tmp_path: Path) -> None:
    for program, how, said in (
        ("print('well')", "green", "^well$"), ("raise SystemExit(1)", "red", "^$"),
        ("while True: pass", "timeout", r"^after \d s of processor time$"),     # on a busy machine it gets less than 2
        ("x = bytes(8 << 30)", "red", "^MemoryError"), ("raise SystemExit('why')", "red", "^$"),
        ("print('FAILED here')\nprint('the end')\nraise SystemExit(2)", "red", "^FAILED here"),
    ):
        (tmp_path / "program.py").write_text(program)
        ended = forks.run(["program"], 1.0 if how == "timeout" else 60.0)
        assert ended.how == how, (program, ended)
        assert re.search(said, ended.said), (program, ended)


def test_a_closed_process_says_so(forks: Forks) -> None:
    forks.close()
    with pytest.raises(Stopped):
        forks.run(["program"])


def test_the_first_failure_is_told_or_else_the_last_line() -> None:
    assert failure(["..F", "FAILED a - x", "FAILED b - y", "2 failed"]) == "FAILED a - x"
    assert failure(["ERROR    sockpqd: no room", "ERROR a - x", "1 error"]) == "ERROR a - x"
    assert failure(["Killed"]) == "Killed"
    assert failure([]) == ""


def test_a_copy_has_the_links_of_the_tree(tmp_path: Path) -> None:
    tree, copy = tmp_path / "tree", tmp_path / "copy"
    (tree / "p").mkdir(parents=True)
    (tree / "p" / "a.py").write_bytes(SOURCE)
    (tree / "link").symlink_to("p")
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    Workshop.copied(tree, copy)
    assert (copy / "link").is_symlink()
    assert (copy / "link" / "a.py").read_bytes() == SOURCE
    (copy / "p" / "a.py").write_bytes(b"")
    assert (copy / "link" / "a.py").read_bytes() == b""
