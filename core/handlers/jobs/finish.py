"""The operations that end a hand-out: done, later, returned, buried (spec/state-machine 2, 8)."""

from __future__ import annotations

from core.handlers.cost import BASE_BYTES, ID_BYTES, JOB, JOB_WITH_EXTRAS, Cost, of_names
from core.ops import jobs as ops
from core.ops.replies import ACCEPTED, FINISHED, NOT_FOUND, Reply, Results
from core.rules import complete
from core.rules.complete import finish, put_back
from core.state import State


def done(state: State, operation: ops.Done, seed: int) -> Reply:
    """Finish the job."""
    job = state.stop(operation.id)
    return NOT_FOUND if job is None else finish(state, job)


def done_last(state: State, operation: ops.DoneLast, seed: int) -> Reply:
    """Finish the job for good, even a periodic one."""
    job = state.stop(operation.id)
    return NOT_FOUND if job is None else finish(state, job, last=True)


def done_all(state: State, operation: ops.DoneAll, seed: int) -> Reply:
    """Finish the jobs."""
    answers: list[Reply] = []
    for number in operation.ids:
        job = state.stop(number)
        answers.append(NOT_FOUND if job is None else finish(state, job))
        if state.events.endings:
            state.end_operation()
    return Results(tuple(answers))


def ids_cost(operation: ops.DoneAll | ops.LaterAll | ops.LaterAllFirst | ops.TouchAll) -> Cost:
    """Bytes and work of an operation on many jobs."""
    return BASE_BYTES + ID_BYTES * len(operation.ids), JOB * len(operation.ids)


def later(state: State, operation: ops.Later, seed: int) -> Reply:
    """Put the job back at the tail of its priority."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    put_back(state, job)
    return ACCEPTED


def later_with(state: State, operation: ops.LaterWith, seed: int) -> Reply:
    """Put the job back as the options say."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
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
    put_back(state, job, options, reason=operation.reason)
    return ACCEPTED


def reason_cost(operation: ops.LaterWithReason | ops.BuryWithReason) -> Cost:
    """Bytes and work of an operation with a reason."""
    return BASE_BYTES + of_names(operation.reason), JOB_WITH_EXTRAS


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
            put_back(state, job, options)
            if state.events.endings:
                state.end_operation()
        answers.append(NOT_FOUND if job is None else ACCEPTED)
    return Results(tuple(answers))


def return_(state: State, operation: ops.Return, seed: int) -> Reply:
    """Put the job back at its old place."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    complete.undo_hand_out(state, job)
    return ACCEPTED


def bury(state: State, operation: ops.Bury, seed: int) -> Reply:
    """Move the job to the dead queue."""
    job = state.stop(operation.id)
    return NOT_FOUND if job is None else FINISHED[complete.bury(state, job), False]


def bury_with_reason(state: State, operation: ops.BuryWithReason, seed: int) -> Reply:
    """Move the job to the dead queue, with the reason."""
    job = state.stop(operation.id)
    return NOT_FOUND if job is None else FINISHED[complete.bury(state, job, operation.reason), False]
