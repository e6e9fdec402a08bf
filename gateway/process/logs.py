"""Logging: one line per event to standard error, as JSON or as text; the audit log can have a file of its own.

Clients' data are never logged. Messages can contain names and reasons from the network, so non-printable characters are
escaped, and messages are truncated to a length that exceeds all of our own. log_writer.py says what happens to lines
that cannot be written.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from sockpqd.gateway import audit
from sockpqd.gateway.config import ConfigError, Log
from sockpqd.gateway.process.log_writer import FileWriter, LogWriter

MESSAGE_CHARACTERS_MAX = 4096
EXCEPTION_CHARACTERS_MAX = 16384

log = logging.getLogger("sockpqd")


class Logs:
    """The logging of this process, between start() and close()."""

    def __init__(self, settings: Log, node: str, descriptor: int = 2) -> None:
        """`node`: the name put in each line; `descriptor`: where lines are written.

        Raises ConfigError if the file of the audit log cannot be opened.
        """
        as_json = settings.format == "json" or (settings.format == "auto" and not os.isatty(descriptor))
        formatter = JsonFormatter(node) if as_json else TextFormatter()
        waits = settings.when_full == "wait"
        self._level = settings.level.upper()
        self._audit: FileWriter | None = None
        if settings.audit_file is not None:
            try:
                self._audit = FileWriter(formatter, Path(settings.audit_file), waits=waits, kept=audit.log.name)
            except OSError as error:
                raise ConfigError(f"log.audit_file: {settings.audit_file}: {error.strerror}") from None
        self._main = LogWriter(
            formatter, descriptor, "standard error was not read in time", waits=waits, kept=audit.log.name)

    @property
    def lines_lost(self) -> int:
        """Lines dropped since the start because they could not be written in time."""
        return self._main.lost + (0 if self._audit is None else self._audit.lost)

    def audit_behind(self) -> bool:
        """Return whether so many lines of the audit log wait that no command which leaves one should be begun."""
        return (self._main if self._audit is None else self._audit).behind

    def start(self) -> None:
        """Handle all logging from now on, and uncaught exceptions."""
        root = logging.getLogger()
        root.handlers[:] = [self._main]
        root.setLevel(self._level)
        sys.excepthook = _uncaught
        threading.excepthook = _uncaught_in_thread
        self._main.start()
        if self._audit is not None:
            audit.log.handlers[:] = [self._audit]
            audit.log.setLevel(logging.INFO)    # a configured file gets it at any `level`
            audit.log.propagate = False
            self._audit.start()

    def reopen(self) -> None:
        """Reopen the file of the audit log; if that fails, keep the old one and log why."""
        if self._audit is None:
            return
        try:
            self._audit.reopen()
        except OSError as error:
            log.error("the audit log continues in the old file, because log.audit_file cannot be opened; correct that "
                      "and send SIGHUP again: %s", error)

    def close(self) -> None:
        """Write the lines still queued; gives up after a while."""
        self._main.close()
        if self._audit is not None:
            self._audit.close()


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
