"""Activation of jobs (spec/state-machine 6), by time or by finished items; the end of TTLs and of pauses."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.ops.jobs import Due, PutWith, Until
from sockpqd.core.ops.queues import EndState
from sockpqd.core.ops.replies import NOT_FOUND
from sockpqd.core.rules.items.cancel import end_removed, remove_cancelled
from sockpqd.core.rules.job_end import note_end
from sockpqd.core.rules.pause import end_pause, open_due
from sockpqd.core.rules.portion import Portion
from sockpqd.core.state import State
from sockpqd.core.store.items.dependents import ItemRelease, ItemTurn, Outcome
from sockpqd.core.store.job import NEVER_MS, DelayedJob, Extras, Job
from sockpqd.core.store.queues import TTL_ENDED, Queue


def moment(state: State, when: Due) -> int:
    """Return the replicated time, in milliseconds, that `when` denotes."""
    if when.at_ms is not None:
        return min(max(when.at_ms, 0), limits.NUMBER_MAX)
    return state.clock_ms + min(max(when.delay_ms, 0), limits.DURATION_MS_MAX)


def place(state: State, queue: Queue, job: Job, active_ms: int | None, *, replaces: bool = False) -> None:
    """Put a job into the queue: DELAYED while it waits for items or for its `at_ms`, otherwise READY.

    `active_ms`: the time from which it counts as active in a queue with ORDER TIME; None: now. `replaces`: a READY job.
    """
    if job.extras is not None and job.extras.after:
        state.defer(queue, job.delayed(NEVER_MS))
    elif job.at_ms is not None and job.at_ms > state.clock_ms:
        state.defer(queue, job.delayed(job.at_ms))
    else:
        state.make_ready(queue, job, active_ms, replaces=replaces)


def awaited_items(state: State, put: PutWith) -> tuple[str, ...]:
    """Return the items that a job put now has to wait for, each once; empty if it need not wait."""
    if not put.after:
        return ()
    by_name, until = state.items.by_name, put.until
    found = [item for name in dict.fromkeys(put.after) if (item := by_name.get(name)) is not None]
    if until is Until.FAILED and any(item.lost for item in found):
        return ()
    return tuple([item.name for item in found if until is not Until.END or not item.settled])


def never_comes(state: State, items: tuple[str, ...], until: Until) -> bool:
    """Return whether each of the items has ended without the failure for which a job would wait."""
    return until is Until.FAILED and bool(items) and not any(item in state.items.by_name for item in items)


def pass_time(state: State, left: int) -> int:
    """End TTLs and pauses, and activate DELAYED jobs that are due. With groups in use, at most `left` steps.

    Returns the number of steps that remain for other due work.
    """
    shared, clock_ms, delays = state.fair is not None, state.clock_ms, state.delays
    # Nearly always nothing is due, so this is checked before any call.
    if state.ttls.first_ms <= clock_ms:
        left -= _end_ttls_and_pauses(state, left if shared else limits.TTL_ENDS_MAX)
    if state.turned_items:
        release(state)
    if state.items.doomed:
        left -= remove_cancelled(state, left if shared else limits.PORTION_MAX)
        if state.turned_items:
            release(state)
    if delays.dependents.released:
        left -= _process_releases(state, left if shared else limits.PORTION_MAX)
    if delays.first_ms <= clock_ms:
        left -= _activate(state, left if shared else limits.PORTION_MAX)
    if state.queues.oldest is not None and state.queues.indexing:
        state.queues.grow_index()
    if state.fair is not None:
        state.fair.note_idle()
        left -= state.fair.forget(state.clock_ms, left)
        if state.fair.offers.tasks:
            left -= state.fair.offers.go_on(left)
    if state.groups.pauses.first_ms <= clock_ms or (
        state.fair is not None and state.fair.open.gates.windows.first_ms <= clock_ms
    ):
        left -= open_due(state, left if shared else limits.PORTION_MAX)
    return left if shared else limits.DUE_MAX


def _end_ttls_and_pauses(state: State, most: int) -> int:
    """End up to `most` TTLs of jobs and pauses of queues; returns how many.

    At least one; stops once records have taken PORTION_BYTES_MAX, as their data may have to be read from disk.
    """
    for ended in range(most):
        entry = state.ttls.first_due(state.clock_ms)
        if entry is None or (ended and state.spent >= limits.PORTION_BYTES_MAX):
            return ended
        due = entry[2]                  # a job, or the name of a paused queue
        if isinstance(due, str):
            paused = state.queues.find(due)
            assert paused is not None
            end_pause(state, paused)
            continue
        queue = state.queues.by_name[due.queue]
        queue.counters[TTL_ENDED] += 1
        state.events.tell("TTL", due.queue)
        state.remove(queue, due)
        note_end(state, due, queue.settings, EndState.EXPIRED)
        state.close(due.queue, due.item)
        if state.events.endings:
            state.end_operation()
    return most


def release(state: State) -> None:
    """Decide the fate of the jobs that wait for items affected by the last operation."""
    dependents, turned = state.delays.dependents, state.turned_items
    # These come first: the item may have ended in the same batch, or been settled before it ended.
    for name in [name for name, turn in turned if turn is ItemTurn.FAILED]:
        dependents.release(name, Until.FAILED, Outcome.AT_ONCE)
    for name in [name for name, turn in turned if turn is ItemTurn.CANCELLED]:
        dependents.release(name, Until.END, Outcome.MET)
        dependents.release(name, Until.DONE, Outcome.CANCELLED)
        dependents.release(name, Until.FAILED, Outcome.AT_ONCE)
    for name, _ in turned:
        item = state.items.by_name.get(name)
        if item is None or item.settled:
            dependents.release(name, Until.END, Outcome.MET)
        if item is None:                # it may have begun again in the same batch
            dependents.release(name, Until.DONE, Outcome.MET)
            dependents.release(name, Until.FAILED, Outcome.UNMET)
    turned.clear()


def _process_releases(state: State, most: int) -> int:
    """Settle up to `most` jobs whose items have reached a decision, in the order of the decisions; returns how many."""
    left = most
    dependents = state.delays.dependents
    while dependents.released and left:
        of_item: ItemRelease = dependents.released.peekitem(0)[1]
        while of_item.seqs.size and left:
            _settle(state, of_item)
            left -= 1
        if not of_item.seqs.size:
            dependents.end_release(of_item)
    return most - left


def _settle(state: State, of_item: ItemRelease) -> None:
    """Apply the item's decision to the first job of the release."""
    job = state.delays.by_seq[of_item.seqs.take_first()]
    assert job.extras is not None
    others = [name for name in job.extras.after if name != of_item.item]
    if of_item.outcome is Outcome.CANCELLED:
        _cancel(state, job)
        return
    if of_item.outcome is Outcome.UNMET and not others:
        _remove(state, job)
        return
    if of_item.outcome is Outcome.AT_ONCE:
        for name in others:
            state.delays.dependents.forget(name, of_item.until, job.seq)
        others = []
    _free(state, job, tuple(others))


def _free(state: State, job: DelayedJob, after: tuple[str, ...]) -> None:
    """Let the job wait only for these items, or only for its time."""
    queue = state.queues.by_name[job.queue]
    at_ms = state.clock_ms if job.at_ms is None else job.at_ms
    freed = replace(job, due_ms=NEVER_MS if after else at_ms, extras=_waiting_for(job.extras, after))
    state.delays.free(queue, job, freed)
    state.dependency_met(queue, job, freed)


def _remove(state: State, job: DelayedJob) -> None:
    """End a job that waited for a failure that did not happen; its item ends as usual, and no record is kept."""
    state.undefer(state.queues.by_name[job.queue], job)
    if job.seq in state.watches:
        state.tell_end(job.seq, NOT_FOUND)
    state.close(job.queue, job.item)
    if state.events.endings:
        state.end_operation()
    if state.turned_items:
        release(state)


def _cancel(state: State, job: DelayedJob) -> None:
    """Remove a job that waited for a cancelled item to be done; its own item then counts as cancelled."""
    state.undefer(state.queues.by_name[job.queue], job)
    if job.item is not None:
        item = state.items.by_name[job.item]
        state.count_cancelled(item)
        assert item.fate is not None
        item.fate.tainted = True
    end_removed(state, job, None)
    if state.events.endings:
        state.end_operation()
    if state.turned_items:
        release(state)


def _waiting_for(extras: Extras | None, after: tuple[str, ...]) -> Extras:
    """Return the extras of a job that waits for these items only."""
    assert extras is not None
    return replace(extras, after=after, until=extras.until if after else Until.DONE)


def without_released_items(state: State, job: DelayedJob) -> Extras | None:
    """Return the job's extras, without the items that have reached a decision but not released it yet."""
    extras = job.extras
    if extras is None or not extras.after:
        return extras
    wait = state.delays.dependents.wait
    return _waiting_for(extras, tuple([item for item in extras.after if wait(item, extras.until, job.seq)]))


def _activate(state: State, most: int) -> int:
    """Make due DELAYED jobs READY: a portion of each queue, up to `most` in all; returns how many.

    The data of a portion are limited too, because some nodes have to read them.
    """
    left = most
    all_together = Portion(most)
    for name in state.delays.due(state.clock_ms, most):
        queue = state.queues.by_name[name]
        portion = left if queue.settings is None else min(left, queue.settings.portion)
        while portion and queue.delayed is not None and queue.delayed.first.due_ms <= state.clock_ms:
            job = queue.delayed.first
            if not all_together.take(len(job.data)):
                return most - left
            state.undefer(queue, job)
            active_ms = job.at_ms if job.at_ms == job.due_ms else None      # otherwise it waited after a failed attempt
            state.make_ready(queue, job.ready(state.next_place(job)), active_ms)
            portion -= 1
            left -= 1
        if not left:
            break
    return most - left
