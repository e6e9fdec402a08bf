"""The log lines of workers: one JSON object in a line, a failure with its traceback in one of them."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from sockpq.worker.execution import GivenJob, attempt_of
from sockpq.worker.outcome import Outcome

LOG = logging.getLogger("sockpq.worker")


def log_failure(job: GivenJob, outcome: Outcome) -> None:
    """Tell once what went wrong with this attempt, if anything did."""
    failure = outcome.failure
    if failure is None:
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
    """Each record as one JSON object: time, level, message, and the `fields` it was logged with."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname, "logger": record.name, "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """Records for people; a failure is one JSON object here as well, behind its message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The lines, without the end of the last."""
        text = super().format(record)
        fields = getattr(record, "fields", None)
        return f"{text} {json.dumps(fields, ensure_ascii=False, default=str)}" if fields else text
