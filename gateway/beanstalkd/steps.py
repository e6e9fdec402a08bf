"""What each call is in operations: a generator that yields an operation, gets its reply, and returns the result.

A generator runs at the serving leader. What it reads of the machine it reads there, between its operations. One that
only reads has a `yield` behind its `return`, never reached: it makes the function a generator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from msgspec import UNSET, Struct

from sockpqd.beanstalk import U32_MAX, Failure, Result, calls
from sockpqd.cluster.api import Cluster
from sockpqd.core import (
    Accepted,
    BadSetting,
    BuryHere,
    CloseSession,
    DataTooLarge,
    Delete,
    DoneLast,
    Due,
    Empty,
    Finished,
    Get,
    GetNumber,
    GetWith,
    Handed,
    JobCounts,
    JobRunning,
    JobState,
    JobView,
    Kick,
    LaterWith,
    NotFound,
    Number,
    PauseQueue,
    QueueFull,
    QueueNotFound,
    QueuePaused,
    Removed,
    Reply,
    Requested,
    Return,
    Selector,
    StoredNumber,
    Touch,
    bytes_of,
)
from sockpqd.gateway.beanstalkd.operations import MS, get_of, put_of, reserved
from sockpqd.gateway.rights import Rights

FIRST_NUMBER = 1 << 40          # smaller ones are of hand-outs: of jobs that were put natively, without a number


class Wait(Struct, frozen=True):
    """An operation that waits for a job, `wait_ms` at most (None: without end)."""

    get: Get | GetWith
    wait_ms: int | None


class Plain(Struct, frozen=True):
    """An operation outside the session: repeating it does no harm."""

    operation: Any


class Refused(Exception):
    """The call fails."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


Steps = Generator[Requested | Wait | Plain, Reply, Result]


class CallSteps:
    """Makes steps of calls, for one user. `rights` None: everything is allowed. `first`: see Order."""

    def __init__(self, cluster: Cluster, rights: Rights | None, session: int, *, first: bool) -> None:
        self._cluster = cluster
        self._machine = cluster.machine
        self._rights = rights
        self._session = session or None
        self._first = first

    def steps(self, call: calls.Travelling) -> Steps:
        """The steps of a call."""
        steps: Steps = _DO[type(call)](self, call)
        return steps

    # ---- rights

    def _may(self, kind: str, queue: str) -> None:
        if self._rights is not None and not queue.startswith(getattr(self._rights, kind)):
            raise Refused(Failure.FORBIDDEN)

    def _view(self, number: int, kind: str) -> JobView:
        """The job of this number, which the user must have this right on."""
        found = self._machine.peek(Selector(number) if number < FIRST_NUMBER else Number(number))
        if found is None:
            raise Refused(Failure.NOT_FOUND)
        self._may(kind, found.queue)
        return found

    def _queue_of(self, number: int) -> str | None:
        """The queue of a job to be changed. None: it is gone, perhaps by an earlier attempt, as the log can tell."""
        try:
            return self._view(number, "queue").queue
        except Refused as refused:
            if refused.failure is Failure.NOT_FOUND and not self._first:
                return None
            raise

    def _may_end(self, handle: int) -> None:
        """The user must be allowed to take from the queue of a running job."""
        queue = self._machine.queue_of(handle)
        if queue is not None:
            self._may("get", queue)

    # ---- the calls

    def _put(self, call: calls.Put) -> Steps:
        self._may("put", call.tube)
        if self._cluster.full and self._first:      # an earlier attempt may have put it
            raise Refused(Failure.OUT_OF_MEMORY)
        reply = yield put_of(call)
        if not isinstance(reply, StoredNumber):
            raise refusal(reply)
        return calls.Number(reply.number)

    def _reserve(self, call: calls.Reserve) -> Steps:
        for tube in call.tubes:
            self._may("get", tube)
        wait_ms = None if call.wait_s is None else round(call.wait_s * MS)
        reply = yield Wait(get_of(call, self._session), wait_ms)
        if isinstance(reply, Handed):
            return reserved(self._cluster, reply)
        if not isinstance(reply, Empty | QueueNotFound):
            raise refusal(reply)
        return None

    def _reserve_job(self, call: calls.ReserveJob) -> Steps:
        self._view(call.number, "get")
        reply = yield GetNumber(Number(call.number), session=self._session)
        if not isinstance(reply, Handed):
            raise refusal(reply)
        return reserved(self._cluster, reply)

    def _delete(self, call: calls.Delete) -> Steps:
        if call.handle is not None:
            self._may_end(call.handle)
            reply = yield DoneLast(call.handle)
            if not isinstance(reply, NotFound):
                return None                     # otherwise its time has ended, and it may be ready again
        queue = self._queue_of(call.number)
        reply = yield Delete(Number(call.number), unless_running=True)
        if not isinstance(reply, Finished):
            raise refusal(reply)
        return None if queue is None else calls.Names((queue,))

    def _release(self, call: calls.Release) -> Steps:
        self._may_end(call.handle)
        due = Due(call.delay_s * MS) if call.delay_s else None
        _must_run((yield LaterWith(call.handle, due, -call.priority, first=due is None)))
        return None

    def _bury(self, call: calls.Bury) -> Steps:
        self._may_end(call.handle)
        _must_run((yield BuryHere(call.handle, -call.priority)))
        return None

    def _touch(self, call: calls.Touch) -> Steps:
        self._may_end(call.handle)
        _must_run((yield Touch(call.handle)))
        return None

    def _peek(self, call: calls.Peek) -> Steps:
        return _found(self._view(call.number, "queue"))
        yield

    def _peek_first(self, call: calls.PeekFirst) -> Steps:
        self._may("queue", call.tube)
        found = self._machine.peek_queue(call.tube, _STATES[call.state], 1)
        if not found:
            raise Refused(Failure.NOT_FOUND)
        return _found(found[0])
        yield

    def _kick(self, call: calls.Kick) -> Steps:
        self._may("queue", call.tube)
        count = 0
        operation: Requested | Plain = Kick(call.tube, call.count, here=True)
        while True:
            reply = yield operation
            if not isinstance(reply, Removed):
                raise refusal(reply)
            count += reply.count
            if not reply.more or count >= call.count:
                return calls.Number(count)
            buried = None if reply.buried is UNSET else reply.buried
            operation = Plain(Kick(call.tube, call.count - count, here=True, buried=buried))

    def _kick_job(self, call: calls.KickJob) -> Steps:
        self._queue_of(call.number)
        reply = yield Kick("", 1, selector=Number(call.number))
        if not isinstance(reply, Removed):
            raise refusal(reply)
        return None

    def _pause(self, call: calls.Pause) -> Steps:
        self._may("queue", call.tube)
        reply = yield PauseQueue(call.tube, incoming=False, outgoing=True, pause_ms=call.seconds * MS)
        if not isinstance(reply, Accepted | QueueNotFound):
            raise refusal(reply)
        return None

    def _job_stats(self, call: calls.JobStats) -> Steps:
        job = self._view(call.number, "queue")
        counts = job.counts or JobCounts(reserves=job.attempts)
        now_ms = self._cluster.time_ms
        until_ms = job.deadline_ms if job.state is JobState.RUNNING else job.at_ms
        return calls.JobFigures(
            call.number, job.queue, _NAMES[job.state], priority_of(job.priority),
            max(now_ms - job.created_ms, 0) // MS if job.number else 0, counts.delay_ms // MS,
            (job.own_lease_ms or 0) // MS,
            0 if until_ms is None or job.state not in _TIMED else max(until_ms - now_ms, 0) // MS,
            counts.reserves, counts.timeouts, counts.releases, counts.buries, counts.kicks,
        )
        yield

    def _tube_stats(self, call: calls.TubeStats) -> Steps:
        self._may("seen", call.tube)
        found = self._machine.stat(call.tube, self._cluster.time_ms)
        if found is None:
            return calls.TubeFigures()
        figures, settings = dict(found), self._machine.queue_settings(call.tube)
        pause_left_ms = 0 if settings is None else max(settings.pause_ends_ms - self._cluster.time_ms, 0)
        return calls.TubeFigures(
            figures["URGENT"], figures["READY"], figures["RUNNING"], figures["DELAYED"], figures["BURIED"],
            figures["TOTAL_PUT"], figures["TOTAL_DONE"] + figures["TOTAL_DELETED"], figures["TOTAL_PAUSES"],
            figures["PAUSE_S"] if pause_left_ms else 0, pause_left_ms // MS, exists=True,
        )
        yield

    def _give_back(self, call: calls.GiveBack) -> Steps:
        for handle in call.undelivered:
            yield Plain(Return(handle))
        if call.handles:
            yield Plain(CloseSession(self._session or 0, release=True))     # of any number of jobs, at once
        return None


def refusal(reply: Reply) -> Refused:
    """Why a call fails, after this reply to one of its operations."""
    if isinstance(reply, NotFound | JobRunning | QueueNotFound):
        return Refused(Failure.NOT_FOUND)
    if isinstance(reply, QueueFull | QueuePaused):
        return Refused(Failure.DRAINING)
    if isinstance(reply, DataTooLarge | BadSetting):
        return Refused(Failure.FORBIDDEN)
    return Refused(Failure.OUT_OF_MEMORY)


def _must_run(reply: Reply) -> None:
    """The job that was to be ended or renewed must have been running."""
    if isinstance(reply, NotFound):
        raise Refused(Failure.NOT_FOUND)


def priority_of(native: int) -> int:
    """beanstalkd's priority of a job: smaller ones come first there."""
    return min(max(-native, 0), U32_MAX)


def _found(job: JobView) -> calls.Found:
    return calls.Found(job.number or job.id or 0, bytes_of(job.data))


_NAMES = {
    JobState.READY: "ready", JobState.DELAYED: "delayed", JobState.RUNNING: "reserved", JobState.BURIED: "buried",
    JobState.DEAD: "buried",
}
_TIMED = (JobState.RUNNING, JobState.DELAYED)
_STATES = {"ready": JobState.READY, "delayed": JobState.DELAYED, "buried": JobState.BURIED}
_DO: dict[type, Callable[[CallSteps, Any], Steps]] = {
    calls.Put: CallSteps._put, calls.Reserve: CallSteps._reserve, calls.ReserveJob: CallSteps._reserve_job,
    calls.Delete: CallSteps._delete, calls.Release: CallSteps._release, calls.Bury: CallSteps._bury,
    calls.Touch: CallSteps._touch, calls.Peek: CallSteps._peek, calls.PeekFirst: CallSteps._peek_first,
    calls.Kick: CallSteps._kick, calls.KickJob: CallSteps._kick_job, calls.Pause: CallSteps._pause,
    calls.JobStats: CallSteps._job_stats, calls.TubeStats: CallSteps._tube_stats, calls.GiveBack: CallSteps._give_back,
}
