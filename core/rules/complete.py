"""The end of a hand-out: the job is done, goes back, or is dead (spec/state-machine 8).

Every running job that is stopped passes through here, whether by an operation or because its lease or session ended.
"""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.dead_letters import dead_queue_of
from sockpqd.core.fair.group_by import group_in
from sockpqd.core.ops.jobs import End, How
from sockpqd.core.ops.queues import EndState, Order
from sockpqd.core.ops.replies import FINISHED, Rearmed, Reply
from sockpqd.core.rules import activate
from sockpqd.core.rules.backoff import backoff_ms
from sockpqd.core.rules.items.cancel import end_if_cancelled, is_cancelled, remove
from sockpqd.core.rules.job_end import note_end
from sockpqd.core.state import State
from sockpqd.core.store.job import (
    BuriedJob,
    DelayedJob,
    Extras,
    Job,
    RunningJob,
    after_attempt,
    counted,
    delayed_by,
    expiring,
    is_numbered,
    time_in_order,
    with_error,
    with_number,
)
from sockpqd.core.store.queues import DEAD, DONE, LATER, PUT

NO_OPTIONS = End(0, How.LATER)
FIRST = End(0, How.LATER, first=True)
UNFINISHED = FINISHED[False, False]


def finish(
    state: State, job: RunningJob, last: bool = False, *, expired: bool = False, result: bytes = b"",
) -> Reply:
    """Finish a stopped job. A periodic one is scheduled again, unless this was the `last` time.

    `expired`: its lease has ended, which is an event of its own. `result`: kept in its record.
    """
    queue = state.queues.by_name[job.queue]
    queue.counters[DONE] += 1
    if not expired:
        events = state.events
        events.seq += 1
        if events.recorded:
            events.record("DONE", job.queue, job.priority, job.id)
    extras = job.extras
    if extras is not None:
        if extras.every_ms is not None and extras.origin is None and not last and not is_cancelled(state, job.item):
            return Rearmed(_rearm(state, job, extras.every_ms))
        if extras.key is not None:
            _retain_key(state, job.queue, extras.key)
    if queue.settings is not None or job.seq in state.watches:
        note_end(state, job, queue.settings, EndState.DONE, result)
    if job.item is not None:
        state.count_done(job.item)
    elif queue.taken or queue.ready.size:
        return UNFINISHED
    return FINISHED[state.close(job.queue, job.item)]


def _rearm(state: State, job: RunningJob, every_ms: int) -> int:
    """Schedule the job for its next time, the first multiple of its period in the future, and return that."""
    assert job.at_ms is not None
    next_ms = job.at_ms
    if next_ms <= state.clock_ms:       # otherwise a Change has set the time
        next_ms += ((state.clock_ms - next_ms) // every_ms + 1) * every_ms
    again = replace(
        job.ready(state.next_place(job), attempts=0, extras=with_error(after_attempt(job), None)), at_ms=next_ms,
    )
    activate.place(state, state.queues.by_name[job.queue], again, active_ms=None)
    return next_ms


def _retain_key(state: State, queue: str, key: str) -> None:
    settings = state.queues.settings.get(queue)
    if settings is not None and settings.keep_ms:
        before_ms = state.retained_keys.until_ms(queue, key)
        forgotten = state.retained_keys.retain(queue, key, state.clock_ms + settings.keep_ms)
        if state.undo is not None:
            state.undo.retained(queue, key, before_ms, forgotten)


def put_back(
    state: State, job: RunningJob, options: End = NO_OPTIONS, *, expired: bool = False, released: bool = True,
    failed: bool = True,
) -> None:
    """Put a stopped job back into its queue, or make it dead after its last attempt.

    `expired`: its lease has ended, which has a counter and an event of its own. `released`: its worker asked for it. A
    job put back at its old place with its old priority does not count as released, just as when its worker's session
    ends. `failed`: the attempt failed, so the BACKOFF of the queue applies, unless the options set the time of return.
    """
    if end_if_cancelled(state, job) is not None:
        return
    queue = state.queues.by_name[job.queue]
    worn_out = not options.yielded and _worn_out(state, job)
    wait_ms = 0
    if queue.settings is not None and queue.settings.backoff_ms and failed and not worn_out and not (
        options.first or options.yielded or options.when is not None
    ):
        wait_ms = backoff_ms(queue.settings, job.attempts, state.seed + job.id)
    unchanged = options.first and options.priority is None
    if released and not unchanged and not expired and is_numbered(job.extras):
        delay_ms = wait_ms if options.when is None else activate.moment(state, options.when) - state.clock_ms
        job = replace(job, extras=delayed_by(counted(job.extras, releases=1), delay_ms))
    elif wait_ms:
        job = replace(job, extras=delayed_by(job.extras, wait_ms))
    if options.reason is not None:
        job = replace(job, extras=replace(job.extras or Extras(), reason=options.reason))
    job = keep_error(state, job, options.text)
    queue.counters[LATER] += not expired
    priority = job.priority if options.priority is None or worn_out else options.priority
    if not expired:
        state.events.tell("LATER", job.queue, priority, job.id)
    if worn_out:
        bury(state, job)
        return
    at_ms, active_ms = job.at_ms, None
    if options.when is not None:
        at_ms = active_ms = activate.moment(state, options.when)
    attempts = job.attempts - options.yielded
    extras = after_attempt(job)
    if options.first:
        seq, active_ms = job.seq, job.when
        extras = replace(extras or Extras(), ready_ms=state.clock_ms)
    else:
        seq, extras = state.next_place(job), with_number(extras, job.seq)
    back = Job(-priority, 0, seq, queue.name, job.data, job.item, attempts, at_ms, extras)
    if wait_ms:         # the time it was put for stays; one that a Change has set may be later
        state.defer(queue, back.delayed(max(state.clock_ms + wait_ms, at_ms or 0)))
    elif job.extras is None and (at_ms is None or at_ms <= state.clock_ms):     # nearly always
        state.make_ready(queue, back, active_ms)
    else:
        activate.place(state, queue, back, active_ms)


def keep_error(state: State, job: RunningJob, text: bytes | None) -> RunningJob:
    """Store its worker's error text with the stopped job, in place of an earlier one; returns the job.

    Without a `text` the earlier one stays.
    """
    if text is None:
        return job
    number = None
    if text:
        number = state.new_seq()
        state.errors.add(number, state.held(text), job.queue)
    return replace(job, extras=with_error(job.extras, number))


def undo_hand_out(state: State, job: RunningJob) -> None:
    """Put a stopped job back at its old place, as if it had never been handed out, unless a Change gave it a time."""
    if end_if_cancelled(state, job) is not None:
        return
    queue = state.queues.by_name[job.queue]
    back = job.ready(job.seq, attempts=job.attempts - 1, extras=counted(job.extras, reserves=-1))
    if queue.settings is not None and queue.settings.order is Order.TIME:
        back = replace(back, when=time_in_order(back, job.when))
    if back.at_ms is not None and back.at_ms > state.clock_ms:
        state.defer(queue, back.delayed(back.at_ms))
    else:
        state.add(queue, back)


def _worn_out(state: State, job: RunningJob) -> bool:
    """Return whether the job has had its last attempt. For a dead job the tries of its Put no longer count."""
    extras = job.extras
    tries = extras.tries if extras is not None and extras.origin is None else None
    if tries is None:
        settings = state.queues.settings.get(job.queue)
        tries = 0 if settings is None else settings.tries
    return 0 < tries <= job.attempts


def bury(state: State, job: RunningJob, reason: str | None = None) -> bool:
    """Make the stopped job dead: move it to the dead queue. Returns whether its own queue is finished."""
    finished = end_if_cancelled(state, job)
    if finished is not None:
        return finished
    state.queues.by_name[job.queue].counters[DEAD] += 1
    settings = state.queues.settings.get(job.queue)
    name = None if settings is None else settings.dead
    if name is None:
        name = dead_queue_of(job.queue)
    state.events.tell("DEAD", job.queue, name, job.id)
    queue = state.queues.get_or_create(name)
    extras = counted(after_attempt(job), buries=1, died_ms=state.clock_ms) or Extras()
    extras = replace(
        extras,
        key=None if queue.keys is not None and extras.key in queue.keys else extras.key,
        ttl_ms=None,
        expires_at_ms=None,
        origin=job.queue,
        after=(),
        reason=reason or extras.reason,
        group=group_in(queue.settings, extras.group, job.item, job.data, extras.head),
    )
    dead = job.ready(state.next_place(job), attempts=job.attempts, extras=extras)
    state.make_ready(queue, replace(dead, queue=queue.name, at_ms=None))
    return state.close(job.queue, job.item)[0]


def bury_here(state: State, job: RunningJob, priority: int | None, reason: str | None) -> bool:
    """Make the stopped job BURIED in its queue. Returns whether the queue is finished."""
    finished = end_if_cancelled(state, job)
    if finished is not None:
        return finished
    queue = state.queues.by_name[job.queue]
    queue.counters[DEAD] += 1
    state.events.tell("DEAD", job.queue, job.queue, job.id)
    extras = counted(expiring(after_attempt(job), None), buries=1, died_ms=state.clock_ms)
    if reason is not None:
        extras = replace(extras or Extras(), reason=reason)
    rank = -job.priority if priority is None else -priority
    state.bury(BuriedJob(
        state.new_seq(), job.seq, rank, queue.name, job.data, job.item, job.attempts, job.at_ms, extras,
    ))
    return state.close(job.queue, job.item)[0]


def kick_buried(state: State, job: BuriedJob) -> None:
    """Make the BURIED job READY, with no attempt counted."""
    state.unbury(job)
    extras = _kicked(job.extras)
    again_ms = None if extras is None or extras.every_ms is None else state.clock_ms    # a periodic job starts over
    _ready_again(state, job.ready(state.next_place(job), 0, again_ms, unburied(state, job.queue, extras)))


def unburied(state: State, queue_name: str, extras: Extras | None) -> Extras | None:
    """Return the extras of a job that is no longer BURIED: without its key if another job of the queue now has it."""
    queue = state.queues.by_name.get(queue_name)
    if extras is None or extras.key is None or queue is None or queue.keys is None or extras.key not in queue.keys:
        return extras
    return replace(extras, key=None)


def kick_delayed(state: State, job: DelayedJob) -> None:
    """Make the DELAYED job READY as if it were due."""
    state.undefer(state.queues.by_name[job.queue], job)
    back = job.ready(state.next_place(job))
    back = replace(back, extras=with_error(counted(back.extras, kicks=1, died_ms=0), None))
    _ready_again(state, now_due(state, back))


def now_due(state: State, job: Job) -> Job:
    """Return the job with a future time removed."""
    return job if job.at_ms is None or job.at_ms <= state.clock_ms else replace(job, at_ms=state.clock_ms)


def _kicked(extras: Extras | None) -> Extras | None:
    extras = with_error(counted(extras, kicks=1, died_ms=0), None)
    if extras is None or extras.reason is None:
        return extras
    extras = replace(extras, reason=None)
    return None if extras == Extras() else extras


def _ready_again(state: State, job: Job) -> None:
    state.make_ready(state.queues.get_or_create(job.queue), job)
    state.events.tell("PUT", job.queue, -job.rank)


def kick(state: State, name: str, count: int) -> int:
    """Put the first `count` dead jobs that come from this queue back into it; returns the number moved."""
    kicked = removed = 0
    while kicked < count and name in state.dead and removed < limits.PORTION_MAX:
        job = state.dead[name][0]
        if is_cancelled(state, job.item):
            remove(state, job)
            removed += 1
        else:
            kick_dead(state, job)
            kicked += 1
    return kicked


def kick_lost(state: State, job: Job | BuriedJob) -> None:
    """Put the DEAD or BURIED job back into the queue in which it first died, with no attempt counted."""
    if isinstance(job, Job):
        kick_dead(state, job)
    elif job.extras is None or job.extras.origin is None:
        kick_buried(state, job)
    else:                               # it was buried where dead jobs of its queue lie
        state.unbury(job)
        _go_home(state, job.ready(job.seq, job.attempts, None, job.extras), job.extras.origin)


def kick_dead(state: State, job: Job) -> None:
    """Put the dead job back into the queue in which it died, with no attempt counted."""
    assert job.extras is not None
    assert job.extras.origin is not None
    state.remove(state.queues.by_name[job.queue], job)
    _go_home(state, job, job.extras.origin)


def _go_home(state: State, job: Job, name: str) -> None:
    """Put the job, which is in no list, into the queue of this name, in which it died."""
    assert job.extras is not None
    queue = state.queues.get_or_create(name)
    extras = replace(
        counted(job.extras, kicks=1, died_ms=0) or job.extras,
        key=None if queue.keys is not None and job.extras.key in queue.keys else job.extras.key,
        expires_at_ms=None,
        origin=None,
        reason=None,
        error=None,
        group=group_in(queue.settings, job.extras.group, job.item, job.data, job.extras.head),
    )
    back = replace(
        job,
        when=0,
        seq=state.next_place(job),
        queue=queue.name,
        attempts=0,
        at_ms=None if extras.every_ms is None else state.clock_ms,      # a periodic job starts over
        extras=None if extras == Extras() else extras,
    )
    state.make_ready(queue, back)
    queue.counters[PUT] += 1
    state.events.tell("PUT", name, -job.rank)
    state.close(job.queue, job.item)
