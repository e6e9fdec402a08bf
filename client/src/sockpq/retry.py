"""What to do when an attempt failed: try again, after how long, or give up with which error. No IO, no clock.

An attempt can fail in three ways. *Final*: the server (or this library) refused the command; trying again would not
help. *Not executed*: nobody could or would execute it; try again until the deadline. *Unknown*: it was sent and the
answer was lost; try again only where repeating is safe or the caller asked for at-least-once.
"""

from __future__ import annotations

import random

from sockpq.commands import Repeat
from sockpq.errors import (
    Busy,
    JobNotFound,
    NoOutput,
    NotServing,
    OutcomeUnknown,
    ProtocolError,
    SockpqError,
    Unavailable,
)
from sockpq.model import Waiting

PAUSE_FIRST_S = 0.01        # a crashed leader is replaced within tens of milliseconds
PAUSE_GROWTH = 1.4          # an election of 0.3 s is then noticed within 0.1 s of its end, after seven tries
PAUSE_MAX_S = 1.0           # a cluster without a majority is not asked more often than this


class Lost(Exception):      # noqa: N818 - as in errors.py
    """The connection ended, or fell silent, before the answer was complete.

    `sent`: the whole command left this process, so that the server may have executed it. `waiting`: its 206 had come.
    Internal: callers see OutcomeUnknown or Unavailable.
    """

    def __init__(self, message: str, *, sent: bool, waiting: Waiting | None = None) -> None:
        super().__init__(message)
        self.sent = sent
        self.waiting = waiting


class NoLeader(NotServing):
    """No server knows a leader: an election is going on, or there is no majority. Internal, like Lost."""


class Retry:
    """The life of one call: what happened to its attempts so far."""

    def __init__(self, repeat: Repeat, *, retry_unknown: bool, deadline: float) -> None:
        self.deadline = deadline
        self.attempts = 0               # failed ones
        self.unknown: Exception | None = None   # why an earlier attempt's outcome is unknown
        self._leaderless = False        # was the last failure a NoLeader?
        self._repeat = repeat
        self._retry_unknown = retry_unknown

    def pause(self, failure: Exception, now: float) -> float:
        """Seconds to wait before the next attempt; raises the call's error when there must be none."""
        if is_unknown(failure):
            if self._repeat is not Repeat.FREELY:
                self.unknown = self.unknown or failure
            if is_final_wait(failure) or (self._repeat is Repeat.IF_ASKED and not self._retry_unknown):
                raise as_unknown(failure)
        elif not is_transient(failure):
            if isinstance(failure, JobNotFound) and self.unknown:
                raise OutcomeUnknown("no such job: an unanswered try ended it, or it was gone before") from failure
            raise failure
        if self._leaderless and isinstance(failure, NotServing) and not isinstance(failure, NoLeader):
            self.attempts = 0           # news: somebody has been elected, and will serve within milliseconds
        self._leaderless = isinstance(failure, NoLeader)
        self.attempts += 1
        pause = pause_s(self.attempts)
        if now + pause >= self.deadline:
            raise self._too_late(failure)
        return pause

    def progress(self, deadline: float) -> None:
        """A part of the work succeeded: what failed before no longer counts."""
        self.deadline = deadline
        self.attempts = 0

    def _too_late(self, failure: Exception) -> SockpqError:
        if self.unknown:
            return as_unknown(self.unknown)
        if isinstance(failure, Busy):
            return failure
        error = Unavailable(f"no server executed the command before the deadline; last: {failure}")
        error.__cause__ = failure
        return error


def is_unknown(failure: Exception) -> bool:
    """May the command have been executed?"""
    if isinstance(failure, Lost):
        return failure.sent
    return isinstance(failure, OutcomeUnknown | ProtocolError)


def is_final_wait(failure: Exception) -> bool:
    """Was a PUT .. WAIT executed and only its output lost? A repetition would queue a second job."""
    return isinstance(failure, NoOutput) or (isinstance(failure, Lost) and failure.waiting is not None)


def is_transient(failure: Exception) -> bool:
    """Was it surely not executed, and could it be a moment later or elsewhere?"""
    return isinstance(failure, Busy | NotServing) or (isinstance(failure, Lost) and not failure.sent)


def as_unknown(failure: Exception) -> OutcomeUnknown:
    """The error a caller sees for a command whose answer was lost."""
    if isinstance(failure, OutcomeUnknown):
        return failure
    if isinstance(failure, Lost) and failure.waiting:
        return NoOutput(f"the job is queued, its output did not come: {failure}", failure.waiting.item)
    error = OutcomeUnknown(f"the command was sent and its answer was lost: {failure}")
    error.__cause__ = failure
    return error


def pause_s(attempts: int) -> float:
    """Jittered exponential backoff: between half and all of 10 ms, 14 ms, 20 ms .. 1 s."""
    full = min(PAUSE_FIRST_S * PAUSE_GROWTH ** min(attempts - 1, 50), PAUSE_MAX_S)
    return random.uniform(full / 2, full)
