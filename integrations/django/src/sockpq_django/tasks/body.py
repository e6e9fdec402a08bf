"""The body of a task's job: the call, and the attempts that have failed so far. In JSON."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

ATTEMPTS_MAX = 100          # of which the errors are kept; the oldest go first
TRACEBACK_MAX = 16_384      # characters, as many bytes as the server keeps of an error
CUT = "\n  .. the middle is left out ..\n"


class BadBody(ValueError):
    """The body is not the call of a task."""


class FailedAttempt(NamedTuple):
    """An attempt that has failed: its number, its worker, the Unix time, the path of the error's class, the traceback.

    The number begins at 1 again when a dead task is retried.
    """

    number: int
    worker: str
    at: float
    error: str
    traceback: str


class TaskBody(NamedTuple):
    """The call of a task. `path`: of its function. `enqueued_at`, `run_after`: in ISO 8601, or None for at once."""

    path: str
    args: list[Any]
    kwargs: dict[str, Any]
    enqueued_at: str
    run_after: str | None = None
    failed: tuple[FailedAttempt, ...] = ()

    def encoded(self) -> bytes:
        """Return the body of the job."""
        fields: dict[str, Any] = {
            "task": self.path, "args": self.args, "kwargs": self.kwargs, "enqueued_at": self.enqueued_at,
        }
        if self.run_after is not None:
            fields["run_after"] = self.run_after
        if self.failed:
            fields["failed"] = [one._asdict() for one in self.failed]
        return in_json(fields)

    def with_failure(self, failure: FailedAttempt) -> TaskBody:
        """Return the body with one more attempt that has failed."""
        kept = failure._replace(traceback=shortened(failure.traceback))
        return self._replace(failed=(*self.failed, kept)[-ATTEMPTS_MAX:])

    def failures_before(self, attempt: int) -> list[FailedAttempt]:
        """Return the failures since the job was put or kicked last, before its attempt of this number (1, 2, ..)."""
        found: list[FailedAttempt] = []
        for one in reversed(self.failed):
            if one.number >= attempt:
                break
            found.insert(0, one)
            attempt = one.number
        return found


def parsed_body(data: bytes) -> TaskBody:
    """Return the content of a body. Raises BadBody."""
    try:
        fields = json.loads(data)
        failed = tuple(FailedAttempt(**one) for one in fields.get("failed", ()))
        body = TaskBody(
            fields["task"], fields["args"], fields["kwargs"], fields["enqueued_at"], fields.get("run_after"), failed
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadBody(f"the body of the job is no call of a task: {error!r}") from error
    if not (
        isinstance(body.path, str) and isinstance(body.args, list) and isinstance(body.kwargs, dict)
        and isinstance(body.enqueued_at, str) and isinstance(body.run_after, str | None)
    ):
        raise BadBody("the body of the job is no call of a task: task, args, kwargs or a time has the wrong type")
    return body


def in_json(value: Any) -> bytes:
    """Return the value as JSON, with characters of any kind, including halves of surrogate pairs."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def shortened(text: str) -> str:
    """Return a traceback, with its middle cut out if it is long."""
    if len(text) <= TRACEBACK_MAX:
        return text
    half = (TRACEBACK_MAX - len(CUT)) // 2
    return text[:half] + CUT + text[-half:]
