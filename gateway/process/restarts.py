"""How often in a row this node had to end itself, and the pause before it starts again: 1 s, doubled up to 60 s.

The service manager starts it again at once and for ever; not every one can make its pauses longer. So the program
remembers in a file of its data directory. That is written in place, for the disk may be full.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

PAUSE_S = 1.0               # before the start after the first failure,
PAUSE_MAX_S = 60.0          # and at most
HEALTHY_S = 120.0           # after so long with a leader failures are counted anew
FAILURES_MAX = 10**6
RECORD_BYTES = 64


class Restarts:
    """The file. Whatever is wrong with it is no reason for anything: there is no pause then."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        """`now()`: Unix time in seconds."""
        self._file = file
        self._now = now
        self.failures, self._failed_at = self._read()
        self._timer: asyncio.TimerHandle | None = None

    def pause_s(self) -> float:
        """So many seconds of the pause are left, 0: none."""
        if not self.failures:
            return 0.0
        pause_s = min(PAUSE_MAX_S, PAUSE_S * (1 << min(self.failures - 1, 10)))
        # Whoever sets the clock does not make the pause longer.
        return min(pause_s, max(0.0, self._failed_at + pause_s - self._now()))

    def failed(self) -> None:
        """The node ends itself now, and should be started again."""
        self.failures = min(self.failures + 1, FAILURES_MAX)
        self._failed_at = self._now()
        self._write()

    def begin_anew_when(self, healthy: Callable[[], bool]) -> None:
        """The node has started: make the file, and forget failures when it has been `healthy` for HEALTHY_S."""
        self._write()
        self._watch(healthy)

    def stop(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self, healthy: Callable[[], bool]) -> None:
        if self.failures:
            self._timer = asyncio.get_running_loop().call_later(HEALTHY_S, self._look, healthy)

    def _look(self, healthy: Callable[[], bool]) -> None:
        if healthy():
            self.failures = 0
            self._write()
        self._watch(healthy)

    def _read(self) -> tuple[int, float]:
        try:
            failures, failed_at = self._file.read_text("ascii").split()
            return min(max(int(failures), 0), FAILURES_MAX), float(failed_at)
        except (OSError, ValueError):
            return 0, 0.0

    def _write(self) -> None:
        record = f"{self.failures} {self._failed_at:.3f}".encode().ljust(RECORD_BYTES - 1) + b"\n"
        with contextlib.suppress(OSError):
            file = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(file, record, 0)
            finally:
                os.close(file)
