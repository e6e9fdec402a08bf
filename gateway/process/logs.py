"""Logging: one line per event to standard error, as JSON or as text, without ever blocking the event loop.

Formatted lines go into a queue; a thread writes them. If standard error is not being read (a full pipe, a stopped
terminal) the queue fills up, and further lines are dropped and counted; the number lost is logged as soon as there is
room. Clients' data are never logged. Messages can contain names and reasons from the network, so non-printable
characters are escaped, and messages are truncated to a length that none of our own reaches.
"""

from __future__ import annotations

import logging
import os
import queue
import select
import sys
import threading
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import msgspec

from gateway.config import Log

LINES_MAX = 2000                # waiting to be written
MESSAGE_CHARACTERS_MAX = 4096
EXCEPTION_CHARACTERS_MAX = 16384
FLUSH_S = 2.0                   # how long the process waits on exit for lines to be written
RETRY_S = 1.0

log = logging.getLogger("sockpqd")


class Logs:
    """The logging of this process, between start() and close()."""

    def __init__(self, settings: Log, node: str, descriptor: int = 2) -> None:
        """`node`: the name put in each line; `descriptor`: where lines are written."""
        as_json = settings.format == "json" or (settings.format == "auto" and not os.isatty(descriptor))
        self._handler = _Handler(JsonFormatter(node) if as_json else TextFormatter(), descriptor)
        self._level = settings.level.upper()

    @property
    def lines_lost(self) -> int:
        """Lines dropped since the start because the output was not being read."""
        return self._handler.lost

    def start(self) -> None:
        """Handle all logging from here on, and uncaught exceptions."""
        root = logging.getLogger()
        root.handlers[:] = [self._handler]
        root.setLevel(self._level)
        sys.excepthook = _uncaught
        threading.excepthook = _uncaught_in_thread
        self._handler.start()

    def close(self) -> None:
        """Write the lines still queued; gives up after FLUSH_S."""
        self._handler.close()


class _Handler(logging.Handler):
    """Queues lines for the thread that writes them."""

    def __init__(self, formatter: logging.Formatter, descriptor: int) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.lost = 0
        self._untold = 0                # lines lost but not reported yet
        self._descriptor = descriptor
        # A forked child can log without harm: its lines are never written, and its queue has no lock that another
        # thread could have held at the fork.
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="log", daemon=True)

    def start(self) -> None:
        """Start the writing thread."""
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue one line."""
        waiting = self._lines.qsize()
        if waiting >= LINES_MAX:
            self._drop()
            return
        if self._untold and waiting < LINES_MAX // 2:
            self._tell()
        try:
            self._lines.put(self.format(record).encode("utf-8", "backslashreplace") + b"\n")
        except Exception:               # logging must not end a node; a failure counts as a lost line
            self._drop()

    def _drop(self) -> None:
        self.lost += 1
        self._untold += 1

    def _tell(self) -> None:
        count, self._untold = self._untold, 0
        text = "%d lines of the log were lost: standard error was not read in time"
        fields = {"fields": {"lost": count}}
        record = log.makeRecord(log.name, logging.WARNING, "", 0, text, (count,), None, extra=fields)
        self._lines.put(self.format(record).encode() + b"\n")

    def close(self) -> None:
        """See Logs."""
        if self._writer.is_alive():
            if self._untold:
                self._tell()
            self._lines.put(None)
            self._writer.join(FLUSH_S)
        super().close()

    # ---- in the thread

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            self._write(line)

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest):]
            except BlockingIOError:     # it was made non-blocking
                select.select([], [self._descriptor], [], RETRY_S)
            except OSError:             # the reader is gone, or the disk is full
                self.acquire()
                self._drop()
                self.release()
                return


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time (RFC 3339, UTC), level, logger, node, message, and the event's own fields."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self._node = node
        self._encoder = msgspec.json.Encoder(enc_hook=str)

    def format(self, record: logging.LogRecord) -> str:
        """Format the record as one line without its line end."""
        line: dict[str, Any] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "node": self._node,
            "message": printable(record.getMessage()),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = _traceback(self, record)
        return self._encoder.encode(line).decode()


class TextFormatter(logging.Formatter):
    """Human-readable lines; the traceback of an exception follows its line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the record as one or more lines without the last line end."""
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        message = printable(record.getMessage())
        line = f"{clock},{int(record.msecs):03d} {record.levelname} {record.name}: {message}"
        if record.exc_info and record.exc_info[0] is not None:
            line += "\n" + _traceback(self, record)
        return line


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    assert isinstance(record.exc_info, tuple)
    text = formatter.formatException(record.exc_info)
    return "\n".join(_escaped(line) for line in text[-EXCEPTION_CHARACTERS_MAX:].splitlines())


def printable(text: str) -> str:
    """Return the text on one line, with non-printable characters escaped, and truncated if too long."""
    if len(text) > MESSAGE_CHARACTERS_MAX:
        text = text[:MESSAGE_CHARACTERS_MAX] + ".."
    return _escaped(text)


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    log.critical("an internal error ends this node: report it, with this line", exc_info=(kind, error, traceback))


def _uncaught_in_thread(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_value is not None:
        exception = (arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
        log.error("an internal error ended a thread: report it, with this line", exc_info=exception)
