"""Ends expired leases, sessions and holds of items: leases by deadline and id, then sessions by number, then holds."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.fair.ranked_again import RANKED_STEPS, ranked_again
from sockpqd.core.ops.jobs import HoldThen, Then
from sockpqd.core.rules.complete import bury, finish, put_back
from sockpqd.core.rules.fair_choice import settle_spent
from sockpqd.core.rules.items.cancel import cancel, cancel_work, is_cancelled
from sockpqd.core.rules.remove_queue import remove_queue
from sockpqd.core.sessions.session import Session
from sockpqd.core.state import State
from sockpqd.core.store.job import AnyJob, RunningJob, counted, first_taken, is_numbered
from sockpqd.core.store.queues import EXPIRED


def end_due(state: State) -> int:
    """End leases, sessions and holds of items that have expired at the replicated time.

    Ends at most DUE_MAX jobs, sessions and holds, the holds last. Stops once records of the jobs have taken
    PORTION_BYTES_MAX, as their data may have to be read from disk, or cancelling items or ranking groups so much work.
    Returns how many more could have been ended.
    """
    left = limits.DUE_MAX
    while left > 0 and settle_spent(state) < limits.PORTION_BYTES_MAX:
        job = state.leases.first_due(state.clock_ms)
        session = state.sessions.first_due(state.clock_ms)
        if job is not None and (session is None or _deadline_ms(job) <= session.deadline_ms):
            _end_lease(state, job)
            left -= 1
            if state.events.endings:
                state.end_operation()
        elif session is not None:
            left -= end_session(state, session, left, lapsed=True)
        elif state.items.holds.first_ms <= state.clock_ms:
            _end_hold(state)
            left -= 1
        else:
            break
    return left


def _end_hold(state: State) -> None:
    """End the hold that expires first."""
    name = state.items.holds.first_due(state.clock_ms)
    assert name is not None
    item = state.items.by_name[name]
    assert item.hold is not None
    if item.hold.then is HoldThen.CANCEL and not is_cancelled(state, name):
        # At most what stops the portion: commands need a part of each of the entries in which a thousand holds end.
        state.spent += min(limits.STEP * cancel_work(state, name), limits.PORTION_BYTES_MAX)
        cancel(state, item, None)
    state.hold_item(item, None)
    state.end_item(name)
    if state.events.endings:
        state.end_operation()


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


def _place(job: RunningJob) -> tuple[int, int, int]:
    """Return the old place of the job, and its id."""
    return (-job.priority, job.seq, job.id)


def _first_of(state: State, session: Session, count: int) -> Iterator[int]:
    """Yield the first `count` bound jobs of the session, each of which ends before the next one is asked for.

    They are sorted once, as there may be many.
    """
    if session.release is None:
        session.release = sorted([_place(state.running[number]) for number in session.taken], reverse=True)
    for _ in range(count):
        number = session.release.pop()[2]
        while number not in session.taken:
            number = session.release.pop()[2]
        yield number


def _is_long(state: State, session: Session) -> bool:
    """Return whether the groups of its bound jobs are ranked again in more queues than one portion has time for."""
    if state.fair is None:
        return False
    places = ranked_again(state.fair, [state.running[number] for number in session.taken])
    return RANKED_STEPS * limits.STEP * places >= limits.PORTION_BYTES_MAX


def is_released(state: State, job: RunningJob) -> bool:
    """Return whether the job only appears to run: its session has ended, and it waits to be put back."""
    return job.session is not None and state.sessions.by_number[job.session].ending


def by_number(state: State, number: int) -> AnyJob | None:
    """Return the job with this number, after putting it back if its session has ended."""
    job = state.numbered(number)
    if isinstance(job, RunningJob) and job.session is not None and is_released(state, job):
        session = state.sessions.by_number[job.session]
        stopped = state.stop(job.id)
        assert stopped is not None
        put_back(state, stopped, released=False, failed=session.lapsed)
        return state.numbered(number)
    return job


def end_session(state: State, session: Session, ends_max: int, *, lapsed: bool = False) -> int:
    """Release the session's jobs, remove its queues and workers, forget it; returns how many jobs and sessions ended.

    At most `ends_max` jobs end, and fewer if ranking their groups again takes PORTION_BYTES_MAX. `lapsed`: the session
    expires, unless it has ended before. It ends in any case; the rest of its jobs are put back by the next entries.
    Jobs are put back in the order of their places, and by_number() treats the others as if they were back already, so a
    client that takes jobs in the meantime gets the right ones.
    """
    begins = not session.ending
    state.sessions.end(session, state.clock_ms, lapsed=lapsed)
    state.workers.end(session.number, state.clock_ms)
    many = len(session.taken)
    in_parts = many > ends_max or _is_long(state, session)
    if many > ends_max:
        state.spent += limits.STEP // 8 * many * begins
    before, ended = settle_spent(state), 0
    for number in _first_of(state, session, min(many, ends_max)) if in_parts else first_taken(session, many):
        job = state.stop(number)
        assert job is not None
        put_back(state, job, released=False, failed=session.lapsed)
        if state.events.endings:
            state.end_operation()
        ended += 1
        if in_parts and settle_spent(state) - before >= limits.PORTION_BYTES_MAX:
            break
    if ended < min(many, ends_max):
        return ended
    left = ends_max - ended
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
