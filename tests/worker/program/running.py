"""Starts the real program on an app written by the test, and inspects what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.forkserver import Forkserver

WAIT_S = 120.0

# The start of every app: what a task does is recorded outside, in a file.
HEAD = '''
import os, time, asyncio, sys
from sockpq.worker import *
app = App()
def record(*words):
    with open(os.environ["RECORD"], "a") as file:
        file.write(" ".join(map(str, words)) + "\\n")
'''


class Worker:
    """One pqworker, in a folder with the app; killed at the end of the block if it is still there."""

    def __init__(self, folder: Path, servers: str, app: str, *arguments: str) -> None:
        written = folder / f"tested_app.{time.monotonic_ns()}"
        written.write_text(HEAD + app)
        written.rename(folder / "tested_app.py")        # another one of the folder may just be reading it
        self.record_file = folder / "record"
        self._log = folder / f"log{time.monotonic_ns()}"
        place = () if "--exec" in arguments else ("tested_app:app",)
        environment = {**os.environ, "SOCKPQ_SERVERS": servers, "RECORD": str(self.record_file)}
        with self._log.open("wb") as log, Path(os.devnull).open("rb") as nothing:
            self.process = Forkserver.current.run(
                "pqworker", [*place, *arguments], environment, [nothing, log, log], folder)

    @property
    def record(self) -> list[str]:
        """Return what the tasks have recorded."""
        return self.record_file.read_text().splitlines() if self.record_file.exists() else []

    @property
    def log(self) -> list[dict[str, Any]]:
        """Return the log lines, each one JSON object."""
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]

    @property
    def text(self) -> str:
        """Return all it has printed."""
        return self._log.read_text()

    def children(self) -> list[int]:
        """Return its child processes, including zombies."""
        return children_of(self.process.pid)

    def until(self, condition: Callable[[], bool], seconds: float = WAIT_S) -> None:
        """Wait for a condition; fails with the log."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"still not after {seconds} s:\n{self.text[-4000:]}\n{self.record[-20:]}"
            assert self.process.poll() is None, f"it has ended:\n{self.text[-4000:]}"
            time.sleep(0.02)

    def ready(self, children: int = 1) -> Worker:
        """Wait until it has this many children."""
        self.until(lambda: len(self.children()) >= children)
        return self

    def end(self, *signals: signal.Signals) -> int:
        """Send signals, and wait for its end; returns its exit code."""
        for number in signals:
            self.process.send_signal(number)
            time.sleep(0.1)
        return self.process.wait(WAIT_S)

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait(WAIT_S)


def children_of(pid: int) -> list[int]:
    """Return the child processes of this one, including zombies."""
    return list(_children(pid))


def zombies(pid: int, seconds: float = 60.0) -> list[int]:
    """Return the children that have ended and that it has not reaped within that time."""
    end = time.monotonic() + seconds
    while (found := [child for child, state in _children(pid).items() if state == "Z"]) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def _children(pid: int) -> dict[int, str]:
    """Return the child processes of this one, and the state of each."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found[int(entry.name)] = fields[0]
    return found


def is_there(pid: int) -> bool:
    """Return whether there is such a process."""
    return Path(f"/proc/{pid}").exists()


def all_gone(pids: list[int], seconds: float = 60.0) -> bool:
    """Return whether these have ended within that time."""
    end = time.monotonic() + seconds
    while any(map(is_there, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(is_there, pids))
