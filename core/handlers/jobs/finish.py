"""The operations that end a hand-out: done, later, returned, buried (spec/state-machine 2, 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, JOB_WITH_EXTRAS, Cost, of_ids, of_names
from sockpqd.core.handlers.dispatch import COSTS
from sockpqd.core.ops import jobs as ops
from sockpqd.core.ops.replies import ACCEPTED, FINISHED, NOT_FOUND, Reply, Results
from sockpqd.core.rules import complete
from sockpqd.core.rules.complete import finish, put_back
from sockpqd.core.rules.pulses import result
from sockpqd.core.state import State


def done(state: State, operation: ops.Done, seed: int) -> Reply:
    """Finish the job."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    if job.pulse is not None:
        result(state, job, ops.Feedback.OK)
    return finish(state, job)


def done_last(state: State, operation: ops.DoneLast, seed: int) -> Reply:
    """Finish the job for good, even a periodic one."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    if job.pulse is not None:
        result(state, job, ops.Feedback.OK)
    return finish(state, job, last=True)


def done_ran(state: State, operation: ops.DoneRan, seed: int) -> Reply:
    """Finish the job; its group is charged for the time it ran."""
    job = state.stop(operation.id, ran(operation.ran_ms))
    if job is None:
        return NOT_FOUND
    result(state, job, ops.Feedback.OK)
    return finish(state, job, last=operation.last)


def ran(ran_ms: int) -> int:
    """A time that a job may have run."""
    return min(max(ran_ms, 0), limits.RAN_MS_MAX)


def done_all(state: State, operation: ops.DoneAll, seed: int) -> Reply:
    """Finish the jobs."""
    answers: list[Reply] = []
    for number in operation.ids:
        job = state.stop(number)
        if job is not None and job.pulse is not None:
            result(state, job, ops.Feedback.OK)
        answers.append(NOT_FOUND if job is None else finish(state, job))
        if state.events.endings:
            state.end_operation()
    return Results(tuple(answers))


def ids_cost(operation: ops.DoneAll | ops.LaterAll | ops.LaterAllFirst) -> Cost:
    """Bytes and work of an operation on many jobs."""
    return of_ids(operation.ids)


def later(state: State, operation: ops.Later, seed: int) -> Reply:
    """Put the job back at the tail of its priority."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    if job.pulse is not None:
        result(state, job, ops.Feedback.OK)
    put_back(state, job)
    return ACCEPTED


def later_with(state: State, operation: ops.LaterWith, seed: int) -> Reply:
    """Put the job back as the options say."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    result(state, job, ops.Feedback.OK)
    put_back(state, job, operation)
    return ACCEPTED


def later_with_reason(state: State, operation: ops.LaterWithReason, seed: int) -> Reply:
    """Put the job back as the options say, with the reason."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    options = ops.LaterWith(
        operation.id, operation.when, operation.priority, operation.first, operation.yielded,
    )
    result(state, job, ops.Feedback.OK)
    put_back(state, job, options, reason=operation.reason)
    return ACCEPTED


def reason_cost(operation: ops.LaterWithReason | ops.BuryWithReason) -> Cost:
    """Bytes and work of an operation with a reason."""
    return BASE_BYTES + of_names(operation.reason), JOB_WITH_EXTRAS


def later_ran(state: State, operation: ops.LaterRan, seed: int) -> Reply:
    """The same; its group is charged for the time it ran."""
    job = state.stop(operation.later.id, ran(operation.ran_ms))
    if job is None:
        return NOT_FOUND
    later = operation.later
    result(state, job, ops.Feedback.OK)
    reason = later.reason if isinstance(later, ops.LaterWithReason) else None
    options = ops.LaterWith(later.id, later.when, later.priority, later.first, later.yielded)
    put_back(state, job, options, reason=reason)
    return ACCEPTED


def later_ran_cost(operation: ops.LaterRan) -> Cost:
    """Bytes and work of a LaterRan."""
    later = operation.later
    return 2 * BASE_BYTES + of_names(later.reason if isinstance(later, ops.LaterWithReason) else None), JOB_WITH_EXTRAS


def later_all(state: State, operation: ops.LaterAll, seed: int) -> Reply:
    """Put the jobs back at the tails of their priorities."""
    return _put_all_back(state, operation.ids, complete.NO_OPTIONS)


def later_all_first(state: State, operation: ops.LaterAllFirst, seed: int) -> Reply:
    """Put the jobs back at their old places."""
    return _put_all_back(state, operation.ids, complete.FIRST)


def _put_all_back(state: State, ids: tuple[int, ...], options: ops.LaterWith) -> Results:
    answers: list[Reply] = []
    for number in ids:
        job = state.stop(number)
        if job is not None:
            result(state, job, ops.Feedback.OK)
            put_back(state, job, options)
            if state.events.endings:
                state.end_operation()
        answers.append(NOT_FOUND if job is None else ACCEPTED)
    return Results(tuple(answers))


def end_with(state: State, operation: ops.EndWith, seed: int) -> Reply:
    """End the hand-out, with another result than OK for the pulse that granted it."""
    end = operation.end
    job = state.running.get(end.id)
    if job is None:
        return NOT_FOUND
    pulse, job.pulse = job.pulse, None          # so that the end by itself is no result
    reply = _ENDS[type(end)](state, end, seed)
    job.pulse = pulse                           # a batch may bring the job back
    result(state, job, operation.feedback, operation.sleep_ms)
    return reply


def end_with_cost(operation: ops.EndWith) -> Cost:
    """Bytes and work of an EndWith."""
    size, work = COSTS[type(operation.end)](operation.end)
    return BASE_BYTES + size, work


_ENDS: dict[type, Callable[[State, Any, int], Reply]] = {
    ops.Done: done, ops.DoneLast: done_last, ops.Later: later, ops.LaterWith: later_with,
    ops.LaterWithReason: later_with_reason, ops.DoneRan: done_ran, ops.LaterRan: later_ran,
}


def return_(state: State, operation: ops.Return, seed: int) -> Reply:
    """Put the job back at its old place."""
    job = state.stop(operation.id, charged=False)
    if job is None:
        return NOT_FOUND
    complete.undo_hand_out(state, job)
    return ACCEPTED


def bury(state: State, operation: ops.Bury, seed: int) -> Reply:
    """Move the job to the dead queue."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    result(state, job, ops.Feedback.FAIL)
    return FINISHED[complete.bury(state, job), False]


def bury_here(state: State, operation: ops.BuryHere, seed: int) -> Reply:
    """Let the job lie in its own queue until it is kicked."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    result(state, job, ops.Feedback.FAIL)
    return FINISHED[complete.bury_here(state, job, operation.priority, operation.reason), False]


def bury_here_cost(operation: ops.BuryHere) -> Cost:
    """Bytes and work of a BuryHere."""
    return BASE_BYTES + of_names(operation.reason), JOB_WITH_EXTRAS


def bury_with_reason(state: State, operation: ops.BuryWithReason, seed: int) -> Reply:
    """Move the job to the dead queue, with the reason."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    result(state, job, ops.Feedback.FAIL)
    return FINISHED[complete.bury(state, job, operation.reason), False]
