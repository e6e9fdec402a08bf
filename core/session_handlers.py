"""What the operations on sessions do, and the requests in them; handlers.py says what a handler is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.due import DUE_MAX, end_session
from core.effects import Effects
from core.handlers import SESSION_NOT_FOUND, clone_end, done, get, later, put
from core.member_handlers import ACCEPTED
from core.operations import (
    AttachSession,
    CloneEnd,
    CloseSession,
    Done,
    Get,
    Later,
    OpenSession,
    Put,
    Request,
    Requested,
    TouchSession,
)
from core.replies import (
    Empty,
    Handed,
    Reply,
    RequestMismatch,
    RequestTooOld,
    SessionAttached,
    SessionOpened,
    Stored,
    TooManySessions,
)
from core.sessions import SESSIONS_MAX, TTL_MS_MAX, TTL_MS_MIN, Answered, HandedOut
from core.state import State

REQUEST_MISMATCH = RequestMismatch()
REQUEST_TOO_OLD = RequestTooOld()

SECRET_MASK = (1 << 64) - 1


def open_session(state: State, operation: OpenSession, seed: int, effects: Effects) -> Reply:
    """A new session."""
    if len(state.sessions.by_number) >= SESSIONS_MAX:
        return TooManySessions()
    ttl_ms = min(max(operation.ttl_ms, TTL_MS_MIN), TTL_MS_MAX)
    session = state.sessions.open(operation.secret & SECRET_MASK, ttl_ms, state.clock_ms)
    return SessionOpened(f"{session.number}_{session.secret:016x}", ttl_ms)


def attach_session(state: State, operation: AttachSession, seed: int, effects: Effects) -> Reply:
    """The client is back. With a wrong secret it is another client, and does not keep the session alive."""
    session = state.sessions.get(operation.session)
    if session is None or session.secret != operation.secret:
        return SESSION_NOT_FOUND
    state.sessions.use(operation.session, state.clock_ms)
    return SessionAttached(session.ttl_ms, session.newest)


def close_session(state: State, operation: CloseSession, seed: int, effects: Effects) -> Reply:
    """The session ends."""
    session = state.sessions.get(operation.session)
    if session is None:
        return SESSION_NOT_FOUND
    if not operation.release:
        for number in list(session.taken):
            state.sessions.unbind(state.running[number])
    end_session(state, session, DUE_MAX, effects)
    return ACCEPTED


def touch_session(state: State, operation: TouchSession, seed: int, effects: Effects) -> Reply:
    """The session is used."""
    return SESSION_NOT_FOUND if state.sessions.use(operation.session, state.clock_ms) is None else ACCEPTED


REQUESTED: dict[type[Requested], Callable[[State, Any, int, Effects], Reply]] = {
    Put: put,
    Get: get,
    Done: done,
    Later: later,
    CloneEnd: clone_end,
}


def request(state: State, operation: Request, seed: int, effects: Effects) -> Reply:
    """Execute what is requested, once."""
    session = state.sessions.use(operation.session, state.clock_ms)
    if session is None:
        return _instead(state, operation, SESSION_NOT_FOUND)
    answered = session.requests.get(operation.number)
    if answered is None:
        answered = session.remember(operation.number, operation.digest)
        if answered is None:
            return _instead(state, operation, REQUEST_TOO_OLD)
    elif answered.digest != operation.digest:
        return _instead(state, operation, REQUEST_MISMATCH)
    else:
        repeated = _answer_again(state, answered, operation.part)
        if repeated is not None:
            return _instead(state, operation, repeated)
    requested = operation.operation
    reply = REQUESTED[type(requested)](state, requested, seed, effects)
    if type(reply) is Handed:
        answered.keep(operation.part, HandedOut(reply.id))
    elif not (
        type(reply) is Empty and operation.keep_waiting and (reply.unfinished or not operation.until_finished)
    ):
        answered.keep(operation.part, reply)
    return reply


def _answer_again(state: State, answered: Answered, part: int) -> Reply | None:
    """The answer that was given before; None when there was none, or when the job it gave runs no more."""
    answer = answered.answer(part)
    if not isinstance(answer, HandedOut):
        return answer
    job = state.running.get(answer.id)
    return None if job is None else Handed(job.id, job.queue, job.priority, job.data, job.item)


def _instead(state: State, operation: Request, reply: Reply) -> Reply:
    """This is the answer, and nothing is executed; but what comes in the same entry, or came for it, must be right."""
    requested = operation.operation
    if type(requested) is Put:
        name = reply.item if type(reply) is Stored else None
        state.put_item = name if requested.new_item else requested.item
    elif type(requested) is CloneEnd and state.clone is not None and state.clone.clone == requested.clone:
        state.clone = None
    return reply
