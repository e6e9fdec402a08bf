"""The log lines of workers: one JSON object per line, with the traceback of a failure inside it; or text."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from sockpq.worker.execution import GivenJob, attempt_of
from sockpq.worker.outcome import Outcome

LOG = logging.getLogger("sockpq.worker")


def log_attempt(job: GivenJob, outcome: Outcome) -> None:
    """Log the failure of this attempt or, at debug level, its success."""
    failure = outcome.failure
    if failure is None:
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("a job is done", extra={"fields": {
                "queue": job.queue, "id": job.id, "key": job.meta.key if job.meta else None,
                "attempt": attempt_of(job), "outcome": outcome.kind, "run_s": round(outcome.run_s, 3),
            }})
        return
    fields: dict[str, Any] = {
        "queue": job.queue, "id": job.id, "key": job.meta.key if job.meta else None, "attempt": attempt_of(job),
        "outcome": outcome.kind, "error": failure.kind, "error_message": failure.message,
    }
    if outcome.kind == "later":
        fields["delay"] = round(outcome.delay, 3)
    fields["traceback"] = failure.trace
    LOG.log(logging.ERROR if outcome.kind == "dead" else logging.WARNING, "a job failed", extra={"fields": fields})


class JsonLines(logging.Formatter):
    """Each record as one JSON object: time, level, message, and the `fields` with which it was logged."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname, "logger": record.name, "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


COLOURS = {logging.DEBUG: "32", logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "1;31"}      # SGR codes


class TextLines(logging.Formatter):
    """Records for people: the details of a failure follow its message, its traceback is below.

    `coloured`: for a terminal; a line of a done job is green, warnings are yellow, errors red, tracebacks dim.
    """

    def __init__(self, coloured: bool = False) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines, without the end of the last."""
        text = super().format(record)
        fields = dict(getattr(record, "fields", {}))
        trace = fields.pop("traceback", "")
        words = [f"{name}={value}" for name, value in fields.items() if value is not None]
        lines = list(map(_printable, [" ".join([text, *words]), *str(trace).splitlines()]))
        if self._coloured:
            code = COLOURS.get(record.levelno)
            lines = [_in_colour(code, lines[0]), *(_in_colour("2", line) for line in lines[1:])]
        return "\n".join(lines)


def _in_colour(code: str | None, line: str) -> str:
    return line if code is None else f"\x1b[{code}m{line}\x1b[0m"


def _printable(line: str) -> str:
    """Return the line without control characters."""
    return "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in line)
