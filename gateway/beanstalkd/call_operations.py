"""Translates calls into operations: the table of everything that the commands of beanstalkd change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sockpqd.beanstalk import calls
from sockpqd.core import (
    BuryHere,
    CloseSession,
    Delete,
    DoneLast,
    Due,
    Get,
    GetNumber,
    GetWith,
    Kick,
    LaterWith,
    Number,
    Operation,
    PauseQueue,
    Policy,
    Put,
    PutNumbered,
    PutWith,
    Return,
    Touch,
)

MS = 1000
OUTSIDE_SESSION = frozenset({Return, CloseSession})     # repeating them does no harm, so they need no number


def _put(call: calls.Put, session: int) -> tuple[Operation, ...]:
    put = PutWith(Put(call.tube, -call.priority, call.body), _due(call.delay_s))
    return (PutNumbered(put, number=True, lease_ms=call.ttr_s * MS),)


def _reserve(call: calls.Reserve, session: int) -> tuple[Operation, ...]:
    get = Get(call.tubes, session=session)
    return (get if len(call.tubes) == 1 else GetWith(get, policy=Policy.PLACE),)


def _reserve_job(call: calls.ReserveJob, session: int) -> tuple[Operation, ...]:
    return (GetNumber(Number(call.number), session=session),)


def _delete(call: calls.Delete, session: int) -> tuple[Operation, ...]:
    """The second one is for a job that is no longer reserved under the handle, and may be ready again."""
    delete = Delete(Number(call.number), unless_running=True)
    return (delete,) if call.handle is None else (DoneLast(call.handle), delete)


def _release(call: calls.Release, session: int) -> tuple[Operation, ...]:
    due = _due(call.delay_s)
    return (LaterWith(call.handle, due, -call.priority, first=due is None),)


def _bury(call: calls.Bury, session: int) -> tuple[Operation, ...]:
    return (BuryHere(call.handle, -call.priority),)


def _touch(call: calls.Touch, session: int) -> tuple[Operation, ...]:
    return (Touch(call.handle),)


def _kick(call: calls.Kick, session: int) -> tuple[Operation, ...]:
    return (Kick(call.tube, call.count, here=True),)


def _kick_job(call: calls.KickJob, session: int) -> tuple[Operation, ...]:
    return (Kick("", 1, selector=Number(call.number)),)


def _pause(call: calls.Pause, session: int) -> tuple[Operation, ...]:
    return (PauseQueue(call.tube, incoming=False, outgoing=True, pause_ms=call.seconds * MS),)


def _give_back(call: calls.GiveBack, session: int) -> tuple[Operation, ...]:
    """The end of the session gives back any number of jobs at once."""
    returns: list[Operation] = [Return(handle) for handle in call.undelivered]
    if call.handles:
        returns.append(CloseSession(session, release=True))
    return tuple(returns)


def _due(delay_s: int) -> Due | None:
    return Due(delay_s * MS) if delay_s else None


# A call's operations are the parts of one request of the session. Each one is executed if the one before it found no
# job; all of them for a GiveBack.
CALL_OPERATIONS: dict[type, Callable[[Any, int], tuple[Operation, ...]]] = {
    calls.Put: _put, calls.Reserve: _reserve, calls.ReserveJob: _reserve_job, calls.Delete: _delete,
    calls.Release: _release, calls.Bury: _bury, calls.Touch: _touch, calls.Kick: _kick, calls.KickJob: _kick_job,
    calls.Pause: _pause, calls.GiveBack: _give_back,
}
