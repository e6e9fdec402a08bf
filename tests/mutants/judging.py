"""Judges mutants on a copy of the tree: first the tests of the module, then seeds of the simulation."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutations import Mutant

SEEDS = 60
LIMIT_TIMES = 3             # a mutant gets so much of the processor time that the tests need without it,
LIMIT_EXTRA_S = 10          # and so much besides
WAITING_TIMES = 10          # so much of that in real time: for one that waits, on a machine that does much else
POLL_S = 0.05
MEMORY_BYTES_MAX = 4 << 30  # a loop without an end fills the memory as well


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    how: str                # green, red or timeout
    processor_s: float
    said: str = ""          # its first line about a failure


class Stopped(Exception):
    """The campaign was interrupted."""


class Unsound(Exception):
    """Tests are red without a mutant."""


class Workshop:
    """A copy of the tree in a folder, in which one mutant at a time is judged."""

    def __init__(self, root: Path, seeds: int = SEEDS) -> None:
        self.root = root
        self._seeds = [sys.executable, "-m", "tests.mutants.seeds", str(seeds)]
        self._few = f"tests and {seeds} seeds"
        self._limits: dict[tuple[str, ...], float] = {}         # in seconds of processor time
        self._running: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()

    @classmethod
    def copied(cls, tree: Path, root: Path, seeds: int = SEEDS) -> Workshop:
        """Copy what git knows of a tree, and what is new in it and not ignored."""
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=tree, check=True,
            capture_output=True, text=True,
        ).stdout.split("\0")
        for name in filter(None, names):
            if (tree / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(tree / name, root / name)
        return cls(root, seeds)

    def _limit_s(self, command: Sequence[str]) -> float:
        """Learn how long a command takes without a mutant."""
        if tuple(command) not in self._limits:
            ended = self._run(command, 0, PYTHONDONTWRITEBYTECODE="")
            if ended.how != "green":
                raise Unsound(f"{' '.join(command)} fails without any mutant: {ended.said}")
            self._limits[tuple(command)] = LIMIT_TIMES * ended.processor_s + LIMIT_EXTRA_S
        return self._limits[tuple(command)]

    def judge(self, module: str, mutant: Mutant, tests: Sequence[str]) -> tuple[str, str]:
        """What notices the mutant: tests, seeds, timeout or nothing; and the first line about it."""
        commands = {"tests": _pytest(tests), "seeds": self._seeds}
        limits_s = {by: self._limit_s(command) for by, command in commands.items()}
        path = self.root / module
        source = path.read_bytes()
        changed = mutant.applied(source)
        compile(changed, module, "exec")        # what is no program would count as caught
        path.write_bytes(changed)
        try:
            for by, command in commands.items():
                ended = self._run(command, limits_s[by], PYTHONDONTWRITEBYTECODE="1")
                if ended.how != "green":
                    return by if ended.how == "red" else ended.how, ended.said
            return "nothing", self._few
        finally:
            path.write_bytes(source)

    def stop(self) -> None:
        """End what is running; judge() raises Stopped then, in its thread."""
        self._stopped.set()
        if (running := self._running) is not None:
            _kill(running)

    def _run(self, command: Sequence[str], limit_s: float, **environment: str) -> Ended:
        if self._stopped.is_set():
            raise Stopped
        with tempfile.TemporaryFile("w+", errors="replace") as said, subprocess.Popen(
            command, cwd=self.root, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            start_new_session=True, env={**os.environ, **environment, "PYTHONPATH": "", "COLUMNS": "200"},
        ) as process:
            self._running = process
            if limit_s:
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (int(limit_s) + 1, int(limit_s) + 1))
                resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
            until = time.monotonic() + (WAITING_TIMES * limit_s or float("inf"))
            while not (over := _has_ended(process)) and time.monotonic() < until:
                time.sleep(POLL_S)
            _kill(process)      # and what it has started
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = code = os.waitstatus_to_exitcode(status)
            self._running = None
            said.seek(0)
            failure = _failure(said.read().splitlines())
        if self._stopped.is_set():
            raise Stopped
        spent_s = usage.ru_utime + usage.ru_stime
        if not over or code in (-signal.SIGXCPU, -signal.SIGKILL):
            return Ended("timeout", spent_s, f"after {spent_s:.0f} s of processor time")
        return Ended("red" if code else "green", spent_s, failure)


def _pytest(tests: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]


def _failure(lines: Sequence[str]) -> str:
    named = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return (named or [*lines[-1:], ""])[0]


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
