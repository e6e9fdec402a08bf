"""Jobs that become active later (spec/state-machine 6): by their time, or after items; and when they do."""

from __future__ import annotations

from core import limits
from core.ops.jobs import When
from core.state import State
from core.store.delayed import Release
from core.store.job import NEVER_MS, DelayedJob, More, fading
from core.store.queues import FADED, Queue


def moment(state: State, when: When) -> int:
    """The replicated time that is meant."""
    if when.at_ms is not None:
        return min(max(when.at_ms, 0), limits.NUMBER_MAX)
    return state.clock_ms + min(max(when.delay_ms, 0), limits.DURATION_MS_MAX)


def place(
    state: State, queue: Queue, rank: int, seq: int, data: bytes, item: str | None,
    attempts: int, at_ms: int | None, more: More | None, active_ms: int | None,
) -> None:
    """A job comes into the queue: DELAYED while it waits for items or for `at_ms`, otherwise READY.

    `active_ms`: since when it counts as active in the order of time, None: since now.
    """
    if more is not None and more.after:
        due_ms = NEVER_MS
    elif at_ms is not None and at_ms > state.clock_ms:
        due_ms = at_ms
    else:
        state.wait(queue, rank, seq, data, item, attempts, at_ms, more, active_ms)
        return
    if item is not None:
        item = state.items.open(item).name
    if more is not None:
        more = fading(more, None)
    state.defer(queue, DelayedJob(due_ms, seq, rank, queue.name, data, item, attempts, at_ms, more))


def after(state: State, items: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the items that have an unfinished job."""
    return tuple(item for item in dict.fromkeys(items) if item in state.items.by_name)


def pass_time(state: State) -> None:
    """What time ends or begins, but leases and sessions: TTLs, and DELAYED jobs that become active."""
    for _ in range(limits.TTL_ENDS_MAX):
        job = state.fading.first(state.clock_ms)
        if job is None:
            break
        queue = state.queues.by_name[job.queue]
        queue.counters[FADED] += 1
        state.remove(queue, job)
        state.close(job.queue, job.item)
    if state.finished_items:
        release(state)
    _work_off(state)
    _activate(state)


def release(state: State) -> None:
    """Items were finished by the operation that was executed last: whoever waits for them need not any more."""
    for item in state.finished_items:
        if item not in state.items.by_name:     # it may have begun anew in the same batch
            state.delays.release(item)
    state.finished_items.clear()


def _work_off(state: State) -> None:
    """Jobs that were released: a portion of them, in the order in which their items were finished."""
    left = limits.PORTION_MAX
    released = state.delays.released
    while released and left:
        release: Release = released.peekitem(0)[1]
        while release.seqs.size and left:
            _free(state, release)
            left -= 1
        if not release.seqs.size:
            state.delays.end_release(release)


def _free(state: State, release: Release) -> None:
    """The first job of the release does not wait for its item any more."""
    job = state.delays.waiting[release.seqs.take_first()]
    queue, more = state.queues.by_name[job.queue], job.more
    assert more is not None
    more = _without(more, release.item)
    at_ms = state.clock_ms if job.at_ms is None else job.at_ms
    due_ms = NEVER_MS if more.after else at_ms
    freed = DelayedJob(due_ms, job.seq, job.rank, job.queue, job.data, job.item, job.attempts, job.at_ms, more)
    state.delays.free(queue, job, freed)
    if more.key is not None and queue.keys is not None:
        queue.keys[more.key] = freed


def _without(more: More, item: str) -> More:
    """The same without this item to wait for."""
    after = tuple([name for name in more.after if name != item])
    return More(more.key, more.tries, more.ttl_ms, None, more.every_ms, more.origin, after)


def awaiting(state: State, job: DelayedJob) -> More | None:
    """What few jobs have, of this one, without the items that are finished but whose release has not had its turn."""
    more = job.more
    if more is None or not more.after:
        return more
    items = tuple([item for item in more.after if state.delays.waits_for(item, job.seq)])
    return More(more.key, more.tries, more.ttl_ms, None, more.every_ms, more.origin, items)


def _activate(state: State) -> None:
    """DELAYED jobs whose time has come become READY: of each queue a portion, and PORTION_MAX in all."""
    left = limits.PORTION_MAX
    for name in state.delays.due(state.clock_ms, limits.PORTION_MAX):
        queue = state.queues.by_name[name]
        portion = left if queue.settings is None else min(left, queue.settings.portion)
        while portion and queue.delayed is not None and queue.delayed[0].due_ms <= state.clock_ms:
            job = queue.delayed[0]
            state.undefer(queue, job)
            state.wait(queue, job.rank, state.new_seq(), job.data, job.item, job.attempts, job.at_ms, job.more,
                       job.at_ms)
            portion -= 1
            left -= 1
        if not left:
            return
