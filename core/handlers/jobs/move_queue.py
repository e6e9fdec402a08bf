"""QUEUE MOVE: READY jobs of a queue go to another one, one of them or all in portions (spec/state-machine 9.5)."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.fair.group_by import group_in
from sockpqd.core.handlers.cluster.elsewhere import elsewhere
from sockpqd.core.handlers.cost import BASE_BYTES, JOB, JOB_WITH_EXTRAS, Cost, of_names
from sockpqd.core.ops import replies
from sockpqd.core.ops.queues import MoveJobs
from sockpqd.core.ops.replies import Moved, Reply
from sockpqd.core.rules.admit import (
    admitted,
    at_capacity,
    displaced,
    key_taken,
    new_counts,
    rejects_puts,
    ttl_ms,
)
from sockpqd.core.rules.items.cancel import is_cancelled, refused, remove
from sockpqd.core.rules.portion import Portion
from sockpqd.core.rules.remove_queue import exists
from sockpqd.core.state import State
from sockpqd.core.store.job import NO_EXTRAS, DelayedJob, Extras, Job, of_many, with_number
from sockpqd.core.store.queues import PUT, Queue
from sockpqd.core.store.ready import place_of

MOVED = JOB_WITH_EXTRAS + JOB       # the work of each job: it leaves one queue and comes into another


def move_jobs(state: State, operation: MoveJobs, seed: int) -> Reply:
    """Move a portion of the READY jobs, or of the dead ones from one queue among them, until one is refused."""
    if operation.seq is not None:
        return _move_one(state, operation, operation.seq)
    if operation.left is None and not exists(state, operation.queue):
        return replies.QUEUE_NOT_FOUND
    if operation.queue == operation.to:         # the gateway refuses this
        return Moved(0)
    left = _number(state, operation) if operation.left is None else operation.left
    portion, passed_max = Portion(max(0, min(operation.count, limits.PORTION_MAX))), limits.PORTION_MAX
    moved, behind = 0, operation.behind
    while left > 0 and passed_max and portion.jobs:
        job = _next(state, operation, behind)
        if job is None:
            left = 0
            break
        if job.queue != operation.queue:        # a dead job that lies in another queue
            behind, passed_max = place_of(job), passed_max - 1
        elif is_cancelled(state, job.item):
            remove(state, job)
            passed_max -= 1
        else:
            refusal = _refusal(state, operation.to, job)
            if refusal is not None:
                return Moved(moved, refusal=refusal)
            queue = state.queues.by_name.get(operation.to)
            leaving = None if queue is None else displaced(queue)
            if not portion.take(len(job.data) + (0 if leaving is None else len(leaving.data))):
                break
            _move(state, job, operation.to, leaving)
            moved += 1
        left -= 1
    if not left or moved >= operation.count:
        return Moved(moved)
    return Moved(moved, left, behind)


def _move_one(state: State, operation: MoveJobs, seq: int) -> Reply:
    """Move the READY job at this place."""
    job = state.waiting_at(operation.queue, seq)
    if not isinstance(job, Job) or operation.queue == operation.to:
        return replies.NOT_FOUND
    refusal = refused(state, job.item) or _refusal(state, operation.to, job)
    if refusal is not None:
        return refusal
    queue = state.queues.by_name.get(operation.to)
    _move(state, job, operation.to, None if queue is None else displaced(queue))
    return Moved(1)


def move_jobs_cost(operation: MoveJobs) -> Cost:
    """Return the bytes and work of a MoveJobs."""
    if operation.seq is not None:
        return BASE_BYTES + of_names(operation.queue, operation.to), MOVED + limits.SCANNED_RUNS_MAX
    count = limits.PORTION_MAX if operation.died is not None else max(0, min(operation.count, limits.PORTION_MAX))
    return BASE_BYTES + of_names(operation.queue, operation.to, operation.died), MOVED * count


def move_jobs_brings(state: State, operation: MoveJobs) -> tuple[str, ...]:
    """Return the queue to which the jobs go; later portions carry the number already moved."""
    return (operation.to,) if operation.left is None else ()


def _number(state: State, operation: MoveJobs) -> int:
    """Return the number of jobs to look at."""
    if operation.died is not None:
        return state.dead[operation.died].size if operation.died in state.dead else 0
    queue = state.queues.by_name.get(operation.queue)
    return 0 if queue is None else queue.ready_count


def _next(state: State, operation: MoveJobs, behind: tuple[int, int, int] | None) -> Job | None:
    """Return the next job to look at; None if there is none. Raises PageLost."""
    if operation.died is None:
        queue = state.queues.by_name.get(operation.queue)
        return None if queue is None else next(queue.all_ready(), None)
    dead = state.dead.get(operation.died)
    if dead is None or behind is None:
        return None if dead is None else dead.first
    return next(dead.behind(Job(*behind, "", b"", None, 0, None, None), place_of), None)


def _refusal(state: State, to: str, job: Job) -> Reply | None:
    """Return the reason why the queue does not take the job; None if it does."""
    refusal = elsewhere(state, (to,)) or rejects_puts(state, to, len(job.data))
    if refusal is not None:
        return refusal
    if job.extras is not None and job.extras.key is not None and key_taken(state, to, job.extras.key):
        return replies.JOB_EXISTS
    return at_capacity(state, to)


def _move(state: State, job: Job, to: str, leaving: Job | DelayedJob | None) -> None:
    """Move the job to the tail of its priority in the other queue, which may have to drop another job for it."""
    state.remove(state.queues.by_name[job.queue], job)
    queue = state.queues.get_or_create(to)
    extras = _as_put(queue, job)
    # A dead job no longer has a time, whatever a Change has set; a periodic one starts over.
    at_ms = None if job.extras is not None and job.extras.origin is not None else job.at_ms
    moved = replace(
        job,
        when=0,
        seq=state.next_place(job),
        queue=queue.name,
        attempts=0,
        at_ms=state.clock_ms if at_ms is None and extras.every_ms is not None else at_ms,
        extras=None if extras == NO_EXTRAS else of_many(extras),
    )
    state.make_ready(queue, moved)
    queue.counters[PUT] += 1
    state.events.tell("PUT", queue.name, -moved.rank)
    if queue.settings is not None:
        admitted(state, queue, leaving)
    state.close(job.queue, job.item)


def _as_put(queue: Queue, job: Job) -> Extras:
    """Return the extras of the job in the other queue.

    The options of its PUT, and the queue's defaults for a new job.
    """
    old = with_number(job.extras, job.seq) or NO_EXTRAS
    return replace(
        old,
        ttl_ms=ttl_ms(queue, None) if old.ttl_ms is None else old.ttl_ms,
        expires_at_ms=None,
        origin=None,
        reason=None,
        error=None,
        group=group_in(queue.settings, old.group, job.item, job.data, old.head),
        counts=new_counts(queue, number=False) if old.counts is None else replace(old.counts, died_ms=0),
    )
