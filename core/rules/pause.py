"""Ends pauses of queues and of groups, and lets a group sleep (spec/state-machine 10, spec/fair 7)."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.fair.rates import ANY_QUEUE
from sockpqd.core.state import State
from sockpqd.core.store.job import RunningJob, group_of
from sockpqd.core.store.queues import Queue


def end_pause(state: State, queue: Queue) -> None:
    """Let the queue hand out jobs again, and remove settings that exist only for the pause. It must have settings."""
    settings = queue.settings
    assert settings is not None
    if settings.passing:
        state.queues.unset(queue)
    else:
        state.queues.configure(queue.name, replace(settings, paused_out=False, pause_ms=0, pause_ends_ms=0))
    if queue.ready.size and not queue.closed:
        state.effects.reopened[queue.name] = None
    if settings.paused_out and state.fair is not None and queue.name in state.queues.by_name:
        state.spent += limits.STEP // 8 * state.fair.offers.resumed(queue)


def open_due(state: State, most: int) -> int:
    """End pauses of groups, and open groups whose rate allows more again, up to `most` in all; returns how many."""
    left = most
    while left and (due := state.groups.pauses.first_due(state.clock_ms)) is not None:
        group = due[1]
        state.groups.end_pause(group)
        if state.fair is not None:
            state.fair.open.look_at(ANY_QUEUE, group, state.clock_ms)
        left -= 1
    if left and state.fair is not None and state.fair.open.gates.windows.first_ms <= state.clock_ms:
        left -= state.fair.open.pass_time(state.clock_ms, left)
    return most - left


def sleep_group(state: State, job: RunningJob, sleep_ms: int) -> None:
    """Let the group of a job that has just ended sleep in its queue, if the queue's settings allow that."""
    queue = state.queues.find(job.queue)
    if queue is None or queue.settings is None or not queue.settings.sleep_by_group or state.fair is None:
        return
    group, open_groups = group_of(job), state.fair.open
    if state.undo is not None:
        state.undo.slept(queue.name, group)
    sleep_ms = min(max(sleep_ms, 0), limits.DURATION_MS_MAX)
    open_groups.sleep(queue, group, state.clock_ms + sleep_ms, state.clock_ms)
