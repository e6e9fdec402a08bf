"""The outcome of an attempt, as a value that a child sends to its pool. No IO."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import re
import traceback
from typing import Literal, NamedTuple

from sockpq.worker.errors import BadJob, BadResult, GiveUp, ParentFailed, Retry, Sleep, SlowDown, UnknownTask
from sockpq.worker.policy import Policy

Kind = Literal["done", "later", "dead", "ended", "cancelled"]

REASON_MAX = 64
# The file from which tasks are called: its frames are left out of tracebacks.
CALLERS = tuple(os.path.dirname(path) + os.sep for path in (__file__, asyncio.__file__, concurrent.futures.__file__))


class Failure(NamedTuple):
    """The failure, for the log and for a caller that waits for the result."""

    kind: str
    message: str
    trace: str

    @property
    def text(self) -> str:
        """The text that is kept with the job (ERROR): the traceback, or without one the class and the message."""
        return self.trace or (f"{self.kind}: {self.message}" if self.message else self.kind)


class Outcome(NamedTuple):
    """`kind`: "done"; "later", put back for `delay` seconds; "dead", given up; "ended", by the task itself;
    "cancelled", removed by another client in the meantime.

    `reason`: the word that is kept with the job. `slow`, `sleep`: reported to the pulse of its queue. `result`: the
    body for a caller that waits for it. `returned`: the return value to keep with the job. `run_s`: how long it ran.
    """

    kind: Kind
    delay: float = 0.0
    reason: str | None = None
    slow: bool = False
    sleep: float | None = None
    result: bytes | None = None
    failure: Failure | None = None
    run_s: float = 0.0
    returned: bytes | None = None


def after_error(error: BaseException, attempt: int, policy: Policy) -> Outcome:
    """Return the outcome of a job whose attempt (1, 2, ..) ended with this error."""
    failure = Failure(type(error).__name__, _message(error), _trace(error))
    reason = reason_of(type(error).__name__)
    if isinstance(error, SlowDown):
        return Outcome("later", policy.pause(attempt), reason, slow=True, failure=failure)
    if isinstance(error, Sleep):
        return Outcome("later", error.seconds, reason, sleep=error.seconds, failure=failure)
    if isinstance(error, GiveUp | BadJob | BadResult | ParentFailed) or attempt >= policy.tries:
        return Outcome("dead", reason=reason, failure=failure)
    if isinstance(error, Retry):
        return Outcome("later", policy.pause(attempt) if error.delay is None else error.delay, reason, failure=failure)
    if not policy.retries(error):
        return Outcome("dead", reason=reason, failure=failure)
    return Outcome("later", policy.pause(attempt), reason, failure=failure)


def after_loss(kind: str, message: str, attempt: int, policy: Policy) -> Outcome:
    """Return the outcome of a job whose child ended during it: put back at once, or given up after its last try."""
    failure = Failure(kind, message, "")
    return Outcome("dead" if attempt >= policy.tries else "later", reason=reason_of(kind), failure=failure)


def reason_of(kind: str) -> str:
    """Return a word that the protocol accepts as a REASON."""
    return re.sub(r"[^A-Za-z0-9_.:-]", "_", kind)[:REASON_MAX] or "Error"


def _trace(error: BaseException) -> str:
    """Return the traceback, from the task's own function on; none where that was not called, or has returned."""
    if isinstance(error, BadJob | BadResult | UnknownTask):
        return ""
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename.startswith(CALLERS):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:           # an error of somebody else's program, which cannot even be shown
        return "(its text cannot be shown)"
