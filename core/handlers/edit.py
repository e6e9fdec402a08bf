"""What the operations on jobs do that the original protocol has not; basic.py says what a handler is."""

from __future__ import annotations

from msgspec.structs import replace

from core import limits
from core.ops.jobs import (
    Bury,
    Change,
    Delete,
    DoneAll,
    DoneLast,
    Kick,
    LaterAll,
    LaterWith,
    Move,
    Selector,
    Then,
    Touch,
)
from core.ops.queues import Order
from core.ops.replies import Leased, Removed, Reply, Results
from core.rules import activate
from core.rules.admit import (
    ACCEPTED,
    FINISHED,
    JOB_EXISTS,
    JOB_RUNNING,
    NOT_FOUND,
    full,
    key_taken,
    shut,
    too_large,
)
from core.rules.complete import bury, finish, kick, put_back
from core.state import State
from core.store.job import DelayedJob, Job, More, RunningJob
from core.store.queues import DONE, PUT, Queue


def done_all(state: State, operation: DoneAll, seed: int) -> Reply:
    """The jobs are finished."""
    replies: list[Reply] = []
    for number in operation.ids:
        job = state.stop(number)
        replies.append(NOT_FOUND if job is None else finish(state, job))
    return Results(tuple(replies))


def done_last(state: State, operation: DoneLast, seed: int) -> Reply:
    """The job is finished for good."""
    job = state.stop(operation.id)
    return NOT_FOUND if job is None else finish(state, job, last=True)


def later_all(state: State, operation: LaterAll, seed: int) -> Reply:
    """The jobs go to the tails of their priorities."""
    replies: list[Reply] = []
    for number in operation.ids:
        job = state.stop(number)
        if job is not None:
            put_back(state, job)
        replies.append(NOT_FOUND if job is None else ACCEPTED)
    return Results(tuple(replies))


def later_with(state: State, operation: LaterWith, seed: int) -> Reply:
    """The job goes back as the options say."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    put_back(state, job, operation)
    return ACCEPTED


def touch(state: State, operation: Touch, seed: int) -> Reply:
    """The lease counts from now. What follows its end stays as it was, unless the operation says so."""
    job = state.running.get(operation.id)
    if job is None:
        return NOT_FOUND
    lease_ms, then = job.lease_ms, job.then
    if operation.expire_ms is not None:
        lease_ms = min(operation.expire_ms, limits.DURATION_MS_MAX) if operation.expire_ms > 0 else None
        if operation.then is not Then.DEFAULT:
            then = operation.then
        elif job.deadline_ms is None:
            then = state.settings.expire_default
    deadline_ms = None if lease_ms is None else state.clock_ms + lease_ms
    state.swap(job, replace(job, deadline_ms=deadline_ms, then=then, graced=False))
    return Leased(deadline_ms)


def bury_(state: State, operation: Bury, seed: int) -> Reply:
    """The job is dead."""
    job = state.stop(operation.id)
    return NOT_FOUND if job is None else FINISHED[bury(state, job), False]


def kick_(state: State, operation: Kick, seed: int) -> Reply:
    """Dead jobs come back to their queue."""
    kicked = kick(state, operation.queue, min(operation.count, limits.PORTION_MAX))
    return Removed(kicked, kicked < operation.count and operation.queue in state.dead)


def move(state: State, operation: Move, seed: int) -> Reply:
    """The job is done here and waits there, with its item, key and tries."""
    job = state.running.get(operation.id)
    if job is None:
        return NOT_FOUND
    data = job.data if operation.data is None else operation.data
    refusal = shut(state, operation.queue, len(data))
    more = More() if job.more is None else job.more
    if refusal is None and more.key is not None and operation.queue != job.queue:
        refusal = JOB_EXISTS if key_taken(state, operation.queue, more.key) else None
    refusal = refusal or full(state, operation.queue)
    if refusal is not None:
        return refusal
    state.stop(job.id)
    state.queues.by_name[job.queue].counters[DONE] += 1
    queue = state.queues.open(operation.queue)
    more = More(more.key, more.tries)
    at_ms = None if operation.when is None else activate.moment(state, operation.when)
    rank = -job.priority if operation.priority is None else -operation.priority
    activate.place(
        state, queue, rank, state.new_seq(), data, job.item, 0, at_ms, None if more == More() else more, at_ms)
    queue.counters[PUT] += 1
    return FINISHED[state.close(job.queue, job.item)[0], False]


def _selected(state: State, selector: Selector) -> Job | DelayedJob | RunningJob | Reply:
    """The job that is meant, or why there is none."""
    if selector.id:
        return state.running.get(selector.id, NOT_FOUND)
    queue = state.queues.by_name.get(selector.queue)
    job = None if queue is None or queue.keys is None else queue.keys.get(selector.key)
    if job is None:
        return NOT_FOUND
    return JOB_RUNNING if isinstance(job, RunningJob) else job


def delete(state: State, operation: Delete, seed: int) -> Reply:
    """The job ends without being done."""
    job = _selected(state, operation.selector)
    if isinstance(job, RunningJob):
        state.stop(job.id)
    elif isinstance(job, Job):
        state.remove(state.queues.by_name[job.queue], job)
    elif isinstance(job, DelayedJob):
        _spend(state, job)
        state.undefer(state.queues.by_name[job.queue], job)
    else:
        return job
    return FINISHED[state.close(job.queue, job.item)]


def _spend(state: State, job: DelayedJob) -> None:
    """A job that waits for many items is much to do."""
    if job.more is not None:
        state.spent += limits.STEP * len(job.more.after)


def change(state: State, operation: Change, seed: int) -> Reply:
    """Other content, priority, item or time for a job."""
    job = _selected(state, operation.selector)
    if not isinstance(job, Job | DelayedJob | RunningJob):
        return job
    refusal = None if operation.data is None else too_large(state, job.queue, len(operation.data))
    if refusal is not None:
        return refusal
    data = job.data if operation.data is None else operation.data
    item = None if operation.no_item else job.item if operation.item is None else state.items.open(operation.item).name
    at_ms = job.at_ms if operation.when is None else activate.moment(state, operation.when)
    if isinstance(job, RunningJob):
        priority = job.priority if operation.priority is None else operation.priority
        state.swap(job, replace(job, priority=priority, data=data, item=item, at_ms=at_ms))
    else:
        queue = state.queues.by_name[job.queue]
        rank = job.rank if operation.priority is None else -operation.priority
        if isinstance(job, Job):
            _change_ready(state, queue, job, operation, replace(job, rank=rank, data=data, item=item, at_ms=at_ms))
        else:
            _spend(state, job)
            more = activate.awaiting(state, job)
            state.undefer(queue, job)
            # A job that becomes active gets a place behind the others, as it does when its time has come.
            waits = (more is not None and bool(more.after)) or (at_ms is not None and at_ms > state.clock_ms)
            seq = job.seq if waits else state.new_seq()
            activate.place(state, queue, rank, seq, data, item, job.attempts, at_ms, more, at_ms)
    if job.item is not None and job.item != item:
        state.close_item(job.item, job.queue)
    return ACCEPTED


def _change_ready(state: State, queue: Queue, job: Job, operation: Change, changed: Job) -> None:
    """It keeps its place among those of its priority, unless its time is another."""
    state.remove(queue, job)
    at_ms = changed.at_ms
    if operation.when is None or at_ms is None:
        state.add(queue, changed)
    elif at_ms <= state.clock_ms:
        in_time = queue.settings is not None and queue.settings.order is Order.TIME
        state.add(queue, replace(changed, when=at_ms) if in_time else changed)
    else:
        activate.place(state, queue, changed.rank, changed.seq, changed.data, changed.item, changed.attempts, at_ms,
                    changed.more, at_ms)
