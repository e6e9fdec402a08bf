"""DELAYED jobs in the order of their activation, and the items that they wait for (spec/state-machine 6).

Each queue keeps its DELAYED jobs in the order in which they become active; an index here has the first such job of each
queue. One entry activates at most `portion` jobs of a queue and PORTION_MAX in all, so a hundred thousand jobs due in
the same second do not block other clients: the leader proposes Ticks until none is left.

A job that waits for items (PUT .. AFTER) has no due time yet (items/dependents.py).
"""

from __future__ import annotations

from typing import Protocol

from sockpqd.core import limits
from sockpqd.core.store.items.dependents import Dependents, ItemRelease
from sockpqd.core.store.job import NEVER_MS, DelayedJob
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue
from sockpqd.core.store.timer_index import TimerIndex


class Outside(Protocol):
    """The DELAYED jobs outside memory (core/pages)."""

    def find(self, seq: int) -> DelayedJob | None:
        """Return the job with this seq, if it is outside memory; otherwise None."""


class Delays:
    """The queues with DELAYED jobs, and the items that jobs wait for."""

    __slots__ = ("_firsts", "by_seq", "dependents", "outside")

    def __init__(self) -> None:
        self._firsts: TimerIndex[tuple[int, str]] = TimerIndex(limits.DUE_BITS)     # (due_ms of its first job, queue)
        self.by_seq: dict[int, DelayedJob] = {}                     # the DELAYED jobs in memory,
        self.outside: Outside | None = None                         # and those elsewhere, if there have been any
        self.dependents = Dependents()

    def add(self, queue: Queue, job: DelayedJob) -> None:
        """Add `job` to the DELAYED jobs of `queue`."""
        delayed = queue.delayed
        if delayed is None:
            delayed = queue.delayed = JobList()
        delayed.add(job)
        self._index(queue)
        self.by_seq[job.seq] = job
        if job.due_ms == NEVER_MS and job.extras is not None:
            self.dependents.add(job)

    def remove(self, queue: Queue, job: DelayedJob) -> list[ItemRelease]:
        """Remove `job` from the DELAYED jobs. Returns the releases it was part of."""
        assert queue.delayed is not None
        queue.delayed.remove(job)
        self._index(queue)
        del self.by_seq[job.seq]
        return self.dependents.remove(job) if job.due_ms == NEVER_MS else []

    def find(self, seq: int) -> DelayedJob | None:
        """Return the DELAYED job with this seq; None if there is none."""
        job = self.by_seq.get(seq)
        return self.outside.find(seq) if job is None and self.outside is not None else job

    def free(self, queue: Queue, job: DelayedJob, freed: DelayedJob) -> None:
        """Replace `job` by `freed`, which waits for fewer items."""
        assert queue.delayed is not None
        queue.delayed.remove(job)
        queue.delayed.add(freed)
        self._index(queue)
        self.by_seq[job.seq] = freed

    def next_due_ms(self, clock_ms: int) -> int | None:
        """Return the time at which the next job becomes active, rounded up to reduce entries; None: there is none."""
        return clock_ms if self.dependents.released else self._firsts.next_due_ms()

    @property
    def first_ms(self) -> int:
        """The time at which the next job becomes active; beyond all times if none does."""
        return self._firsts.first_ms

    def due(self, clock_ms: int, queues_max: int) -> list[str]:
        """Return the names of the queues that have a due job, the earliest first."""
        names: list[str] = []
        for due_ms, name in self._firsts:
            if due_ms > clock_ms or len(names) == queues_max:
                break
            names.append(name)
        return names

    def _index(self, queue: Queue) -> None:
        delayed = queue.delayed
        first_ms = delayed.first.due_ms if delayed is not None and delayed.size else NEVER_MS
        if delayed is not None and not delayed.size:
            queue.delayed = None
        next_ms = None if first_ms == NEVER_MS else first_ms
        if next_ms != queue.indexed_ms:
            if queue.indexed_ms is not None:
                self._firsts.remove((queue.indexed_ms, queue.name))
            queue.indexed_ms = next_ms
            if next_ms is not None:
                self._firsts.add((next_ms, queue.name))
