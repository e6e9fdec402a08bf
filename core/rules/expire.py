"""Ends leases and sessions that are over: by deadline, leases before sessions, then by id or number."""

from __future__ import annotations

from msgspec.structs import replace

from core import limits
from core.ops.jobs import Then
from core.rules.complete import bury, finish, put_back
from core.rules.remove_queue import remove_queue
from core.sessions.session import Session
from core.state import State
from core.store.job import RunningJob, counted, is_numbered
from core.store.queues import EXPIRED


def end_due(state: State) -> int:
    """End leases and sessions that are over at the replicated time, DUE_MAX jobs and sessions at most.

    Returns how many more there could have been.
    """
    left = limits.DUE_MAX
    while left > 0:
        job = state.leases.first_due(state.clock_ms)
        session = state.sessions.first_due(state.clock_ms)
        if job is not None and (session is None or _deadline_ms(job) <= session.deadline_ms):
            _end_lease(state, job)
            left -= 1
            if state.events.endings:
                state.end_operation()
        elif session is not None:
            left -= end_session(state, session, left)
        else:
            break
    return left


def _deadline_ms(job: RunningJob) -> int:
    assert job.deadline_ms is not None
    return job.deadline_ms


def _end_lease(state: State, job: RunningJob) -> None:
    state.stop(job.id)
    if is_numbered(job.extras):
        job = replace(job, extras=counted(job.extras, timeouts=1))
    state.queues.by_name[job.queue].counters[EXPIRED] += 1
    state.events.tell("EXPIRED", job.queue, job.id, job.then.name)
    if job.then is Then.DONE:
        finish(state, job, expired=True)
    elif job.then is Then.DEAD:
        bury(state, job)
    else:
        put_back(state, job, expired=True)


def end_session(state: State, session: Session, ends_max: int) -> int:
    """Release its jobs, remove its queues and workers, forget the session; returns how many jobs and sessions ended.

    `ends_max` at most. The session has ended in any case. If there is more to do it is due again at the next entry.
    """
    state.sessions.end(session, state.clock_ms)
    state.workers.end(session.number)
    released = [number for number, _ in zip(session.taken, range(ends_max), strict=False)]
    for number in released:
        job = state.stop(number)
        assert job is not None
        put_back(state, job, released=False)
        if state.events.endings:
            state.end_operation()
    left = ends_max - len(released)
    for name in sorted(state.queues.bound.get(session.number, ())):
        if not left:
            break
        removed, gone = remove_queue(state, name, left)
        left -= max(1, removed) if gone else left
        if state.events.endings:
            state.end_operation()
    if not left:
        return ends_max
    state.sessions.remove(session)
    return ends_max - left + 1
