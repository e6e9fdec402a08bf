"""Runs programs on the copy of the tree in forks of a process that has imported all that no mutant changes.

`python -m tests.mutants.forks`, in the folder of the copy, reads a request in each line, and answers with a line.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

IMPORTED = (
    "pytest", "hypothesis", "msgpack", "pysyncobj", "sockpqd.core", "devcluster.cluster", "sockpq.testing",
    "tests.forkserver",
)
WAITING_TIMES = 10          # a program gets so much of its processor time in real time: the machine may do much else
MEMORY_BYTES_MAX = 4 << 30  # a loop without an end fills the memory as well
LIMIT_TIMES = 3             # a mutant gets so much of the processor time that the tests need without it,
LIMIT_EXTRA_S = 10          # and so much besides
POLL_S = 0.005


@dataclass(frozen=True)
class Ended:
    """The end of a program."""

    how: str                # green, red or timeout; of tests also import, which only a new import can tell
    processor_s: float
    said: str = ""          # its first line about a failure


class Stopped(Exception):
    """The campaign was interrupted."""


class Process:
    """One that answers requests, until close()."""

    def __init__(self, folder: Path, *module: str) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", *module], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, start_new_session=True, env={**os.environ, "PYTHONPATH": "", "COLUMNS": "200"},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._requests, self._answers = process, process.stdin, process.stdout

    def ask(self, request: object) -> Ended:
        """Send a request, and wait for its outcome. Raises Stopped if the process is gone."""
        try:
            print(json.dumps(request), file=self._requests, flush=True)
            answer = self._answers.readline()
        except (OSError, ValueError):           # the process is gone, the file is closed
            answer = ""
        if not answer:
            raise Stopped
        return Ended(**json.loads(answer))

    def close(self) -> None:
        """End it, and what it runs; ask() raises Stopped then, in its thread."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for file in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                file.close()


class Forks(Process):
    """The process that runs programs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "tests.mutants.forks")

    def run(self, program: Sequence[str], limit_s: float = 0.0) -> Ended:
        """Run a module with these arguments, with a limit of its processor time, 0 for none."""
        return self.ask([program, limit_s])


# In the process

def main() -> None:
    """Import the modules once, then answer each request on standard input from a fork."""
    for module in IMPORTED:
        importlib.import_module(module)
    assert not any(module.startswith("sockpqd.cluster") for module in sys.modules), "mutants would not be imported"
    gc.freeze()
    for request in sys.stdin:
        program, limit_s = json.loads(request)
        print(json.dumps(asdict(_run(program, limit_s))), flush=True)


def _run(program: list[str], limit_s: float) -> Ended:
    return in_fork(lambda: _become(program, limit_s), WAITING_TIMES * limit_s)


def in_fork(work: Callable[[], None], wait_s: float = 0.0) -> Ended:
    """Do the work in a fork of this process, for this many seconds at most, 0 for as long as it takes."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        pid = os.fork()
        if pid == 0:
            _end(work, said.fileno())
        until = time.monotonic() + wait_s
        poll = os.WNOHANG if wait_s else 0
        while not (over := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | poll)) and time.monotonic() < until:
            time.sleep(POLL_S)
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        said.seek(0)
        lines = said.read().splitlines()
    code, spent_s = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
    if not over or code in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM):
        return Ended("timeout", spent_s, f"after {spent_s:.0f} s of processor time")
    return Ended("red" if code else "green", spent_s, failure(lines))


def _end(work: Callable[[], None], out: int) -> None:
    """Do the work in this process, which ends with it."""
    code = 1
    try:
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _become(program: list[str], limit_s: float) -> None:
    if limit_s:
        limit = int(limit_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        sys.dont_write_bytecode = True
    sys.argv = program
    runpy.run_module(program[0], run_name="__main__", alter_sys=True)


def failure(lines: Sequence[str]) -> str:
    """The first line about a failed test, or else the last line."""
    named = [line for line in lines if line.startswith("FAILED ") or re.match(r"ERROR \S", line)]     # not of a log
    return (named or [*lines[-1:], ""])[0]


if __name__ == "__main__":
    main()
