"""Restart back-off: counts consecutive failures of this node and pauses before it starts again, 1 s doubling to 60 s.

Service managers restart a node immediately and indefinitely, and not all of them can back off. So the program keeps its
own count in a file in the data directory. The file is overwritten in place, since the disk may be full.
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
HEALTHY_S = 120.0           # after this long with a leader the count is reset
FAILURES_MAX = 10**6
RECORD_BYTES = 64


class Restarts:
    """The count of consecutive failures, kept in a file. An unreadable or invalid file counts as no failures."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        """`now()`: Unix time in seconds."""
        self._file = file
        self._now = now
        self.failures, self._failed_at = self._read()
        self._timer: asyncio.TimerHandle | None = None

    def pause_s(self) -> float:
        """Return the seconds left of the pause, 0 for none."""
        if not self.failures:
            return 0.0
        pause_s = min(PAUSE_MAX_S, PAUSE_S * (1 << min(self.failures - 1, 10)))
        # Setting the clock back cannot make the pause longer.
        return min(pause_s, max(0.0, self._failed_at + pause_s - self._now()))

    def failed(self) -> None:
        """Count a failure: the node is ending itself and should be started again."""
        self.failures = min(self.failures + 1, FAILURES_MAX)
        self._failed_at = self._now()
        self._write()

    def reset_when(self, healthy: Callable[[], bool]) -> None:
        """Record a successful start: write the file, and reset the count once the node is `healthy` after HEALTHY_S."""
        self._write()
        self._watch(healthy)

    def stop(self) -> None:
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
