"""`python -m tests.lanes fast` or `all`: the test commands behind `make test-fast` and `make test`, several at a time.

Each lane is a process. Its lines are printed as they come, with its name in front. At the very end are all failed tests
of all lanes, and a line on each lane: the end of a log alone shows the reason. The exit code is 0 when that
of every lane is. An interrupt (SIGINT or SIGTERM) ends all lanes and waits until they have cleaned up; a second one
kills them. Further arguments go to every pytest, as in `python -m tests.lanes all -x`.

The lanes of `all` share the tests between them: what mostly computes is in one, what mostly waits for real processes
is in the others, so that two cores are busy. The lane that computes yields to the others, whose clients and nodes are
watched by the clock; together they take as long as before. Which test is in which lane is decided in tests/conftest.py.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TextIO

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent

STYLE = {"ruff": [str(BIN / "ruff"), "check", "."], "mypy": [str(BIN / "mypy")]}
FAST = "not processes and not long"
# Which tests are in which lane of `all`, by markers that tests/conftest.py gives to whole files.
LANES = {
    "cpu": "not processes", "waiting": "processes and not chaos and not programs", "chaos": "processes and chaos",
    "programs": "processes and programs",
}
FAST_JOBS = "3"         # of pytest-xdist: on two cores, as some tests wait for time limits of clients
CPU_JOBS = "2"          # of the lane that computes: half of its time it waits for such limits as well
YIELDING = frozenset({"cpu"})   # lanes of `all` that the others precede: no node of theirs is late for it
YIELDING_NICE = 5       # a third of the weight of others: its own tests are not held up for long
POLL_S = 0.2
COLUMNS = 160           # pytest shortens what it says of a failed test to one line of this width
SUMMARY = " short test summary info "       # of pytest: a line on each failed test follows
FAILURES = ("FAILED ", "ERROR ")            # how these lines begin
LAST_LINES = 20         # shown again of a lane that failed without such a line: style, types, a pytest that was killed

Commands = Mapping[str, Sequence[str]]


def fast(*arguments: str) -> Commands:
    """Style, types, and all tests that are quick and start no process."""
    return {**STYLE, "tests": _pytest("tests", FAST, "--fast", "-n", FAST_JOBS, *arguments)}


def everything(*arguments: str) -> Commands:
    """Style, types, and every test in one of four lanes."""
    jobs = {"cpu": ("-n", CPU_JOBS)}
    return {**STYLE, **{name: _pytest(name, chosen, *jobs.get(name, ()), *arguments) for name, chosen in LANES.items()}}


SETS = {"fast": fast, "all": everything}


def _pytest(lane: str, chosen: str, *arguments: str) -> list[str]:
    """Return the command line of a pytest that shares no file with other lanes."""
    return [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir=.pytest_cache/{lane}", "-m", chosen, *arguments]


def _environment() -> dict[str, str]:
    """Of all processes of a lane: hundreds, each of which would compile the product if no bytecode may be written."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONUNBUFFERED": "1", "COLUMNS": str(COLUMNS)}


class Lane:
    """A running command, with the last lines of its output."""

    def __init__(self, name: str, width: int, command: Sequence[str], out: TextIO, *, yields: bool = False) -> None:
        self.name = name
        self.code: int | None = None
        self.elapsed_s = 0.0
        self.processor_s = 0.0
        self._failures: list[str] = []
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._label = f"{name:{width}} | "
        self._out = out
        self._began = time.monotonic()
        # A session of its own: Ctrl-C reaches only this program, which tells each lane once.
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
            env=_environment(),
        )
        if yields:
            _yield(self._process.pid)
        self.thread = threading.Thread(target=self._follow, name=name)
        self.thread.start()

    def send(self, number: signal.Signals, *, to_all: bool = False) -> None:
        """Send a signal to the process, or to all it has started in its session."""
        if self.thread.is_alive():
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if to_all else os.kill)(self._process.pid, number)

    def _follow(self) -> None:
        assert self._process.stdout
        summary = False
        with self._process.stdout as lines:
            for line in map(str.rstrip, lines):
                self._out.write(f"{self._label}{line}\n")       # in one write: lanes do not mix in a line
                self._out.flush()
                self._last.append(line)
                summary |= SUMMARY in line
                if summary and line.startswith(FAILURES):
                    self._failures.append(line)
        _, status, usage = os.wait4(self._process.pid, 0)
        self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self.elapsed_s = time.monotonic() - self._began
        self.processor_s = usage.ru_utime + usage.ru_stime

    def reasons(self) -> list[str]:
        """Why it failed: a line on each failed test, or else the last lines of its output. Nothing if it passed."""
        return [] if self.code == 0 else [f"{self._label}{line}" for line in self._failures or self._last]

    def __str__(self) -> str:
        ended = "passed" if self.code == 0 else f"FAILED with exit code {self.code}"
        return f"{self._label}{ended} in {self.elapsed_s:.0f} s, {self.processor_s:.0f} s of processor time"


def _yield(session: int) -> None:
    """Let the processes of a session run after others, by as much more as this process does."""
    nice = os.getpriority(os.PRIO_PROCESS, 0) + YIELDING_NICE      # the kernel takes 19 for what is more
    with contextlib.suppress(ProcessLookupError):                  # it has ended already
        os.setpriority(os.PRIO_PGRP, session, nice)
    # Where the kernel shares the cores among sessions, a process's nice counts within its session only.
    with contextlib.suppress(OSError):                             # this kernel has no such groups
        Path(f"/proc/{session}/autogroup").write_text(f"{YIELDING_NICE}\n")


def run(commands: Commands, out: TextIO = sys.stdout, *, yielding: Collection[str] = ()) -> int:
    """Run all commands at once, to the end; those named in `yielding` after the others, where a core is short.

    Returns 0 when all passed, 130 when interrupted, else 1.
    """
    width = max(map(len, commands))
    interrupts: list[int] = []
    with _interrupts_into(interrupts):
        lanes = [Lane(name, width, command, out, yields=name in yielding) for name, command in commands.items()]
        told = 0
        while any(lane.thread.is_alive() for lane in lanes):
            if len(interrupts) > told:
                told = len(interrupts)
                for lane in lanes:
                    if told == 1:
                        lane.send(signal.SIGINT)
                    else:
                        lane.send(signal.SIGKILL, to_all=True)
            for lane in lanes:
                lane.thread.join(POLL_S / len(lanes))
    for line in (*(reason for lane in lanes for reason in lane.reasons()), *lanes):
        print(line, file=out, flush=True)
    if interrupts:
        return 130
    return 0 if all(lane.code == 0 for lane in lanes) else 1


@contextlib.contextmanager
def _interrupts_into(received: list[int]) -> Iterator[None]:
    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    # A handler of our own also where the signal was ignored, as behind a shell's "&": lanes would ignore it as well.
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str]) -> int:
    """Run one of the sets."""
    if not arguments or arguments[0] not in SETS:
        print(f"usage: python -m tests.lanes {{{','.join(SETS)}}} [arguments of pytest]", file=sys.stderr)
        return 2
    return run(SETS[arguments[0]](*arguments[1:]), yielding=YIELDING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
