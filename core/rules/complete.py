"""How a hand-out ends: the job is done, goes back, or is dead (spec/state-machine 8).

Everybody who has stopped a running job goes through here: DONE and LATER, leases and sessions that are over.
"""

from __future__ import annotations

from msgspec.structs import replace

from core import limits
from core.ops.jobs import LaterWith
from core.ops.queues import Order
from core.ops.replies import Rearmed, Reply
from core.rules import activate
from core.rules.admit import FINISHED
from core.state import State
from core.store.job import Job, More, RunningJob, fading
from core.store.queues import DEAD, DONE, LATER, PUT

DEAD_SUFFIX = "_dead"
NO_OPTIONS = LaterWith(0)


def finish(state: State, job: RunningJob, last: bool = False) -> Reply:
    """The stopped job is done. A periodic one will be active again, unless this was the `last` time."""
    state.queues.by_name[job.queue].counters[DONE] += 1
    more = job.more
    if more is not None:
        if more.every_ms is not None and more.origin is None and not last:
            return Rearmed(_rearm(state, job, more, more.every_ms))
        if more.key is not None:
            _keep(state, job.queue, more.key)
    return FINISHED[state.close(job.queue, job.item)]


def _rearm(state: State, job: RunningJob, more: More, every_ms: int) -> int:
    """The next activation: as many periods after the last one as it takes to lie in the future."""
    assert job.at_ms is not None
    next_ms = job.at_ms
    if next_ms <= state.clock_ms:       # otherwise a CHANGE has told the time
        next_ms += ((state.clock_ms - next_ms) // every_ms + 1) * every_ms
    queue = state.queues.by_name[job.queue]
    activate.place(state, queue, -job.priority, state.new_seq(), job.data, job.item, 0, next_ms, more, None)
    return next_ms


def _keep(state: State, queue: str, key: str) -> None:
    settings = state.queues.settings.get(queue)
    if settings is not None and settings.keep_ms:
        before_ms = state.kept.until_ms(queue, key)
        forgotten = state.kept.keep(queue, key, state.clock_ms + settings.keep_ms)
        if state.undo is not None:
            state.undo.kept(queue, key, before_ms, forgotten)


def put_back(state: State, job: RunningJob, options: LaterWith = NO_OPTIONS, *, expired: bool = False) -> None:
    """The stopped job goes back to its queue, or is dead when it has had all its attempts.

    `expired`: because its lease is over, which is counted by itself.
    """
    queue = state.queues.by_name[job.queue]
    queue.counters[LATER] += not expired
    if not options.yielded and _worn_out(state, job):
        bury(state, job)
        return
    at_ms, active_ms = job.at_ms, None
    if options.when is not None:
        at_ms = active_ms = activate.moment(state, options.when)
    if options.first:
        seq, active_ms = job.seq, job.when
    else:
        seq = state.new_seq()
    rank = -job.priority if options.priority is None else -options.priority
    attempts = job.attempts - options.yielded
    if job.more is None and (at_ms is None or at_ms <= state.clock_ms):     # nearly always
        state.wait(queue, rank, seq, job.data, job.item, attempts, at_ms, None, active_ms)
    else:
        activate.place(state, queue, rank, seq, job.data, job.item, attempts, at_ms, job.more, active_ms)


def undo_hand_out(state: State, job: RunningJob) -> None:
    """The stopped job goes back to where it was, as if it had never been handed out."""
    queue = state.queues.by_name[job.queue]
    when = job.when if queue.settings is not None and queue.settings.order is Order.TIME else 0
    state.add(queue, Job(-job.priority, when, job.seq, queue.name, job.data, job.item, job.attempts - 1, job.at_ms,
                         job.more))


def _worn_out(state: State, job: RunningJob) -> bool:
    """Has it had as many attempts as it may have? A dead job's own number does not count any more."""
    more = job.more
    tries = more.tries if more is not None and more.origin is None else None
    if tries is None:
        settings = state.queues.settings.get(job.queue)
        tries = 0 if settings is None else settings.tries
    return 0 < tries <= job.attempts


def bury(state: State, job: RunningJob) -> bool:
    """The stopped job is dead: it waits in the dead queue. Returns whether its queue is finished."""
    state.queues.by_name[job.queue].counters[DEAD] += 1
    settings = state.queues.settings.get(job.queue)
    name = None if settings is None else settings.dead
    if name is None:
        name = job.queue[: limits.NAME_CHARS_MAX - len(DEAD_SUFFIX)] + DEAD_SUFFIX
    queue = state.queues.open(name)
    more = job.more or More()
    key = None if queue.keys is not None and more.key in queue.keys else more.key
    dead = More(key, more.tries, None, None, more.every_ms, job.queue)
    state.wait(queue, -job.priority, state.new_seq(), job.data, job.item, job.attempts, None, dead)
    return state.close(job.queue, job.item)[0]


def kick(state: State, name: str, count: int) -> int:
    """The first `count` dead jobs that come from this queue go back to it; returns how many it were."""
    kicked = 0
    while kicked < count and name in state.dead:
        job = state.dead[name][0]
        assert job.more is not None
        state.remove(state.queues.by_name[job.queue], job)
        queue = state.queues.open(name)
        key = None if queue.keys is not None and job.more.key in queue.keys else job.more.key
        more: More | None = fading(replace(job.more, key=key, origin=None), None)
        state.wait(queue, job.rank, state.new_seq(), job.data, job.item, 0, _start(state, job), _or_none(more))
        queue.counters[PUT] += 1
        state.close(job.queue, job.item)
        kicked += 1
    return kicked


def _start(state: State, job: Job) -> int | None:
    """A periodic job counts from now again."""
    return None if job.more is None or job.more.every_ms is None else state.clock_ms


def _or_none(more: More | None) -> More | None:
    return None if more == More() else more
