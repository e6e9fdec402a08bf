"""Handler of Request: executes another operation exactly once, and repeats the answer if the request comes again."""

from __future__ import annotations

from sockpqd.core.handlers.cost import BASE_BYTES, Cost
from sockpqd.core.handlers.dispatch import COSTS, OWNED, REQUESTED
from sockpqd.core.handlers.jobs.get import handed
from sockpqd.core.ops import replies
from sockpqd.core.ops.cluster import CloneChunk
from sockpqd.core.ops.jobs import Get, GetWith, JobPut, Put
from sockpqd.core.ops.pulses import TakeTurn
from sockpqd.core.ops.replies import Empty, Handed, HandedMany, Reply, Results, Stored, Turn
from sockpqd.core.ops.sessions import Request
from sockpqd.core.sessions.session import Answer, AnsweredRequest, HandedOut, HandedOutMany
from sockpqd.core.state import State

_MISMATCH = replies.RequestMismatch()
_ANSWERED_LATER = frozenset((Get, GetWith, TakeTurn))     # Empty may mean "not yet"
_GETS = frozenset((Get, GetWith))
_BATCHES = frozenset((Results, HandedOutMany))
_TOO_OLD = replies.RequestTooOld()


def request(state: State, operation: Request, seed: int) -> Reply:
    """Execute the requested operation unless it was executed before."""
    session = state.sessions.use(operation.session, state.clock_ms)
    if session is None:
        return _unexecuted(state, operation, replies.SESSION_NOT_FOUND)
    number, batch_bytes = operation.number, session.batch_bytes
    answered = None
    if number > session.newest:
        session.advance(number)
    else:
        if session.forgotten(number):
            return _unexecuted(state, operation, _TOO_OLD)
        answered = session.requests.get(number)
        if answered is not None and answered.digest != operation.digest:
            # A GET that does not wait ends the wait of a GETB that got nothing, and takes its number.
            if answered.answers() or type(operation.operation) not in _GETS or operation.keep_waiting:
                return _unexecuted(state, operation, _MISMATCH)
            del session.requests[number]
            answered = None
        again = None if answered is None else _again(state, operation, answered)
        if again is not None:
            return _unexecuted(state, operation, again)
    requested = operation.operation
    kind = type(requested)
    reply = (REQUESTED if state.cluster_map is None else OWNED)[kind](state, requested, seed)
    answer: Answer | None = _remembered(operation, reply) if kind in _ANSWERED_LATER else reply
    if answered is None and operation.part == 0 and type(answer) not in _BATCHES:
        session.requests[number] = AnsweredRequest(operation.digest, answer)
    else:
        session.keep(number, operation.digest, operation.part, answer)
    if session.batch_bytes != batch_bytes:
        state.spent += state.sessions.owners.batches_changed(session, session.batch_bytes - batch_bytes)
    return reply


def request_cost(operation: Request) -> Cost:
    """Return the bytes and work of a Request."""
    requested = operation.operation
    size, work = COSTS[type(requested)](requested)
    return BASE_BYTES + len(operation.digest) + size, work


def _remembered(operation: Request, reply: Reply) -> Answer | None:
    """Return the answer to remember for a Get or TakeTurn; None if the reply is not final."""
    if isinstance(reply, Handed):
        return HandedOut(reply.id)
    if isinstance(reply, HandedMany):
        return HandedOutMany(tuple([job.id for job in reply.jobs]))
    if isinstance(reply, Empty) and operation.keep_waiting and (reply.unfinished or not operation.until_finished):
        return None
    return reply


def _again(state: State, operation: Request, answered: AnsweredRequest) -> Reply | None:
    """Return the reply to a request whose number was used before; None if this part of it must be executed (again).

    It must be executed if it was not executed before, if it waits, if it handed out a job that no longer runs (its id
    would be void), or if it returned a ticket that is closed.
    """
    answer = answered.answer(operation.part)
    if isinstance(answer, Turn):
        pulse = state.pulses.of_ticket(answer.ticket, state.clock_ms)
        if pulse is None:
            return None
        state.pulses.remember(pulse, 1, state.clock_ms)
        return answer
    if not isinstance(answer, HandedOut | HandedOutMany):
        return answer
    requested = operation.operation
    numbers = (answer.id,) if isinstance(answer, HandedOut) else answer.ids
    running = [state.running[number] for number in numbers if number in state.running]
    if not running:
        return None
    for job in running:
        pulse = None if job.pulse is None else state.pulses.by_name.get(job.pulse)
        if pulse is not None:
            state.pulses.remember(pulse, 1, state.clock_ms)
    jobs = [handed(state, job, requested) for job in running]
    state.spent += sum(len(job.data) for job in jobs)
    return jobs[0] if isinstance(answer, HandedOut) else HandedMany(tuple(jobs))


def _unexecuted(state: State, operation: Request, reply: Reply) -> Reply:
    """Reply without executing the operation, but still pass the item on to a hand-out after a Put, or end a CLONE."""
    requested = operation.operation
    if isinstance(requested, JobPut):
        put = requested if isinstance(requested, Put) else requested.put
        stored = isinstance(reply, Stored)
        state.put_item = reply.item if isinstance(reply, Stored) and put.new_item else put.item if stored else None
    elif type(requested) is CloneChunk and state.clone is not None and state.clone.clone == requested.clone:
        state.drop_clone()
    return reply
