"""What the operations on sessions do, and the requests in them; basic.py says what a handler is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from core import limits
from core.handlers.basic import clone_end, get
from core.handlers.batch import ATOMIC, batch
from core.handlers.edit import done_all, kick_, later_all
from core.handlers.get import handed, pick
from core.handlers.queues import (
    configure,
    configure_queue,
    create_queue,
    delete_queue,
    pause_queue,
    purge_queue,
    resume_queue,
)
from core.ops.cluster import (
    AttachSession,
    CloneEnd,
    CloseSession,
    OpenSession,
    Request,
    TouchSession,
)
from core.ops.jobs import Batch, DoneAll, Get, Kick, LaterAll, Pick, Put, PutWith
from core.ops.queues import (
    Configure,
    ConfigureQueue,
    CreateQueue,
    DeleteQueue,
    PauseQueue,
    PurgeQueue,
    ResumeQueue,
)
from core.ops.replies import (
    Empty,
    Handed,
    HandedMany,
    Removed,
    Reply,
    RequestMismatch,
    RequestTooOld,
    SessionAttached,
    SessionOpened,
    Stored,
    TooManySessions,
)
from core.rules.admit import ACCEPTED, SESSION_NOT_FOUND
from core.rules.expire import end_session
from core.state import State
from core.store.session import Answer, Answered, HandedOut, HandedOutMany

REQUEST_MISMATCH = RequestMismatch()
REQUEST_TOO_OLD = RequestTooOld()

SECRET_MASK = (1 << 64) - 1


def open_session(state: State, operation: OpenSession, seed: int) -> Reply:
    """A new session. An owner that has as many as it may loses the one that it can do without best."""
    sessions, user, address = state.sessions, operation.user, operation.address
    if operation.owner_max is not None and sessions.owners.count(user, address) >= operation.owner_max:
        unused = sessions.owners.longest_unused(user, address)
        if unused is None:
            return TooManySessions()
        end_session(state, unused, limits.DUE_MAX)
    if len(sessions.by_number) >= limits.SESSIONS_MAX:
        return TooManySessions()
    ttl_ms = min(max(operation.ttl_ms, limits.SESSION_TTL_MS_MIN), limits.SESSION_TTL_MS_MAX)
    session = sessions.open(operation.secret & SECRET_MASK, ttl_ms, user, address, state.clock_ms)
    return SessionOpened(f"{session.number}_{session.secret:016x}", ttl_ms)


def attach_session(state: State, operation: AttachSession, seed: int) -> Reply:
    """The client is back. With a wrong secret it is another client, and does not keep the session alive.

    Another user than the one whose session it is gets nothing either, even if he has overheard the secret.
    """
    session = state.sessions.get(operation.session)
    if session is None or session.secret != operation.secret:
        return SESSION_NOT_FOUND
    if session.user and operation.user and session.user != operation.user:
        return SESSION_NOT_FOUND
    state.sessions.use(operation.session, state.clock_ms)
    return SessionAttached(session.ttl_ms, session.newest)


def close_session(state: State, operation: CloseSession, seed: int) -> Reply:
    """The session ends."""
    session = state.sessions.get(operation.session)
    if session is None:
        return SESSION_NOT_FOUND
    if not operation.release:
        for number in list(islice(session.taken, limits.UNBOUND_MAX)):
            state.sessions.unbind(state.running[number])
        if session.taken:
            state.sessions.use(operation.session, state.clock_ms)
            return Removed(limits.UNBOUND_MAX, more=True)
    end_session(state, session, limits.DUE_MAX)
    return ACCEPTED


def touch_session(state: State, operation: TouchSession, seed: int) -> Reply:
    """The session is used."""
    return SESSION_NOT_FOUND if state.sessions.use(operation.session, state.clock_ms) is None else ACCEPTED


REQUESTED: dict[type[Any], Callable[[State, Any, int], Reply]] = {
    **ATOMIC,
    Get: get,
    Pick: pick,
    DoneAll: done_all,
    LaterAll: later_all,
    Kick: kick_,
    Batch: batch,
    CloneEnd: clone_end,
    CreateQueue: create_queue,
    ConfigureQueue: configure_queue,
    DeleteQueue: delete_queue,
    PurgeQueue: purge_queue,
    PauseQueue: pause_queue,
    ResumeQueue: resume_queue,
    Configure: configure,
}


def request(state: State, operation: Request, seed: int) -> Reply:
    """Execute what is requested, once."""
    session = state.sessions.use(operation.session, state.clock_ms)
    if session is None:
        return _instead(state, operation, SESSION_NOT_FOUND)
    number = operation.number
    answered = None
    if number > session.newest:
        session.advance(number)
    else:
        if session.forgotten(number):
            return _instead(state, operation, REQUEST_TOO_OLD)
        answered = session.requests.get(number)
        again = None if answered is None else _again(state, operation, answered)
        if again is not None:
            return _instead(state, operation, again)
    requested = operation.operation
    reply = REQUESTED[type(requested)](state, requested, seed)
    handing = type(requested) is Get or type(requested) is Pick
    answer: Answer | None = _kept(operation, reply) if handing else reply
    if answered is None and operation.part == 0:
        session.requests[number] = Answered(operation.digest, answer)
    else:
        session.keep(number, operation.digest, operation.part, answer)
    return reply


def _kept(operation: Request, reply: Reply) -> Answer | None:
    """What is kept of the reply to a Get; None: it is no answer yet."""
    if isinstance(reply, Handed):
        return HandedOut(reply.id)
    if isinstance(reply, HandedMany):
        return HandedOutMany(tuple([job.id for job in reply.jobs]))
    if isinstance(reply, Empty) and operation.keep_waiting and (reply.unfinished or not operation.until_finished):
        return None
    return reply


def _again(state: State, operation: Request, answered: Answered) -> Reply | None:
    """What is answered because the number was used before; None: this part of the command is to be executed.

    It was not executed yet, or had to wait, or gave a job that runs no more: its id would be void.
    """
    if answered.digest != operation.digest:
        return REQUEST_MISMATCH
    answer = answered.answer(operation.part)
    if not isinstance(answer, HandedOut | HandedOutMany):
        return answer
    meta = type(operation.operation) is Pick and operation.operation.meta
    numbers = (answer.id,) if isinstance(answer, HandedOut) else answer.ids
    jobs = [handed(state.running[number], meta) for number in numbers if number in state.running]
    if not jobs:
        return None
    state.spent += sum(len(job.data) for job in jobs)
    return jobs[0] if isinstance(answer, HandedOut) else HandedMany(tuple(jobs))


def _instead(state: State, operation: Request, reply: Reply) -> Reply:
    """This is the answer, and nothing is executed; but what comes in the same entry, or came for it, must be right."""
    requested = operation.operation
    if isinstance(requested, Put | PutWith):
        put = requested.put if isinstance(requested, PutWith) else requested
        stored = isinstance(reply, Stored)
        state.put_item = reply.item if isinstance(reply, Stored) and put.new_item else put.item if stored else None
    elif type(requested) is CloneEnd and state.clone is not None and state.clone.clone == requested.clone:
        state.clone = None
    return reply
