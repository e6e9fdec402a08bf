"""Exceptions that a task raises to choose the outcome of its job, and the one that its caller gets if it fails."""

from __future__ import annotations

from sockpq.errors import BadArguments, SockpqError


class Retry(Exception):
    """Put the job back: it is tried again after `delay` seconds, by default after the task's back-off.

    That counts as an attempt, unlike SlowDown and Sleep: after `tries` of them the job is given up.
    """

    def __init__(self, message: str = "", *, delay: float | None = None) -> None:
        super().__init__(message)
        self.delay = _seconds(delay)


class GiveUp(Exception):
    """Give the job up at once, however many tries are left."""


class SlowDown(Exception):
    """Put the job back, and let the pulse of its queue slow hand-outs down: a service answered "too many requests"."""


class Sleep(Exception):
    """Put the job back, and let the pulse of its queue make no hand-out for `seconds`."""

    def __init__(self, seconds: float, message: str = "") -> None:
        super().__init__(message or f"no hand-outs for {seconds:g} s")
        self.seconds = _seconds(seconds) or 0.0


class SoftTimeLimit(Exception):
    """The task has run for as long as --soft-time-limit allows; raised inside it, so that it can clean up."""


class JobCancelled(BaseException):
    """The job of the running task was cancelled; raised inside it, past `except Exception`, so that it ends.

    In an async task it is asyncio.CancelledError instead.
    """


class BatchCancelled(SockpqError):
    """The batch was cancelled while its block was adding to it: explicitly, or as nothing was added for too long."""


class UnknownTask(Exception):
    """The job names a task that this worker does not have."""


class BadJob(Exception):
    """The body of the job is not in the format of this app."""


class ParentFailed(Exception):
    """A step of a flow lacks the result of an earlier step: retrying is pointless."""


class BadResult(Exception):
    """The result of the task cannot be sent to its caller."""


class TaskFailed(SockpqError):
    """Raised by call() and result() when the task was given up.

    `kind`: the class of its error; `message`: the error's text. `trace`: where it was raised, as the worker's Python
    showed it; "" if unknown.
    """

    def __init__(self, kind: str, message: str, trace: str = "") -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.message = message
        self.trace = trace
        if trace:
            self.add_note(f"as the worker saw it:\n{trace.rstrip()}")

    def __reduce__(self) -> tuple[type[TaskFailed], tuple[str, str, str]]:
        return type(self), (self.kind, self.message, self.trace)


def _seconds(value: float | None) -> float | None:
    if value is not None and not 0 <= value < float("inf"):
        raise BadArguments(f"{value} is not a number of seconds")
    return value
