"""Await, which asks for the end of a job (spec/state-machine 10.6). The state does not depend on it."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, JOB_WITH_EXTRAS, Cost, of_names
from sockpqd.core.ops.jobs import Await, AwaitSelector, Number
from sockpqd.core.ops.queues import EndState, JobState
from sockpqd.core.ops.replies import NOT_FOUND, JobAwaited, JobEnded, Reply
from sockpqd.core.state import State
from sockpqd.core.store.job import AnyJob, BuriedJob, Job


def await_end(state: State, operation: Await, seed: int) -> Reply:
    """Reply how the job has ended; if it has not, watch it from now on."""
    job = awaited_job(state, operation.selector)
    if job is None:
        return _recorded(state, operation.selector)
    death = death_of(job)
    if death is None:
        return JobAwaited(state.watches.ask(job.seq), job.queue)
    text = state.error_of(job)
    state.spent += len(text)
    return JobEnded(job.queue, death, text)


def await_cost(operation: Await) -> Cost:
    """Return the bytes and work of an Await; for its record, which may be large, the leader asks (known_work.py)."""
    selector = operation.selector
    names = 0 if isinstance(selector, Number) else of_names(selector.queue, selector.key)
    return BASE_BYTES + names, JOB_WITH_EXTRAS


def awaited_job(state: State, selector: AwaitSelector) -> AnyJob | None:
    """Return the job that is selected; None if there is none. Raises PageLost."""
    if isinstance(selector, Number):
        return state.numbered(selector.number)
    queue = state.queues.by_name.get(selector.queue)
    return None if queue is None or queue.keys is None else queue.keys.get(selector.key)


def death_of(job: AnyJob) -> JobState | None:
    """Return DEAD or BURIED if the job is; None if its end is still to come."""
    if isinstance(job, BuriedJob):
        return JobState.BURIED
    dead = isinstance(job, Job) and job.extras is not None and job.extras.origin is not None
    return JobState.DEAD if dead else None


def _recorded(state: State, selector: AwaitSelector) -> Reply:
    found = state.records.find(selector.number, state.clock_ms) if isinstance(selector, Number) else None
    if found is None:
        return NOT_FOUND
    record = found.record
    state.spent += limits.STEP * limits.RECORD_WORK + record.kept_bytes
    return JobEnded(found.queue, record.state, record.result if record.state is EndState.DONE else b"")
