"""Ways to run pqctl."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from sockpqd.pqctl.main import main
from tests.forkserver import Forkserver

PROGRAM = Path(sys.executable).parent / "pqctl"
PATIENCE_S = 120.0


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run pqctl in this process; returns exit code, output, errors."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    captured = capsys.readouterr()
    assert isinstance(end.value.code, int)
    return end.value.code, captured.out, captured.err


def ask(capsys: pytest.CaptureFixture[str], servers: Sequence[str], *arguments: str) -> tuple[int, Any]:
    """Return the exit code and the output of --json."""
    code, out, _ = run(capsys, "--servers", ",".join(servers), *arguments, "--json")
    return code, json.loads(out)


def execute(servers: Sequence[str], *arguments: str | bytes, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run pqctl as a process, with `data` for its standard input."""
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as errors:
        given.write(data)
        for file in (given, out, errors):
            file.seek(0)
        environment = {**os.environ, "SOCKPQ_SERVERS": ",".join(servers)}
        process = Forkserver.current.run("pqctl", arguments, environment, [given, out, errors])
        code = process.wait(PATIENCE_S)
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), errors.read())


def start(*arguments: str) -> subprocess.Popen[str]:
    """Start pqctl as a process that can be interrupted, its output in pipes."""
    return subprocess.Popen(
        [PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible)


def interruptible() -> None:
    """Restore SIGINT: tests in the background (of a shell, nohup) ignore signals, and children inherit that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Terminal:
    """A process at a terminal of its own."""

    def __init__(self, servers: Sequence[str], *arguments: str, columns: int = 80) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, columns))
        environment = {**_without_size(), "SOCKPQ_SERVERS": ",".join(servers), "TERM": "xterm"}
        self._process = Forkserver.current.run("pqctl", arguments, environment, [slave, slave, slave])
        os.close(slave)
        self.text = ""

    def wait_for(self, what: str) -> None:
        """Read until this has been written."""
        until = time.monotonic() + PATIENCE_S
        while what not in self.text:
            assert time.monotonic() < until, f"{what!r} does not come: {self.text!r}"
            assert self._read(), f"it ended without {what!r}: {self.text!r}"

    def type(self, keys: str) -> None:
        """Type as if at its keyboard."""
        os.write(self._master, keys.encode())

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        self._process.send_signal(number)

    def end(self) -> int:
        """Read the rest; returns the exit code."""
        try:
            while self._read():
                pass
            return self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            os.close(self._master)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE_S)
        try:
            data = os.read(self._master, 65536) if ready else b""
        except OSError:             # EIO: the other end is closed
            data = b""
        self.text += data.decode()
        return bool(data)


def _without_size() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
