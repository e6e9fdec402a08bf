"""Runs programs on the copy of the tree in forks of a process that has imported all that no mutant changes.

`python -m tests.mutants.forks`, in the folder of the copy, reads a request in each line, and answers with a line.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

IMPORTED = (
    "pytest", "hypothesis", "msgpack", "pysyncobj", "sockpqd.core", "devcluster.cluster", "sockpq.testing",
    "tests.forkserver",
)
WAITING_TIMES = 10          # a program gets so much of its processor time in real time: the machine may do much else
MEMORY_BYTES_MAX = 4 << 30  # a loop without an end fills the memory as well
POLL_S = 0.05


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    how: str                # green, red or timeout
    processor_s: float
    said: str = ""          # its first line about a failure


class Stopped(Exception):
    """The campaign was interrupted."""


class Forks:
    """The process, until close()."""

    def __init__(self, folder: Path) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.forks"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, start_new_session=True, env={**os.environ, "PYTHONPATH": "", "COLUMNS": "200"},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._requests, self._answers = process, process.stdin, process.stdout

    def run(self, program: Sequence[str], limit_s: float = 0.0) -> Ended:
        """Run a module with these arguments, with a limit of its processor time, 0 for none."""
        try:
            print(json.dumps([program, limit_s]), file=self._requests, flush=True)
            answer = self._answers.readline()
        except (OSError, ValueError):           # the process is gone, the file is closed
            answer = ""
        if not answer:
            raise Stopped
        return Ended(**json.loads(answer))

    def close(self) -> None:
        """End it, and what it runs; run() raises Stopped then, in its thread."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for file in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                file.close()


# In the process

def main() -> None:
    """Answer requests."""
    for module in IMPORTED:
        importlib.import_module(module)
    assert not any(module.startswith("sockpqd.cluster") for module in sys.modules), "mutants would not be imported"
    gc.freeze()
    for request in sys.stdin:
        program, limit_s = json.loads(request)
        print(json.dumps(asdict(_run(program, limit_s))), flush=True)


def _run(program: list[str], limit_s: float) -> Ended:
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        pid = os.fork()
        if pid == 0:
            _become(program, limit_s, said.fileno())
        until = time.monotonic() + (WAITING_TIMES * limit_s or float("inf"))
        while not (over := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)) and time.monotonic() < until:
            time.sleep(POLL_S)
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        said.seek(0)
        lines = said.read().splitlines()
    code, spent_s = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
    if not over or code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Ended("timeout", spent_s, f"after {spent_s:.0f} s of processor time")
    return Ended("red" if code else "green", spent_s, failure(lines))


def _become(program: list[str], limit_s: float, out: int) -> None:
    """Run the program in this process, which ends with it."""
    code = 1
    try:
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if limit_s:
            limit = int(limit_s) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
            sys.dont_write_bytecode = True
        sys.argv = program
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
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


def failure(lines: Sequence[str]) -> str:
    """The first line about a failed test, or else the last line."""
    named = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return (named or [*lines[-1:], ""])[0]


if __name__ == "__main__":
    main()
