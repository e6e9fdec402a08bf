"""Removes jobs without marking them as done, and whole queues with their jobs (spec/state-machine 10.2)."""

from __future__ import annotations

from collections.abc import Iterable

from sockpqd.core import limits
from sockpqd.core.ops.queues import JobState
from sockpqd.core.ops.replies import NOT_FOUND
from sockpqd.core.pages.grouped_ready import GroupedReady, own_jobs
from sockpqd.core.pages.paged_run import PagedRun
from sockpqd.core.pages.pages import Page
from sockpqd.core.rules.fair_choice import settle_spent
from sockpqd.core.rules.leave_dead import leave_dead
from sockpqd.core.rules.portion import Portion
from sockpqd.core.rules.pulses import drop_own_pulse
from sockpqd.core.state import State
from sockpqd.core.store.job import BuriedJob, DelayedJob, Job, first_taken
from sockpqd.core.store.queues import Queue

_Waiting = Job | DelayedJob | BuriedJob


def exists(state: State, name: str) -> bool:
    """Return whether anything can be deleted: settings, bindings, jobs of the queue or dead ones from it."""
    return state.queues.find(name) is not None or name in state.dead


def has_jobs(state: State, name: str) -> bool:
    """Return whether there are jobs of the queue, or dead ones that came from it."""
    queue = state.queues.find(name)
    return name in state.queues.by_name or name in state.dead or (queue is not None and queue.buried is not None)


class Chosen:
    """Jobs to be removed: single ones, and whole pages. `more`: there are more to remove."""

    __slots__ = ("_before_seq", "_jobs", "_pages", "_portion", "_queue", "_state", "more", "size")

    def __init__(self, state: State, queue: Queue | None, before_seq: int | None, jobs_max: int) -> None:
        self._state = state
        self._queue = queue
        self._before_seq = before_seq
        self._portion = Portion(jobs_max)
        self._jobs: dict[int, _Waiting] = {}
        self._pages: list[tuple[PagedRun, Page]] = []
        self.size = 0
        self.more = False

    def add(self, jobs: Iterable[_Waiting], *, read: bool) -> None:
        """Choose as many of these jobs as fit. `read`: some nodes may have to read them from disk to drop them."""
        before_seq, chosen = self._before_seq, self._jobs
        for job in jobs:
            if (before_seq is None or job.seq < before_seq) and job.seq not in chosen:
                if not self._portion.take(len(job.data) if read else 0):
                    self.more = True
                    return
                chosen[job.seq] = job
                self.size += 1

    def add_ready(self, queue: Queue) -> None:
        """Choose READY jobs of the queue: pages of which all jobs are chosen are not read.

        Exceptions: with many priorities the run of each job may be recorded; jobs of other groups, which come first,
        and jobs that ITEMLIMIT withholds lie among the others. The state does not show which nodes have to read, but it
        does show whether any may have to.
        """
        pages = None if self._state.pager is None else self._state.pager.pages
        if queue.blocked is not None and queue.blocked.size:
            self.add(queue.all_ready(), read=True)
            return
        if isinstance(queue.ready, GroupedReady):
            self.add(queue.ready.of_others(), read=True)
            if self.more:
                return
        own, read = own_jobs(queue), len(queue.ranks) > limits.SCANNED_RUNS_MAX // 2
        if pages is None or not pages.jobs:
            self.add(own, read=read)
            return
        for run in own.runs():
            if not isinstance(run, PagedRun) or not own.searches(run.first.rank):
                self.add((run,) if isinstance(run, Job) else run, read=read)
            else:
                self._add_run(queue, run, read=read)
            if self.more:
                return

    def _add_run(self, queue: Queue, run: PagedRun, *, read: bool) -> None:
        before_seq = self._before_seq
        for number, block in enumerate(run.blocks()):
            if isinstance(block, Page):
                whole = before_seq is None or block.seq < before_seq
                if whole and self._portion.take(block.data_bytes if read else 0, block.count):
                    self._pages.append((run, block))
                    self.size += block.count
                    continue
                block = run.open(number)        # of which only a part is chosen; the next portion finds it in memory
            self.add(block, read=read)
            # The jobs of a run are in the order of their seqs.
            if self.more or (before_seq is not None and block[-1].seq >= before_seq):
                return

    def drop(self) -> None:
        """End the chosen jobs.

        Pages come first, because the blocks behind the front of a run are read as soon as the front is gone.
        """
        if self._pages:
            assert self._queue is not None
            self._state.drop_pages(self._queue, self._pages)
        for job in self._jobs.values():
            if job.seq in self._state.watches:
                self._state.tell_end(job.seq, NOT_FOUND)
            drop(self._state, job)


def not_running(
    state: State, name: str, which: JobState | None, before_seq: int | None, jobs_max: int, *, own: bool = False,
) -> Chosen:
    """Choose a portion of the queue's jobs in this state (None: any but RUNNING), only those put before `before_seq`.

    `own`: excludes its dead jobs, which are in other queues.
    """
    queue = state.queues.find(name)
    chosen = Chosen(state, queue, before_seq, jobs_max)

    def asked(its_state: JobState) -> bool:
        return (which is None or which is its_state) and not chosen.more

    if queue is not None and asked(JobState.READY):
        chosen.add_ready(queue)
    if queue is not None and asked(JobState.DELAYED):
        chosen.add(queue.delayed or (), read=True)
    if asked(JobState.DEAD) and not own:
        chosen.add(state.dead.get(name, ()), read=False)
    if queue is not None and asked(JobState.BURIED):
        chosen.add(queue.buried or (), read=False)
    return chosen


def drop(state: State, job: Job | DelayedJob | BuriedJob) -> None:
    """End the job without marking it as done."""
    if isinstance(job, BuriedJob):
        state.unbury(job)
    elif isinstance(job, Job):
        state.remove(state.queues.by_name[job.queue], job)
    else:
        state.undefer(state.queues.by_name[job.queue], job)
    state.close(job.queue, job.item)


def drop_running(state: State, name: str, jobs_max: int, before_id: int | None = None) -> tuple[int, bool]:
    """End up to `jobs_max` running jobs of the queue without marking them as done, and notify their workers.

    Fewer if ranking their groups again takes PORTION_BYTES_MAX. `before_id`: only those handed out before this id.
    Returns how many were ended, and whether there are others.
    """
    queue = state.queues.by_name.get(name)
    taken = [] if queue is None else first_taken(queue, jobs_max + 1)
    if before_id is not None:
        taken = [number for number in taken if number < before_id]
    before, ended = settle_spent(state), 0
    for number in taken[:jobs_max]:
        running = state.stop(number)
        assert running is not None
        state.events.tell("CANCEL", name, number)
        if running.seq in state.watches:
            state.tell_end(running.seq, NOT_FOUND)
        state.close(name, running.item)
        ended += 1
        if settle_spent(state) - before >= limits.PORTION_BYTES_MAX:
            break
    return ended, len(taken) > ended


def remove_queue(state: State, name: str, jobs_max: int, *, leave: bool = False) -> tuple[int, bool]:
    """Remove up to `jobs_max` of the queue's jobs, then, if none is left, the queue itself.

    `leave`: its dead jobs stay where they are, and no longer belong to it. Returns how many jobs were removed or left,
    and whether the queue is gone.
    """
    chosen = not_running(state, name, None, None, jobs_max, own=leave)
    chosen.drop()
    removed = chosen.size
    if not chosen.more:
        running, more = drop_running(state, name, jobs_max - removed)
        removed += running
        if leave and not more:
            removed += leave_dead(state, name, jobs_max - removed)
    if has_jobs(state, name):
        return removed, False
    state.topics.drop_queue(name)
    state.queues.forget(name)
    drop_own_pulse(state, name)
    state.retained_keys.drop(name)
    state.remembered_keys.drop(name)
    state.records.drop(name)
    return removed, True
