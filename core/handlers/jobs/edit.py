"""The operations that change a job, its lease or its queue (spec/state-machine 3.2, 7.3, 8.3, 9.1)."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.fair.group_by import group_in
from sockpqd.core.handlers.cost import BASE_BYTES, JOB, JOB_WITH_EXTRAS, Cost, of_ids, of_names, small
from sockpqd.core.handlers.jobs.finish import ran
from sockpqd.core.ops import jobs as ops
from sockpqd.core.ops import replies
from sockpqd.core.ops.jobs import Until
from sockpqd.core.ops.queues import EndState, Order
from sockpqd.core.ops.replies import ACCEPTED, FINISHED, NOT_FOUND, Reply
from sockpqd.core.rules import activate, complete
from sockpqd.core.rules.admit import (
    admitted,
    at_capacity,
    displaced,
    key_taken,
    new_counts,
    rejects_puts,
    too_large,
    ttl_ms,
)
from sockpqd.core.rules.expire import by_number
from sockpqd.core.rules.items.cancel import end_cancelled, is_cancelled, refused, remove
from sockpqd.core.rules.job_end import note_end, put_again, take_record
from sockpqd.core.rules.portion import Portion
from sockpqd.core.rules.pulses import result
from sockpqd.core.state import State
from sockpqd.core.store.body import Data, bytes_of
from sockpqd.core.store.items.dependents import Outcome
from sockpqd.core.store.job import (
    FLOATING,
    NEVER_MS,
    AnyJob,
    BuriedJob,
    DelayedJob,
    Extras,
    Job,
    RunningJob,
    after_attempt,
    head_of,
    of_many,
    time_in_order,
    with_head,
    with_number,
    without_body,
)
from sockpqd.core.store.queues import DELETED, DONE, PUT, Queue


def touch(state: State, operation: ops.Touch, seed: int) -> Reply:
    """Restart the lease of each job now. The action on expiry is unchanged unless the operation sets it.

    If the operation reports a running time, the group is charged for it.
    """
    ran_ms = None if operation.ran_ms is None else ran(operation.ran_ms)
    if isinstance(operation.ids, int):
        return _touch(state, operation.ids, operation, ran_ms)
    return replies.Results(tuple([_touch(state, number, operation, ran_ms) for number in operation.ids]))


def touch_cost(operation: ops.Touch) -> Cost:
    """Return the bytes and work of a Touch."""
    return small(operation) if isinstance(operation.ids, int) else of_ids(operation.ids)


def _touch(state: State, number: int, operation: ops.Touch, ran_ms: int | None) -> Reply:
    job = state.running.get(number)
    if job is None:
        return NOT_FOUND
    since_ms = job.since_ms
    if state.fair is not None or ran_ms is not None:
        state.charge(job, ran_ms)
        since_ms = state.clock_ms
    lease_ms, then = job.lease_ms, job.then
    if operation.expire_ms is not None:
        lease_ms = min(operation.expire_ms, limits.DURATION_MS_MAX) if operation.expire_ms > 0 else None
        if operation.then is not ops.Then.DEFAULT:
            then = operation.then
        elif job.deadline_ms is None:
            then = state.settings.expire_default
    deadline_ms = None if lease_ms is None else state.clock_ms + lease_ms
    touched = replace(job, deadline_ms=deadline_ms, then=then, graced=False, since_ms=since_ms)
    if operation.progress is not None:
        touched.progress = min(max(operation.progress, 0), limits.PROGRESS_MAX)
        if touched.progress != job.progress:
            state.events.tell("PROGRESS", job.queue, job.id, touched.progress)
    state.swap(job, touched)
    return replies.Leased(deadline_ms)


def change(state: State, operation: ops.Change, seed: int) -> Reply:
    """Replace the data of a job, or its priority, item or time."""
    job = _selected(state, operation.selector)
    if not isinstance(job, AnyJob):
        return job
    if operation.no_item or operation.item is not None:
        refusal = refused(state, job.item) or refused(state, operation.item)
        if refusal is not None:
            return refusal
    data, extras = job.data, job.extras
    if operation.data is not None or operation.headers is not None:
        refusal = too_large(state, job.queue, _data_bytes(job, operation))
        if refusal is not None:
            return refusal
        data, extras = _with_data(state, job, operation)
    item = None if operation.no_item else job.item if operation.item is None else state.items.open(operation.item).name
    at_ms = job.at_ms if operation.when is None else activate.moment(state, operation.when)
    if isinstance(job, RunningJob):
        priority = job.priority if operation.priority is None else operation.priority
        state.swap(job, replace(job, priority=priority, data=data, item=item, at_ms=at_ms, extras=extras))
    elif isinstance(job, BuriedJob):
        rank = job.rank if operation.priority is None else -operation.priority
        state.unbury(job)
        state.bury(replace(job, rank=rank, data=data, item=item, at_ms=at_ms, extras=extras))
    else:
        queue = state.queues.by_name[job.queue]
        rank = job.rank if operation.priority is None else -operation.priority
        if isinstance(job, Job):
            changed = replace(job, rank=rank, data=data, item=item, at_ms=at_ms, extras=extras)
            state.replace_ready(begins=True)
            _change_ready(state, queue, job, operation, changed)
            state.replace_ready(begins=False)
        else:
            _change_delayed(
                state, queue, job, operation,
                replace(job, rank=rank, data=data, item=item, at_ms=at_ms, extras=extras),
            )
    if job.item is not None and job.item != item:
        state.close_item(job.item, job.queue)
    return ACCEPTED


def _data_bytes(job: AnyJob, operation: ops.Change | ops.Move) -> int:
    """Return the size of the data that the job will have, with headers."""
    head = head_of(job)
    body_bytes = len(job.data) - head if operation.data is None else len(operation.data)
    return body_bytes + (head if operation.headers is None else len(operation.headers))


def _with_data(state: State, job: AnyJob, operation: ops.Change | ops.Move) -> tuple[Data, Extras | None]:
    """Return the data and the extras of the job with other headers, another body, or both. Raises PageLost."""
    headers, data, head = operation.headers, operation.data, head_of(job)
    if data is None or (headers is None and head):
        old = bytes_of(job.data)
        state.spent += len(old)
        headers = old[:head] if headers is None else headers
        data = old[head:] if data is None else data
    headers = headers or b""
    return state.held(headers + data if headers else data), with_head(without_body(job.extras), len(headers))


def _change_ready(
    state: State, queue: Queue, job: Job, operation: ops.Change,
    changed: Job,
) -> None:
    """Change a READY job. It keeps its place within its priority, unless its time changes."""
    state.remove(queue, job)
    at_ms = changed.at_ms
    if operation.when is None or at_ms is None:
        state.add(queue, changed)
    elif at_ms <= state.clock_ms:
        in_time = queue.settings is not None and queue.settings.order is Order.TIME
        state.add(queue, replace(changed, when=time_in_order(changed, at_ms)) if in_time else changed)
    else:
        state.defer(queue, changed.delayed(at_ms))


def _change_delayed(
    state: State, queue: Queue, job: DelayedJob, operation: ops.Change, changed: DelayedJob,
) -> None:
    """Change a DELAYED job. If that makes it READY, it goes to the tail, as it would when due."""
    _spend(state, job)
    decisions = state.delays.dependents.decisions(job)
    cancelled = any(decision.outcome is Outcome.CANCELLED for decision in decisions)
    if decisions and job.extras is not None and (cancelled or job.extras.until is Until.FAILED):
        state.undefer(queue, job)
        state.defer(queue, changed)
        state.delays.dependents.reinstate(changed, decisions)       # it becomes READY or is removed soon
        return
    extras = activate.without_released_items(state, job)
    if changed.extras is None or changed.extras.body is None:
        extras = without_body(extras)
    extras = with_head(extras, head_of(changed))
    state.undefer(queue, job)
    if operation.when is None and state.clock_ms < job.due_ms < NEVER_MS:
        state.defer(queue, replace(changed, extras=extras))     # it may wait longer than it was put for (BACKOFF)
        return
    at_ms = changed.at_ms
    waits = (extras is not None and bool(extras.after)) or (at_ms is not None and at_ms > state.clock_ms)
    seq = job.seq if waits else state.next_place(job)
    activate.place(state, queue, replace(changed, extras=extras).ready(seq), active_ms=at_ms)


def change_cost(operation: ops.Change) -> Cost:
    """Return the bytes and work of a Change."""
    size, work = _selected_cost(operation.selector)
    return size + of_names(operation.item) + len(operation.data or b"") + len(operation.headers or b""), work


def delete(state: State, operation: ops.Delete, seed: int) -> Reply:
    """Remove the job without marking it as done, or remove the record of an ended job."""
    if operation.ended:
        return FINISHED[False, False] if take_record(state, operation.selector) else NOT_FOUND
    job = _selected(state, operation.selector)
    if isinstance(job, RunningJob) and operation.unless_running:
        return replies.JOB_RUNNING
    if isinstance(job, RunningJob):
        state.stop(job.id)
        if not operation.own:
            state.events.tell("CANCEL", job.queue, job.id)
    elif isinstance(job, Job):
        state.remove(state.queues.by_name[job.queue], job)
    elif isinstance(job, DelayedJob):
        _spend(state, job)
        state.undefer(state.queues.by_name[job.queue], job)
    elif isinstance(job, BuriedJob):
        state.unbury(job)
    else:
        return job
    queue = state.queues.find(job.queue)
    if queue is not None:
        queue.counters[DELETED] += 1
    note_end(state, job, None if queue is None else queue.settings, EndState.CANCELLED)
    if isinstance(job, BuriedJob):          # it was not unfinished, so it cannot finish its queue
        return FINISHED[False, state.close(job.queue, job.item)[1]]
    return FINISHED[state.close(job.queue, job.item)]


def delete_cost(operation: ops.Delete) -> Cost:
    """Return the bytes and work of a Delete."""
    size, work = _selected_cost(operation.selector)
    return size, work + limits.RECORD_WORK if operation.ended else work


def _selected_cost(selector: ops.AnySelector) -> Cost:
    """Return the bytes and work of finding the job."""
    if isinstance(selector, ops.Selector):
        return BASE_BYTES + of_names(selector.queue, selector.key), JOB_WITH_EXTRAS
    if isinstance(selector, ops.Place):
        return BASE_BYTES + of_names(selector.queue), JOB_WITH_EXTRAS + limits.SCANNED_RUNS_MAX
    return BASE_BYTES, JOB_WITH_EXTRAS


def move_brings(state: State, operation: ops.Move) -> tuple[str, ...]:
    """Return the destination queue of a Move."""
    return (operation.queue,)


def move(state: State, operation: ops.Move, seed: int) -> Reply:
    """End a running job and put it into another queue, with its item, key and tries."""
    job = state.running.get(operation.id)
    if job is None:
        return NOT_FOUND
    refusal = rejects_puts(state, operation.queue, _data_bytes(job, operation))
    extras = Extras() if job.extras is None else job.extras
    if refusal is None and extras.key is not None and operation.queue != job.queue:
        refusal = replies.JOB_EXISTS if key_taken(state, operation.queue, extras.key) else None
    refusal = refusal or at_capacity(state, operation.queue)
    if refusal is not None:
        return refusal
    data = job.data
    if operation.data is not None or operation.headers is not None:
        data, changed = _with_data(state, job, operation)
        extras = Extras() if changed is None else changed
    if refused(state, job.item) is not None:            # it stays where it is
        state.stop(job.id)
        result(state, job, ops.Feedback.OK)
        return FINISHED[end_cancelled(state, job), False]
    counts = None if (past := with_number(after_attempt(job), job.seq)) is None else past.counts
    state.stop(job.id)
    result(state, job, ops.Feedback.OK)
    state.queues.by_name[job.queue].counters[DONE] += 1
    state.events.tell("DONE", job.queue, job.priority, job.id)
    queue = state.queues.get_or_create(operation.queue)
    leaving = None if queue.settings is None else displaced(queue)
    extras = Extras(
        key=extras.key, tries=extras.tries, group=group_in(queue.settings, extras.group, job.item, data, extras.head),
        ttl_ms=ttl_ms(queue, None), body=extras.body,
        lease_ms=extras.lease_ms, head=extras.head,
        counts=new_counts(queue, number=False) if counts is None else replace(counts, died_ms=0),
    )
    at_ms = None if operation.when is None else activate.moment(state, operation.when)
    moved = Job(
        rank=-job.priority if operation.priority is None else -operation.priority,
        when=0,
        seq=state.next_place(job),
        queue=queue.name,
        data=data,
        item=job.item,
        attempts=0,
        at_ms=at_ms,
        extras=None if extras == Extras() else of_many(extras) if extras.head or extras.counts is FLOATING else extras,
    )
    activate.place(state, queue, moved, active_ms=at_ms)
    queue.counters[PUT] += 1
    state.events.tell("PUT", queue.name, -moved.rank)
    if queue.settings is not None:
        admitted(state, queue, leaving)
    return FINISHED[state.close(job.queue, job.item)[0], False]


def move_cost(operation: ops.Move) -> Cost:
    """Return the bytes and work of a Move."""
    data_bytes = len(operation.data or b"") + len(operation.headers or b"")
    return BASE_BYTES + of_names(operation.queue) + data_bytes, JOB_WITH_EXTRAS


def kick(state: State, operation: ops.Kick, seed: int) -> Reply:
    """Put dead jobs back into the queue in which they died, or make BURIED or DELAYED jobs READY, many or one."""
    if operation.selector is not None:
        if operation.ended:
            return NOT_FOUND if isinstance(operation.selector, ops.Place) else _kick_ended(state, operation.selector)
        return _kick_selected(state, operation.selector)
    if operation.here:
        return _kick_here(state, operation)
    kicked = complete.kick(state, operation.queue, min(operation.count, limits.PORTION_MAX))
    return replies.Removed(kicked, kicked < operation.count and operation.queue in state.dead)


def kick_cost(operation: ops.Kick) -> Cost:
    """Return the bytes and work of a Kick."""
    if operation.selector is not None:
        return BASE_BYTES, JOB_WITH_EXTRAS + limits.RECORD_WORK if operation.ended else JOB_WITH_EXTRAS
    count = max(0, min(operation.count, limits.PORTION_MAX))
    return BASE_BYTES + of_names(operation.queue), (JOB_WITH_EXTRAS if operation.here else JOB) * count


def _kick_here(state: State, operation: ops.Kick) -> Reply:
    """Make jobs of the queue READY: the BURIED ones or, if there are none, DELAYED ones."""
    portion = Portion(max(0, min(operation.count, limits.PORTION_MAX)))
    queue = state.queues.find(operation.queue)
    buried = operation.buried
    if buried is None:
        buried = queue is not None and queue.buried is not None
    kicked, passed = 0, Portion(limits.PORTION_MAX)
    while queue is not None:
        job = _first_to_kick(queue, buried=buried)
        if job is None:
            break
        if is_cancelled(state, job.item):
            if not portion.jobs or not passed.take(len(job.data)):
                break
            remove(state, job)
        elif portion.take(len(job.data)):
            _kick(state, job)
            kicked += 1
        else:
            break
        queue = state.queues.find(operation.queue)
    more = kicked < operation.count and queue is not None and _first_to_kick(queue, buried=buried) is not None
    return replies.Removed(kicked, more, buried)


def _first_to_kick(queue: Queue, *, buried: bool) -> BuriedJob | DelayedJob | None:
    jobs = queue.buried if buried else queue.delayed
    job = None if jobs is None else jobs.first
    return None if isinstance(job, DelayedJob) and job.due_ms == NEVER_MS else job


def _kick(state: State, job: BuriedJob | DelayedJob) -> None:
    if isinstance(job, BuriedJob):
        complete.kick_buried(state, job)
    else:
        complete.kick_delayed(state, job)


def _kick_selected(state: State, selector: ops.Number | ops.Place) -> Reply:
    """Make one BURIED or DELAYED job READY, or put a DEAD one back into the queue in which it died."""
    job = _selected(state, selector)
    if isinstance(job, Job):
        kicked = isinstance(selector, ops.Place) and job.extras is not None and job.extras.origin is not None
    else:
        kicked = isinstance(job, BuriedJob) or (isinstance(job, DelayedJob) and job.due_ms != NEVER_MS)
    if not kicked:
        return NOT_FOUND
    assert isinstance(job, Job | BuriedJob | DelayedJob)
    refusal = refused(state, job.item)
    if refusal is not None:
        return refusal
    if isinstance(job, Job):
        complete.kick_dead(state, job)
    else:
        _kick(state, job)
    return replies.Removed(1)


def _kick_ended(state: State, selector: ops.Number) -> Reply:
    """Make an ended job READY again as it was put, and remove its record."""
    if state.items.cancelled and state.numbered(selector.number) is None:
        known = state.records.find(selector.number, state.clock_ms)
        refusal = None if known is None else refused(state, known.record.item)
        if refusal is not None:
            return refusal
    found = take_record(state, selector)
    if found is None:
        return NOT_FOUND
    put_again(state, found)
    return replies.Removed(1)


def _selected(state: State, selector: ops.AnySelector) -> AnyJob | Reply:
    """Return the selected job, or a refusal if it does not exist or may not be changed."""
    if isinstance(selector, ops.Place):
        return state.waiting_at(selector.queue, selector.seq) or NOT_FOUND
    if isinstance(selector, ops.Number):
        return by_number(state, selector.number) or NOT_FOUND
    if selector.id:
        return state.running.get(selector.id, NOT_FOUND)
    queue = state.queues.by_name.get(selector.queue)
    job = None if queue is None or queue.keys is None else queue.keys.get(selector.key)
    if job is None:
        return NOT_FOUND
    return replies.JOB_RUNNING if isinstance(job, RunningJob) else job


def _spend(state: State, job: DelayedJob) -> None:
    """Count the work of making a DELAYED job READY, which may wait for many items."""
    if job.extras is not None:
        state.spent += limits.STEP * len(job.extras.after)
