"""The ordinary client: a process that puts a job, takes one and finishes it, again and again, whatever others do.

    python -m tests.hostile.ordinary HABITS         # JSON

It works until its standard input ends, then prints what it has seen as JSON: a Report. It is a plain client of the
original, on one connection, that goes to another server when one does not serve.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct, field

from tests.wire import Broken, Wire

ROOT = Path(__file__).parents[2]
QUEUE = "ordinary"
LOST = "no answer"                  # the connection ended, or was silent for too long: the outcome is unknown
ANSWER_S = 5.0
ASIDE_S = 0.02
START_S = 30.0
STOP_S = 60.0

# What any client must expect: that the leader changes, and that a job is on its way to a connection that has ended.
USUAL = (LOST, "500 Offline Mode", "404 Queue Empty", "404 Job Not Found")


class Habits(Struct, frozen=True):
    """The settings of the client."""

    servers: tuple[str, ...] = ()
    lease_s: float = 10.0
    pause_s: float = 0.007          # between two cycles: about 100 of them a second
    source: str | None = None       # the address it comes from
    cycles: int = 0                 # on one connection, then it makes another one; 0: as long as it lasts
    ca: str | None = None           # the file with the authority of the servers' certificates: TLS
    sessions: bool = False          # each connection has a session of its own, and numbers its commands


class Report(Struct):
    """The client's observations. Times are of time.monotonic(), which all processes of a machine share."""

    ended_s: list[float] = field(default_factory=list)              # when each cycle ended
    commands: list[tuple[float, float]] = field(default_factory=list)   # of each that was answered: when sent, ms
    errors: list[tuple[float, str]] = field(default_factory=list)   # when, "PUT: 503 Busy"
    acknowledged: list[int] = field(default_factory=list)           # the numbers of jobs that were put,
    maybe_put: list[int] = field(default_factory=list)              # that may have been put,
    finished: list[int] = field(default_factory=list)               # were finished,
    maybe_finished: list[int] = field(default_factory=list)         # or may have been


class Failed(Exception):
    """A command that was not executed, or of unknown outcome: the cycle does not count."""


class Worker:
    """The ordinary client, which must not suffer from an attack."""

    def __init__(self, habits: Habits) -> None:
        self._habits = habits
        self._servers = itertools.cycle(habits.servers)
        self._server = next(self._servers)
        self._wire: Wire | None = None
        self._tls = None if habits.ca is None else ssl.create_default_context(cafile=habits.ca)
        self._request = 0               # the number of the last command in the session
        self._left = 0                  # cycles on this connection
        self._number = 0
        self.report = Report()

    def cycle(self) -> None:
        """Run one cycle. Failures are noted."""
        try:
            self._connect()
            self._put()
            self._finish(*self._get())
        except Failed:
            time.sleep(ASIDE_S)
        else:
            self.report.ended_s.append(time.monotonic())
        self._left -= 1
        if self._habits.cycles and self._left <= 0:
            self.close()

    def close(self) -> None:
        """End the connection."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def _put(self) -> None:
        self._number += 1
        body = str(self._number).encode()
        try:
            self._ask("PUT", f"PUT {QUEUE} 0 {len(body)}", body)
        except Failed as failed:
            if str(failed) == LOST:
                self.report.maybe_put.append(self._number)
            raise
        self.report.acknowledged.append(self._number)

    def _get(self) -> tuple[str, int]:
        """Return a job's id and number."""
        words = self._ask("GET", f"GET {QUEUE} EXPIRE {self._habits.lease_s:g}").split()
        return words[3], int(self._exactly(int(words[5])))

    def _finish(self, job_id: str, number: int) -> None:
        try:
            self._ask("DONE", f"DONE {job_id}")
        except Failed as failed:
            if str(failed) == LOST:
                self.report.maybe_finished.append(number)
            raise
        self.report.finished.append(number)

    def _connect(self) -> None:
        if self._wire is not None:
            return
        try:
            self._wire = Wire(self._server, ANSWER_S, source=self._habits.source, tls=self._tls)
        except Broken as error:
            self._note("connect", LOST)
            self._server = next(self._servers)
            raise Failed(str(error)) from error
        self._left = self._habits.cycles
        if self._habits.sessions:
            self._request = 0
            self._ask("SESSION", "SESSION TTL 30", numbered=False)

    def _ask(self, verb: str, line: str, data: bytes = b"", *, numbered: bool = True) -> str:
        """Return the line of a good answer. Raises Failed."""
        assert self._wire
        if self._habits.sessions and numbered:
            self._request += 1
            line = f"REQ {self._request} {line}"
        sent = time.monotonic()
        try:
            answer = self._wire.say(line, data)
        except Broken:
            answer = LOST
        if answer != LOST:
            self.report.commands.append((sent, (time.monotonic() - sent) * 1000))
        if answer.startswith("200 OK"):
            return answer
        self._note(verb, answer)
        if not answer.startswith("404"):        # elsewhere, or later
            self.close()
            self._server = next(self._servers)
        raise Failed(answer)

    def _exactly(self, length: int) -> bytes:
        """Return this many bytes. Raises Failed."""
        assert self._wire
        try:
            return self._wire.exactly(length)
        except Broken as error:
            self._note("GET", LOST)
            self.close()
            raise Failed(LOST) from error

    def _note(self, verb: str, answer: str) -> None:
        self.report.errors.append((time.monotonic(), f"{verb}: {answer}"))


class Ordinary:
    """The client's process, as its parent sees it."""

    def __init__(self, habits: Habits) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.ordinary", msgspec.json.encode(habits).decode()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, cwd=ROOT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def wait_until_working(self) -> None:
        """Wait until it has done a few cycles. Raises TimeoutError when it does not get that far."""
        assert self._process.stdout
        readable, _, _ = select.select([self._process.stdout], [], [], START_S)
        if not readable or self._process.stdout.readline() != b"working\n":
            raise TimeoutError("the ordinary client gets nothing done")

    def finish(self) -> Report:
        """Let it complete its cycle and return its record."""
        output, _ = self._process.communicate(timeout=STOP_S)
        return msgspec.json.decode(output, type=Report)


def unusual(errors: list[tuple[float, str]], excused: tuple[str, ...]) -> Counter[str]:
    """Return unexpected errors, with the number of times each occurred."""
    return Counter(error for _, error in errors if error not in excused and not error.endswith(USUAL))


def main(habits: str) -> None:
    """Work until the standard input ends."""
    stopping = threading.Event()
    worker = Worker(msgspec.json.decode(habits, type=Habits))

    def listen() -> None:
        sys.stdin.buffer.read()
        stopping.set()

    threading.Thread(target=listen, daemon=True).start()
    told = False
    while not stopping.wait(worker._habits.pause_s):
        worker.cycle()
        if not told and len(worker.report.ended_s) >= 10:
            print("working", flush=True)
            told = True
    worker.close()
    with contextlib.suppress(BrokenPipeError):      # the reader was killed
        sys.stdout.buffer.write(msgspec.json.encode(worker.report))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
