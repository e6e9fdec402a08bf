"""Judges mutants on a copy of the tree: first the tests of the module, then seeds of the simulation."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.collected import Collected
from tests.mutants.forks import LIMIT_EXTRA_S, LIMIT_TIMES, Ended, Forks
from tests.mutants.mutations import Mutant

SEEDS = 60


class Unsound(Exception):
    """Tests are red without a mutant."""


class Workshop:
    """A copy of the tree in a folder, in which one mutant at a time is judged."""

    def __init__(self, root: Path, seeds: int = SEEDS, collected: Sequence[str] = ()) -> None:
        self.root = root
        self._seeds = seeds
        self._tests = collected
        self._collected: Collected | None = None
        self._limits_s: dict[tuple[str, ...], float] = {}       # of processor time
        self._forks: Forks | None = None

    @classmethod
    def copied(cls, tree: Path, root: Path, seeds: int = SEEDS, collected: Sequence[str] = ()) -> Workshop:
        """Copy what git knows of a tree, and what is new in it and not ignored.

        `collected`: the files of tests of all modules that are mutated.
        """
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=tree, check=True,
            capture_output=True, text=True,
        ).stdout.split("\0")
        for name in filter(None, names):
            if (tree / name).is_file() or (tree / name).is_symlink():       # sockpqd/ has links to folders
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(tree / name, root / name, follow_symlinks=False)
        return cls(root, seeds, collected)

    def judge(self, module: str, mutant: Mutant, tests: Sequence[str]) -> tuple[str, str]:
        """Return what notices the mutant: tests, seeds, timeout or nothing; and the first line about it.

        Raises Unsound, and Stopped after close().
        """
        path = self.root / module
        source = path.read_bytes()
        changed = mutant.applied(source)
        compile(changed, module, "exec")        # what is no program would count as caught
        ended = self._in_place(module, mutant.line, changed, tests)
        programs = {"seeds": ["tests.mutants.seeds", str(self._seeds)]} if self._seeds else {}
        if ended.how == "unsound":
            raise Unsound(f"a test fails without any mutant: {ended.said}")
        if ended.how == "import":
            programs = {"tests": self._pytest(tests), **programs}
        elif ended.how != "green":
            return "tests" if ended.how == "red" else ended.how, ended.said
        for program in programs.values():
            self._learn(program)
        times = path.stat()
        path.write_bytes(changed)
        os.utime(path, (0, 0))      # bytecode is matched by time and size: never use the original module's
        try:
            for by, program in programs.items():
                ended = self._run(program, self._limits_s[tuple(program)])
                if ended.how != "green":
                    return by if ended.how == "red" else ended.how, ended.said
            return "nothing", f"tests and {self._seeds} seeds"
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))       # whose bytecode is good again

    def close(self) -> None:
        """End the processes that are running."""
        for process in (self._forks, self._collected):
            if process is not None:
                process.close()

    def _in_place(self, module: str, line: int, changed: bytes, tests: Sequence[str]) -> Ended:
        """Run the tests with changed functions; `how` is `import` if that is not enough."""
        if self._collected is None:
            self._collected = Collected(self.root, self._tests)
            ended = self._collected.learn()
            if ended.how != "green":
                raise Unsound(f"a test fails without any mutant: {ended.said}")
        return self._collected.judge(module, line, changed, tests, long=self._seeds > 0)

    def _learn(self, program: Sequence[str]) -> None:
        """Find out how long a program takes without a mutant."""
        if tuple(program) not in self._limits_s:
            ended = self._run(program)
            if ended.how != "green":
                raise Unsound(f"{' '.join(program)} fails without any mutant: {ended.said}")
            self._limits_s[tuple(program)] = LIMIT_TIMES * ended.processor_s + LIMIT_EXTRA_S

    def _run(self, program: Sequence[str], limit_s: float = 0.0) -> Ended:
        if self._forks is None:
            self._forks = Forks(self.root)
        return self._forks.run(program, limit_s)

    def _pytest(self, tests: Sequence[str]) -> list[str]:
        """Not among the folders of other sessions of pytest, which remove old ones."""
        return [
            "pytest", "-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning",
            f"--basetemp={self.root}-tmp", *tests,
        ]
