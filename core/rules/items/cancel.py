"""ITEM CANCEL: the item is marked; jobs that are not running are removed in portions, running ones when they end.

Nothing of a cancelled item is handed out: a queue in which it has READY jobs hands out nothing until these are removed
(Queue.withheld), which begins with the next entry.
"""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.ops.jobs import Put
from sockpqd.core.ops.queues import EndState
from sockpqd.core.ops.replies import ITEM_CANCELLED, Reply
from sockpqd.core.rules.job_end import note_end
from sockpqd.core.state import State
from sockpqd.core.store.items.item import Fate, Item
from sockpqd.core.store.job import AnyJob, BuriedJob, DelayedJob, Extras, Job, RunningJob
from sockpqd.core.store.queues import DELETED


def is_cancelled(state: State, item: str | None) -> bool:
    """Return whether there is an item of this name that is cancelled and has not ended."""
    return item is not None and item in state.items.cancelled


def refused(state: State, item: str | None) -> Reply | None:
    """Return the refusal to add a job to this item, or to move one out of it, if it is cancelled."""
    return ITEM_CANCELLED if is_cancelled(state, item) else None


def refused_put(state: State, put: Put) -> Reply | None:
    """Return the refusal of a Put to a cancelled item."""
    return None if put.new_item else refused(state, put.item)


def cancel(state: State, item: Item, reason: str | None) -> None:
    """Cancel the item, unless it is cancelled already, and notify the clients that run its jobs.

    The caller ends it if it has neither a job nor a hold.
    """
    if is_cancelled(state, item.name):
        return
    item.fate = item.fate or Fate()
    item.fate.cancelling, item.fate.reason = True, reason
    state.items.mark(item)
    state.effects.cancel_item(item.name)
    if not state.events.hears("CANCEL"):
        state.events.count(sum([one.running for one in item.by_queue.values()]))
        return                          # without a look at all that runs in these queues
    words = () if reason is None else (reason,)
    by_name = state.queues.by_name
    taken = [number for name, one in item.by_queue.items() if one.running for number in by_name[name].taken]
    for number in sorted([number for number in taken if state.running[number].item == item.name]):
        state.events.tell("CANCEL", state.running[number].queue, number, *words)


def cancel_work(state: State, name: str) -> int:
    """Return the work of cancelling this item, which inspects its queues and the running jobs there."""
    item = state.items.by_name.get(name)
    if item is None:
        return 0
    by_name = state.queues.by_name
    running = sum([len(by_name[queue].taken) for queue, one in item.by_queue.items() if one.running])
    return len(item.by_queue) + running // 4


def remove_cancelled(state: State, most: int) -> int:
    """Remove up to `most` jobs of cancelled items that are not running, items by name; returns how many."""
    doomed, removed = state.items.doomed, 0
    while doomed and removed < most and (not removed or state.spent < limits.PORTION_BYTES_MAX):
        item = state.items.by_name[doomed[0]]
        job = _next(item)
        if job is None:
            doomed.remove(item.name)
            continue
        remove(state, job)
        removed += 1
    return removed


def any_to_remove(state: State) -> bool:
    """Return whether a cancelled item has a job that is not running."""
    return any(_next(state.items.by_name[name]) is not None for name in state.items.doomed)


def _next(item: Item) -> Job | DelayedJob | BuriedJob | None:
    if item.nonempty:
        return item.by_queue[item.nonempty[0]].ready.first
    if item.delayed is not None:
        return item.delayed.first
    return None if item.buried is None else item.buried.first


def remove(state: State, job: Job | DelayedJob | BuriedJob) -> None:
    """Remove a job of a cancelled item that is not running."""
    if isinstance(job, Job):
        state.remove(state.queues.by_name[job.queue], job)
    elif isinstance(job, DelayedJob):
        state.undefer(state.queues.by_name[job.queue], job)
    else:
        state.unbury(job)
    end_cancelled(state, job)
    if state.events.endings:
        state.end_operation()


def end_cancelled(state: State, job: AnyJob) -> bool:
    """End a job of a cancelled item, which is no longer in any list; returns whether its queue is finished."""
    assert job.item is not None
    item = state.items.by_name[job.item]
    assert item.fate is not None
    state.count_cancelled(item)
    return end_removed(state, job, item.fate.reason)


def end_removed(state: State, job: AnyJob, reason: str | None) -> bool:
    """End a job of a cancelled item, or one waiting for that item; returns whether its queue is finished."""
    if reason is not None:
        job = replace(job, extras=replace(job.extras or Extras(), reason=reason))
    queue = state.queues.find(job.queue)
    if queue is not None:
        queue.counters[DELETED] += 1
    note_end(state, job, None if queue is None else queue.settings, EndState.CANCELLED)
    finished = state.close(job.queue, job.item)[0]
    return finished and not isinstance(job, BuriedJob)


def end_if_cancelled(state: State, job: RunningJob) -> bool | None:
    """End a stopped job if its item is cancelled, as it must not return; returns whether its queue is finished.

    None: the item is not cancelled, and nothing was done.
    """
    return end_cancelled(state, job) if is_cancelled(state, job.item) else None
