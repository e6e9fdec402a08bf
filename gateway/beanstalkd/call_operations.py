"""Translates calls into operations: a table of all commands of beanstalkd that change something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sockpqd.beanstalk import calls
from sockpqd.core import (
    CloseSession,
    Delete,
    Due,
    End,
    Get,
    GetWith,
    How,
    Kick,
    Number,
    Operation,
    PauseQueue,
    Policy,
    Put,
    PutWith,
    Return,
    Touch,
)

MS = 1000
OUTSIDE_SESSION = frozenset({Return, CloseSession})     # repeating them does no harm, so they need no number


def _put(call: calls.PutJob, session: int) -> Operation:
    put = Put(call.tube, -call.priority, call.body)
    return PutWith(put, _due(call.delay_s), number=True, lease_ms=call.ttr_s * MS)


def _reserve(call: calls.Reserve, session: int) -> Operation:
    get = Get(call.tubes, session=session)
    return get if len(call.tubes) == 1 else GetWith(get, policy=Policy.PLACE)


def _reserve_job(call: calls.ReserveJob, session: int) -> Operation:
    return GetWith(Get(None, session=session), number=call.number)


def _delete(call: calls.DeleteJob, session: int) -> Operation:
    if call.handle is None:
        return Delete(Number(call.number), unless_running=True)
    return End(call.handle, How.DONE, last=True)


def _release(call: calls.Release, session: int) -> Operation:
    due = _due(call.delay_s)
    return End(call.handle, How.LATER, due, -call.priority, first=due is None)


def _bury(call: calls.Bury, session: int) -> Operation:
    return End(call.handle, How.BURY, priority=-call.priority, here=True)


def _touch(call: calls.TouchJob, session: int) -> Operation:
    return Touch(call.handle)


def _kick(call: calls.KickTube, session: int) -> Operation:
    return Kick(call.tube, call.count, here=True)


def _kick_job(call: calls.KickJob, session: int) -> Operation:
    return Kick("", 1, selector=Number(call.number))


def _pause(call: calls.Pause, session: int) -> Operation:
    return PauseQueue(call.tube, incoming=False, outgoing=True, pause_ms=call.seconds * MS)


def _give_back(call: calls.GiveBack, session: int, part: int = 0) -> Operation | None:
    """Return this part of the call: undelivered jobs one by one, then all others by the end of the session."""
    if part < len(call.undelivered):
        return Return(call.undelivered[part])
    return CloseSession(session, release=True) if call.handles and part == len(call.undelivered) else None


def next_operation(call: calls.Change, session: int, part: int, *, found: bool) -> Operation | None:
    """Return the operation for this part of the request, if any; `found`: whether the previous one found its job."""
    if type(call) is calls.GiveBack:
        return _give_back(call, session, part)
    if type(call) is calls.DeleteJob and call.handle is not None and part == 1 and not found:
        return Delete(Number(call.number), unless_running=True)     # its time has ended, and it may be ready again
    return None


def _due(delay_s: int) -> Due | None:
    return Due(delay_s * MS) if delay_s else None


# The first operation of a call: part 0 of a request of the session.
CALL_OPERATIONS: dict[type, Callable[[Any, int], Operation | None]] = {
    calls.PutJob: _put, calls.Reserve: _reserve, calls.ReserveJob: _reserve_job, calls.DeleteJob: _delete,
    calls.Release: _release, calls.Bury: _bury, calls.TouchJob: _touch, calls.KickTube: _kick, calls.KickJob: _kick_job,
    calls.Pause: _pause, calls.GiveBack: _give_back,
}
