"""A worker program at work in a folder of its own: what it has done, and the CPU time of all its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from bench.workers.systems import System

TICKS_S = os.sysconf("SC_CLK_TCK")
POLL_S = 0.01
STOP_S = 20.0
# From outside the module, as its name is part of the names of tasks.
# The first one, which connects, is not timed.
PUT = """
import sys, time, tasks
task, count, args = getattr(tasks, sys.argv[1]), int(sys.argv[2]), tuple(map(float, sys.argv[3:]))
tasks.put(task, 1, *args)
begun = time.perf_counter()
tasks.put(task, count - 1, *args)
print(time.perf_counter() - begun)
"""


class RunError(Exception):
    """A worker does not do what it should; the message has the end of its log."""


class WorkerRun:
    """One run. `place`: of the broker or the servers."""

    def __init__(self, system: System, place: str, folder: Path, children: int) -> None:
        self._system = system
        self._folder = folder
        self._count = folder / "count"
        self._count.touch()
        (folder / "tasks.py").write_text(system.program())
        self._environment = {**os.environ, "BENCH_PLACE": place, "BENCH_COUNT": str(self._count)}
        self._words = [word.format(children=children, place=place) for word in system.command]
        self._worker: subprocess.Popen[bytes] | None = None

    def put(self, task: str, count: int, *args: float) -> float:
        """Queue this many of a task; returns the time in seconds of all but the first."""
        told = subprocess.run(
            [sys.executable, "-c", PUT, task, str(count), *map(str, args)], cwd=self._folder, env=self._environment,
            check=True, stdout=subprocess.PIPE,
        )
        return float(told.stdout.split()[-1])

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._worker = subprocess.Popen(
                self._words, cwd=self._folder, env=self._environment, stdout=log, stderr=log, start_new_session=True,
            )

    def over(self) -> int:
        """Return the number of tasks that have ended."""
        return self._count.stat().st_size

    def waits(self, seconds: float) -> list[float]:
        """Return how long each task that sleeps for `seconds` waited until it began, in seconds."""
        lines = self._count.with_name("count.waits").read_text().splitlines()
        return [float(waited) for slept, waited in map(str.split, lines) if float(slept) == seconds]

    def wait(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait until the condition holds. Raises RunError."""
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until or not self._worker or self._worker.poll() is not None:
                raise RunError(f"{self.over()} tasks are over; {(self._folder / 'log').read_text()[-2000:]}")
            time.sleep(POLL_S)

    def cpu_s(self) -> float:
        """Return the CPU time of the worker and of all processes that it has started, including ended ones."""
        assert self._worker
        return sum(_cpu_s(pid) for pid in family(self._worker.pid))

    def children(self) -> int:
        """Return the number of processes that the worker has started."""
        assert self._worker
        return len(family(self._worker.pid)) - 1

    def __enter__(self) -> WorkerRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._worker and self._worker.poll() is None:
            self._worker.send_signal(signal.SIGTERM)
            try:
                self._worker.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._worker.pid, signal.SIGKILL)
                self._worker.wait()


def family(pid: int) -> list[int]:
    """Return this process and all below it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                parents[int(entry.name)] = int(fields[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _cpu_s(pid: int) -> float:
    fields = _stat(pid)
    return sum(map(int, fields[11:15])) / TICKS_S if fields else 0.0


def _stat(pid: int) -> list[str]:
    """Return the fields after the name."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
