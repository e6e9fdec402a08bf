"""Handlers of the operations on sessions."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, ID_BYTES, JOB, Cost, of_names
from sockpqd.core.ops import replies
from sockpqd.core.ops import sessions as ops
from sockpqd.core.ops.replies import ACCEPTED, SESSION_NOT_FOUND, Reply
from sockpqd.core.rules.complete import FIRST, put_back
from sockpqd.core.rules.expire import end_session
from sockpqd.core.rules.fair_choice import settle_spent
from sockpqd.core.sessions.session import Session
from sockpqd.core.state import State
from sockpqd.core.store.job import first_taken

SECRET_MASK = (1 << 64) - 1


def open_session(state: State, operation: ops.OpenSession, seed: int) -> Reply:
    """Open a session. If its owner has too many, the least recently used one without bound jobs is ended."""
    sessions, user, address = state.sessions, operation.user, operation.address
    if operation.owner_max is not None and sessions.owners.count(user, address) >= operation.owner_max:
        unused = sessions.owners.longest_unused(user, address)
        if unused is None:
            return replies.TooManySessions()
        state.spent += limits.STEP * JOB * end_session(state, unused, limits.DUE_MAX)
    if len(sessions.by_number) >= limits.SESSIONS_MAX:
        return replies.TooManySessions()
    ttl_ms = min(max(operation.ttl_ms, limits.SESSION_TTL_MS_MIN), limits.SESSION_TTL_MS_MAX)
    session = sessions.open(operation.secret & SECRET_MASK, ttl_ms, user, address, state.clock_ms)
    return replies.SessionOpened(f"{session.number}_{session.secret:016x}", ttl_ms)


def open_cost(operation: ops.OpenSession) -> Cost:
    """Return the bytes and work of an OpenSession."""
    return BASE_BYTES + of_names(operation.user, operation.address), JOB


def attach_session(state: State, operation: ops.AttachSession, seed: int) -> Reply:
    """Resume a session. A wrong secret is refused and does not keep the session alive.

    So is a user other than the owner, even with the right secret.
    """
    session = state.sessions.get(operation.session)
    if session is None or session.secret != operation.secret:
        return SESSION_NOT_FOUND
    if session.user and operation.user and session.user != operation.user:
        return SESSION_NOT_FOUND
    state.sessions.use(operation.session, state.clock_ms)
    return replies.SessionAttached(session.ttl_ms, session.newest)


def attach_cost(operation: ops.AttachSession) -> Cost:
    """Return the bytes and work of an AttachSession."""
    return BASE_BYTES + of_names(operation.user), JOB


def close_session(state: State, operation: ops.CloseSession, seed: int) -> Reply:
    """End the session and release its jobs; without `release` they are unbound from it and run on."""
    session = state.sessions.get(operation.session)
    if session is None:
        return SESSION_NOT_FOUND
    if operation.first:
        return _close_first(state, session)
    if not operation.release:
        for number in first_taken(session, limits.UNBOUND_MAX):
            state.sessions.unbind(state.running[number])
        if session.taken:
            state.sessions.use(operation.session, state.clock_ms)
            return replies.Removed(limits.UNBOUND_MAX, more=True)
    end_session(state, session, limits.DUE_MAX)
    return ACCEPTED


def _close_first(state: State, session: Session) -> Reply:
    """End the session and put its jobs back at their old places, a portion of them at once, the others later."""
    before, ended = settle_spent(state), 0
    for number in first_taken(session, limits.DUE_MAX):
        job = state.stop(number)
        assert job is not None
        put_back(state, job, FIRST, released=False, failed=False)
        if state.events.endings:
            state.end_operation()
        ended += 1
        if settle_spent(state) - before >= limits.PORTION_BYTES_MAX:
            break
    if session.taken:
        state.sessions.use(session.number, state.clock_ms)
        return replies.Removed(ended, more=True)
    end_session(state, session, limits.DUE_MAX)
    return ACCEPTED


def close_cost(operation: ops.CloseSession) -> Cost:
    """Return the bytes and work of a CloseSession.

    It releases DUE_MAX jobs, or unbinds more, each of which is less work.
    """
    return BASE_BYTES, JOB * limits.PORTION_MAX


def touch_session(state: State, operation: ops.TouchSession, seed: int) -> Reply:
    """Mark the session or sessions as used, which restarts their time."""
    named = operation.session
    if isinstance(named, int):
        return SESSION_NOT_FOUND if state.sessions.use(named, state.clock_ms) is None else ACCEPTED
    for number in named:
        state.sessions.use(number, state.clock_ms)
    return ACCEPTED


def touch_cost(operation: ops.TouchSession) -> Cost:
    """Return the bytes and work of a TouchSession."""
    several = 0 if isinstance(operation.session, int) else len(operation.session)
    return BASE_BYTES + ID_BYTES * several, JOB + several
