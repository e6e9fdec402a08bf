"""Removes jobs without their being done, and whole queues with their jobs (spec/state-machine 10.2)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from core.ops.queues import JobState
from core.rules.pulses import drop_own_pulse
from core.state import State
from core.store.job import BuriedJob, DelayedJob, Job


def exists(state: State, name: str) -> bool:
    """Whether there is something to delete: settings, bindings, jobs of the queue or dead ones that came from it."""
    return state.queues.find(name) is not None or name in state.dead


def has_jobs(state: State, name: str) -> bool:
    """Whether there are jobs of the queue, or dead ones that came from it."""
    queue = state.queues.find(name)
    return name in state.queues.by_name or name in state.dead or (queue is not None and queue.buried is not None)


def not_running(
    state: State, name: str, which: JobState | None, before_seq: int | None, count: int | None,
) -> list[Job | DelayedJob | BuriedJob]:
    """The first `count` jobs of the queue in this state (None: any but RUNNING), only those put before `before_seq`."""
    queue = state.queues.find(name)
    jobs: dict[int, Job | DelayedJob | BuriedJob] = {}
    sources: list[tuple[JobState, Iterable[Job | DelayedJob | BuriedJob]]] = [
        (JobState.DEAD, state.dead.get(name, ())),
    ]
    if queue is not None:
        sources = [(JobState.READY, queue.all_ready()), (JobState.DELAYED, queue.delayed or ()), *sources,
                   (JobState.BURIED, queue.buried or ())]
    for its_state, source in sources:
        if which is None or which is its_state:
            found = (job for job in source if before_seq is None or job.seq < before_seq)
            jobs.update((job.seq, job) for job in islice(found, None if count is None else count - len(jobs)))
    return list(jobs.values())


def drop(state: State, job: Job | DelayedJob | BuriedJob) -> None:
    """The job ends."""
    if isinstance(job, BuriedJob):
        state.unbury(job)
    elif isinstance(job, Job):
        state.remove(state.queues.by_name[job.queue], job)
    else:
        state.undefer(state.queues.by_name[job.queue], job)
    state.close(job.queue, job.item)


def remove_queue(state: State, name: str, jobs_max: int) -> tuple[int, bool]:
    """Remove the jobs of the queue, `jobs_max` at most, then the queue itself.

    Returns how many jobs were removed, and whether the queue is gone.
    """
    jobs = not_running(state, name, None, None, jobs_max)
    for job in jobs:
        drop(state, job)
    queue = state.queues.by_name.get(name)
    taken = [] if queue is None else queue.first_taken(jobs_max - len(jobs))
    for number in taken:
        running = state.stop(number)
        assert running is not None
        state.close(name, running.item)
    removed = len(jobs) + len(taken)
    if has_jobs(state, name):
        return removed, False
    state.topics.drop_queue(name)
    state.queues.forget(name)
    drop_own_pulse(state, name)
    state.retained_keys.drop(name)
    return removed, True
