"""Decides after a failed attempt whether to retry, after which pause, or to give up, with which error. No IO, no clock.

An attempt can fail in three ways. *Final*: the server (or this library) refused the command; trying again would not
help. *Not executed*: no server could or would execute it; retry until the deadline. *Unknown*: it was sent and the
answer was lost. A numbered request of a session gets its first answer again, so retry it. Without a session, or if that
is lost, retry only if a second execution does no harm or the caller asked for at-least-once.
"""

from __future__ import annotations

import random

from sockpq._protocol.command import MissingJob, Repeat
from sockpq._protocol.session import SessionLost
from sockpq.errors import (
    Aborted,
    AuthError,
    BadArguments,
    Busy,
    ClientClosed,
    DataTooLarge,
    ForbiddenError,
    ForeignCluster,
    JobExists,
    JobNotFound,
    NoOutput,
    NotServing,
    NotSupported,
    OutcomeUnknown,
    ProtocolError,
    QueueExists,
    QueueNotFound,
    SockpqError,
    Unavailable,
    Untrusted,
)
from sockpq.model import Waiting

# Refusals by this server only, or only at the moment, whatever was executed before.
UNREAD = BadArguments, DataTooLarge, NotSupported, AuthError, ForbiddenError, Untrusted, ForeignCluster

# Refusals of a command that was executed before, by another client or by an unanswered attempt.
TWICE = JobExists, QueueExists, QueueNotFound, Aborted

PAUSE_FIRST_S = 0.01        # a crashed leader is replaced within tens of milliseconds
PAUSE_GROWTH = 1.4          # an election of 0.3 s is then noticed within 0.1 s of its end, after seven tries
ATTEMPT_MIN_S = 0.05        # a shorter attempt could only turn "not executed" into "unknown"
PAUSE_MAX_S = 1.0           # a cluster without a majority is not asked more often than this


class Lost(Exception):
    """The connection ended, or fell silent, before the answer was complete.

    `sent`: the whole command left this process, so that the server may have executed it. `waiting`: its 206 had
    arrived. `orderly`: the server closed the connection, and not in the middle of an answer. Internal: callers see
    OutcomeUnknown or Unavailable.
    """

    def __init__(
        self, message: str, *, sent: bool, waiting: Waiting | None = None, orderly: bool = False
    ) -> None:
        super().__init__(message)
        self.sent = sent
        self.waiting = waiting
        self.orderly = orderly


class GivenUp(Lost):
    """This client has ended its wait, and asks by its number for the outcome. Nothing is wrong with the server."""


class ForeignServer(Lost):
    """The server does not belong to the cluster that the client uses. Internal, like Lost."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(f"{server}: {why}", sent=False)
        self.why = why


class NotRecognizedAnyMore(AuthError):
    """The server has accepted AUTH on this connection, and asks for it again: the user's secret was replaced, or the
    user is gone. A new connection shows which. Internal, like Lost."""


class NoLeader(NotServing):
    """No server knows a leader: an election is in progress, or there is no majority. Internal, like Lost."""


class ForeignLeader(NoLeader):
    """No server of the client's cluster knows a leader, and some belong to another one. Internal, like Lost."""


class Retry:
    """The history of one call: the outcomes of its attempts so far."""

    def __init__(self, repeat: Repeat, *, retry_unknown: bool, deadline: float, least_s: float = 0) -> None:
        """`least_s`: the minimum time for an attempt, in seconds."""
        self.deadline = deadline
        self._least_s = least_s
        self.attempts = 0               # failed ones
        self.failing_since = 0.0        # when the first one failed, on the monotonic clock; 0: none has
        self.told = False               # was somebody warned of that?
        self.bound = False              # other parts of the same call were executed in this cluster
        self.last: Exception | None = None      # why the last one failed
        self._unknown: Exception | None = None  # why nobody will ever know what became of an earlier attempt
        self._open: Exception | None = None     # why the session must be asked what became of an earlier attempt
        self.region_part: str | None = None     # why no server serves, once that was asked: Discovery.region_part
        self._leaderless = False        # was the last failure a NoLeader?
        self._foreign: Exception | None = None  # the last failure that was another cluster's answer
        self._repeat = repeat
        self._retry_unknown = retry_unknown

    def pause(self, failure: Exception, now: float, *, exact: bool = False) -> float:
        """Return the seconds to wait before the next attempt; raises the call's error when there must be none.

        `exact`: what failed was a numbered request.
        """
        self.last = failure
        self.failing_since = self.failing_since or now
        if isinstance(failure, SessionLost):
            self._close()
        elif is_unknown(failure):
            if exact:
                self._open = failure if is_final_wait(failure) else self._open or failure
            else:
                self._doubt(failure)
        elif not is_transient(failure):
            raise self._final(failure)
        if self._leaderless and isinstance(failure, NotServing) and not isinstance(failure, NoLeader):
            self.attempts = 0           # news: somebody has been elected, and will serve within milliseconds
        self._leaderless = isinstance(failure, NoLeader)
        if isinstance(failure, ForeignServer | ForeignLeader):
            self._foreign = failure
        elif isinstance(failure, Busy | NotServing) and not self._leaderless:
            self._foreign = None        # its own cluster has answered
        self.attempts += 1
        pause = pause_s(self.attempts)
        if now + pause + ATTEMPT_MIN_S >= self.deadline:
            raise self._too_late(failure)
        return pause

    @property
    def in_doubt(self) -> bool:
        """True if an attempt may have been executed without a known outcome."""
        return bool(self._unknown or self._open)

    def progress(self, deadline: float) -> None:
        """Forget earlier failures, as a part of the work has succeeded."""
        self.deadline = deadline
        self.attempts = 0
        self.failing_since, self.told = 0.0, False
        self._foreign = None

    def too_late(self, now: float) -> bool:
        """Return whether sending a command again, which was certainly not executed, would likely make that unknown."""
        return now + self._least_s > self.deadline and not self.in_doubt

    def blocked(self, seconds: float) -> None:
        """Do not count the time for which the server was allowed to be silent."""
        self.deadline += seconds
        if self.failing_since:
            self.failing_since += seconds

    def settled(self) -> None:
        """Record that the session has reported the outcome of every attempt so far."""
        self._open = None

    def interrupted(self, failure: Exception) -> SockpqError:
        """Return the call's error when there must be no other attempt because the client was closed."""
        unknown = self._unknown or self._open or (failure if is_unknown(failure) else None)
        return as_unknown(unknown) if unknown else ClientClosed("the client was closed")

    def excuses(self, error: OutcomeUnknown, gone: MissingJob) -> bool:
        """Return whether it does not matter that the job was gone when the command was repeated."""
        return isinstance(error.__cause__, JobNotFound) and (gone.always or self._retry_unknown)

    def _close(self) -> None:
        """Record that the session is lost, so the outcomes of earlier attempts will never be known."""
        failure, self._open = self._open, None
        if failure:
            self._doubt(failure)

    def _doubt(self, failure: Exception) -> None:
        """Record an unknown outcome. Raises OutcomeUnknown unless the command may be repeated anyway."""
        if self._repeat is not Repeat.FREELY:
            self._unknown = self._unknown or failure
        if is_final_wait(failure) or (self._repeat is Repeat.IF_ASKED and not self._retry_unknown):
            raise as_unknown(failure)

    def _final(self, failure: Exception) -> Exception:
        """Return the error for a refusal: OutcomeUnknown if an earlier attempt may have caused it, else `failure`."""
        if isinstance(failure, JobNotFound) and self._unknown:
            error = OutcomeUnknown("no such job: an unanswered try ended it, or it was gone before")
        elif isinstance(failure, TWICE) and self._unknown:
            error = OutcomeUnknown(f"an unanswered try did it, or it was so before: {failure}")
        elif isinstance(failure, UNREAD) and self.in_doubt:
            error = OutcomeUnknown(f"an earlier try was not answered, this one was refused: {failure}")
        else:
            return failure
        error.__cause__ = failure
        return error

    def _too_late(self, failure: Exception) -> SockpqError:
        unknown = self._unknown or self._open
        if unknown:
            return as_unknown(unknown)
        if isinstance(failure, Busy):
            return failure
        failure = self._foreign or failure      # the last attempt, which the deadline cuts short, says less
        text = f"no server executed the command before the deadline; last: {failure}"
        if isinstance(failure, Lost) and failure.orderly:       # as servers that expect TLS do, and ports for nodes
            text += " (does it expect TLS, or is it not a client port?)"
        elif self.region_part and isinstance(failure, NotServing):
            text = f"no server executed the command before the deadline: {self.region_part} (last: {failure})"
        error = ForeignCluster(text) if self._foreign else Unavailable(text)
        error.__cause__ = failure
        return error


def is_unknown(failure: Exception) -> bool:
    """Return whether the command may have been executed."""
    if isinstance(failure, Lost):
        return failure.sent
    return isinstance(failure, OutcomeUnknown | ProtocolError)


def is_final_wait(failure: Exception) -> bool:
    """Return whether a PUT .. WAIT was executed and only its output lost.

    A repetition would queue a second job.
    """
    return isinstance(failure, NoOutput) or (isinstance(failure, Lost) and failure.waiting is not None)


def is_transient(failure: Exception) -> bool:
    """Return whether the command was certainly not executed, but may be a moment later or on another server."""
    if isinstance(failure, Lost):
        return not failure.sent
    return isinstance(failure, Busy | NotServing | NotRecognizedAnyMore)


def as_unknown(failure: Exception) -> OutcomeUnknown:
    """Return the error a caller sees for a command whose answer was lost."""
    if isinstance(failure, OutcomeUnknown):
        return failure
    if isinstance(failure, Lost) and failure.waiting:
        return NoOutput(f"the job is queued, its output did not come: {failure}", failure.waiting.item)
    error = OutcomeUnknown(f"the command was sent and its answer was lost: {failure}")
    error.__cause__ = failure
    return error


def least_s(timeout: float) -> float:
    """Return the minimum time for an attempt of a call with this timeout, in seconds."""
    return min(ATTEMPT_MIN_S, timeout / 4)


def pause_s(attempts: int) -> float:
    """Return a jittered exponential backoff: between half and all of 10 ms, 14 ms, 20 ms .. 1 s."""
    full = min(PAUSE_FIRST_S * PAUSE_GROWTH ** min(attempts - 1, 50), PAUSE_MAX_S)
    return random.uniform(full / 2, full)
