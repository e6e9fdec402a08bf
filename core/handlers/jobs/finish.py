"""Handlers of the operations that end a hand-out: done, later, returned, buried (spec/state-machine 2, 8)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, JOB, JOB_WITH_EXTRAS, Cost, of_ids, of_names
from sockpqd.core.ops import jobs as ops
from sockpqd.core.ops.replies import (
    ACCEPTED,
    FINISHED,
    NOT_FOUND,
    Accepted,
    DataDropped,
    Finished,
    Rearmed,
    Reply,
    Results,
)
from sockpqd.core.rules import complete
from sockpqd.core.rules.admit import too_large
from sockpqd.core.rules.complete import finish, put_back
from sockpqd.core.rules.items.cancel import end_if_cancelled
from sockpqd.core.rules.pause import sleep_group
from sockpqd.core.rules.pulses import result
from sockpqd.core.state import State
from sockpqd.core.store.job import RunningJob

Executed = Accepted | Finished | Rearmed
LATER, DONE = ops.How.LATER, ops.How.DONE       # a module's global is faster than an enumeration's attribute


def done(state: State, operation: ops.Done, seed: int) -> Reply:
    """Finish the running job with this id; the reply is a refusal if there is none."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    if job.pulse is not None:
        result(state, job, ops.Feedback.OK)
    return finish(state, job)


def later(state: State, operation: ops.Later, seed: int) -> Reply:
    """Put the job back at the tail of its priority."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    if job.pulse is not None:
        result(state, job, ops.Feedback.OK)
    put_back(state, job)
    return ACCEPTED


def end(state: State, operation: ops.End, seed: int) -> Reply:
    """End the hand-out of each job in the way that the options select."""
    ran_ms = None if operation.ran_ms is None else ran(operation.ran_ms)
    if isinstance(operation.ids, int):
        refusal = _result_too_large(state, operation)
        if refusal is not None:
            return refusal
        reply = _end(state, operation.ids, operation, ran_ms)
        return DataDropped(reply) if operation.dropped and isinstance(reply, Executed) else reply
    answers: list[Reply] = []
    for number in operation.ids:
        answers.append(_end(state, number, operation, ran_ms))
        if state.events.endings:
            state.end_operation()
    return Results(tuple(answers))


def _end(state: State, number: int, options: ops.End, ran_ms: int | None) -> Reply:
    job = state.stop(number, ran_ms)
    if job is None:
        return NOT_FOUND
    if job.pulse is not None:
        _tell_result(state, job, options)
    elif options.feedback is ops.Feedback.SLEEP:
        sleep_group(state, job, options.sleep_ms)
    if options.how is not DONE:
        finished = end_if_cancelled(state, job)
        if finished is not None:
            return ACCEPTED if options.how is LATER else FINISHED[finished, False]
    if options.how is LATER:
        put_back(state, job, options)
        return ACCEPTED
    if options.how is DONE:
        return finish(state, job, options.last, result=options.text or b"")
    job = complete.keep_error(state, job, options.text)
    if options.here:
        return FINISHED[complete.bury_here(state, job, options.priority, options.reason), False]
    return FINISHED[complete.bury(state, job, options.reason), False]


def _result_too_large(state: State, operation: ops.End) -> Reply | None:
    """Return the refusal of a result that exceeds the queue's limit on data; None if it fits."""
    if operation.text is None or operation.how is not DONE:
        return None
    job = state.running.get(operation.id)
    return None if job is None else too_large(state, job.queue, len(operation.text))


def _tell_result(state: State, job: RunningJob, options: ops.End) -> None:
    feedback = options.feedback
    if feedback is None:
        feedback = ops.Feedback.FAIL if options.how is ops.How.BURY else ops.Feedback.OK
    result(state, job, feedback, options.sleep_ms)


def end_cost(operation: ops.End) -> Cost:
    """Return the bytes and work of an End."""
    if not isinstance(operation.ids, int):
        size, work = of_ids(operation.ids)
    else:
        size, work = BASE_BYTES, JOB if operation.how is ops.How.DONE else JOB_WITH_EXTRAS
    return size + of_names(operation.reason) + len(operation.text or b""), work


def ran(ran_ms: int) -> int:
    """Return the reported running time in ms, limited to the allowed maximum."""
    return min(max(ran_ms, 0), limits.RAN_MS_MAX)


def return_(state: State, operation: ops.Return, seed: int) -> Reply:
    """Put the job back in its old place."""
    job = state.stop(operation.id, charged=False)
    if job is None:
        return NOT_FOUND
    complete.undo_hand_out(state, job)
    return ACCEPTED
