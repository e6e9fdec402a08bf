"""Writes the lines of a log in a thread of its own, so that the event loop does not wait for its reader.

Formatted lines go into a queue; the thread writes them, many at once if there are many: after each write it waits until
the event loop releases the interpreter, so fewer lines of a flood would get through one by one. If they cannot be
written (a full pipe, a stopped terminal, a full disk) the queue fills up. Further lines are dropped and counted, and
the number lost is logged as soon as there is room; or, if so configured, the logging code waits, and the node with it.

Lines of the audit log have room of their own, and far more: commands that leave one are not begun while many of these
wait (`behind`). So no flood of lines loses one of them, as long as lines are written.
"""

from __future__ import annotations

import errno
import logging
import os
import queue
import select
import threading
import time
from itertools import accumulate
from pathlib import Path

LINES_MAX = 2000                # waiting to be written,
KEPT_LINES_MAX = 50_000         # and of the audit log: more than there can be commands in flight that leave one
KEPT_BEHIND = 1000              # of these: no further such command is begun,
STUCK_S = 5.0                   # unless nothing has been written for this long: operators must be able to act
WRITE_BYTES = 3072              # of lines written together; with one more, what a pipe takes in one piece (PIPE_BUF)
FLUSH_S = 2.0                   # how long the process waits on exit for lines to be written
RETRY_S = 1.0                   # between two attempts at a file that cannot be written
ROOM_S = 0.005                  # between two looks whether there is room for a line
FILE_MODE = 0o640

log = logging.getLogger("sockpqd")


class KeptLine(bytes):
    """A line of the audit log."""


class LogWriter(logging.Handler):
    """Queues lines for the thread that writes them to `descriptor`.

    `waits`: if there is no room for a line, wait instead of dropping it; `why`: why lines are lost, for log messages.
    `kept`: the name of the logger whose lines have room of their own.
    """

    def __init__(
        self, formatter: logging.Formatter, descriptor: int, why: str, *, waits: bool, kept: str | None = None,
    ) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self._descriptor = descriptor
        self._why = why
        self._waits = waits
        self._kept = kept
        self._kept_logged = 0           # lines of that logger, by those who log,
        self._kept_written = 0          # and by the thread
        self._wrote_s = time.monotonic()    # when the thread wrote last
        self._dropped = 0               # by those who log
        self._unwritten = 0             # by the thread, which must not take the lock that those hold while they wait
        self._reported = 0              # of both, what has been reported
        # A forked child can log without harm: its lines are never written, and its queue has no lock that another
        # thread could have held at the fork.
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="log", daemon=True)

    @property
    def lost(self) -> int:
        """Lines that were not written."""
        return self._dropped + self._unwritten

    @property
    def behind(self) -> bool:
        """True if many lines of the audit log wait to be written, and lines are being written."""
        return (
            self._kept_logged - self._kept_written >= KEPT_BEHIND and time.monotonic() - self._wrote_s < STUCK_S
        )

    def start(self) -> None:
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        while self._waits and self._lines.qsize() >= LINES_MAX and self._writer.is_alive():
            time.sleep(ROOM_S)
        kept = record.name == self._kept
        kept_waiting = self._kept_logged - self._kept_written
        waiting = self._lines.qsize() - kept_waiting
        if kept_waiting >= KEPT_LINES_MAX if kept else waiting >= LINES_MAX:
            self._dropped += 1
            return
        if self.lost > self._reported and waiting < LINES_MAX // 2:
            self._tell()
        try:
            line = self.format(record).encode("utf-8", "backslashreplace") + b"\n"
            if kept:
                self._kept_logged += 1
            self._lines.put(KeptLine(line) if kept else line)
        except Exception:               # logging must not end a node; a failure counts as a lost line
            self._dropped += 1

    def _tell(self) -> None:
        count, self._reported = self.lost - self._reported, self.lost
        text = "%d line of the log was lost: %s" if count == 1 else "%d lines of the log were lost: %s"
        fields = {"fields": {"lost": count}}
        record = log.makeRecord(log.name, logging.WARNING, "", 0, text, (count, self._why), None, extra=fields)
        self._lines.put(self.format(record).encode() + b"\n")

    def close(self) -> None:
        """Write the lines still queued; gives up after FLUSH_S."""
        if self._writer.is_alive():
            if self.lost > self._reported:
                self._tell()
            self._lines.put(None)
            self._writer.join(FLUSH_S)
        super().close()

    # ---- in the thread

    def _write_all(self) -> None:
        ended = False
        while not ended:
            lines, ended = self._next_lines()
            self._write(lines)
            self._kept_written += sum(type(line) is KeptLine for line in lines)

    def _next_lines(self) -> tuple[list[bytes], bool]:
        """Wait for a line; return it with those after it that fit into one write, and whether no more will come."""
        lines: list[bytes] = []
        size = 0
        while size < WRITE_BYTES and not (lines and self._lines.empty()):
            line = self._lines.get()
            if line is None:
                return lines, True
            lines.append(line)
            size += len(line)
        return lines, False

    def _write(self, lines: list[bytes]) -> None:
        text = b"".join(lines)
        rest = memoryview(text)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest):]
                self._wrote_s = time.monotonic()
            except BlockingIOError:     # it was made non-blocking
                select.select([], [self._descriptor], [], RETRY_S)
            except OSError as error:    # the reader is gone, which no waiting cures, or the disk is full
                if not self._waits or error.errno == errno.EPIPE:
                    written = len(text) - len(rest)
                    self._unwritten += sum(end > written for end in accumulate(map(len, lines)))
                    return
                time.sleep(RETRY_S)


class FileWriter(LogWriter):
    """Writes lines to the end of a file, which can be reopened after it has been moved away."""

    def __init__(self, formatter: logging.Formatter, path: Path, *, waits: bool, kept: str | None = None) -> None:
        """Open the file; raises OSError."""
        super().__init__(
            formatter, _opened(path), f"{path} could not be written in time", waits=waits, kept=kept)
        self._path = path

    def reopen(self) -> None:
        """Reopen the file under the descriptor that the thread uses. If that raises OSError, the old one stays open."""
        new = _opened(self._path)
        os.dup2(new, self._descriptor, inheritable=False)
        os.close(new)

    def close(self) -> None:
        """See LogWriter; then close the file."""
        super().close()
        if not self._writer.is_alive() and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
