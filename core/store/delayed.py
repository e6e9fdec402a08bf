"""DELAYED jobs in the order of their activation, and the items that they wait for (spec/state-machine 6).

Each queue keeps its DELAYED jobs in the order in which they become active; an index here has the first one of each
queue. One entry activates at most `portion` jobs of a queue and PORTION_MAX in all, so a hundred thousand jobs due in
the same second block nobody: the leader proposes Ticks until none is left.

A job that waits for items (PUT .. AFTER) has no due time yet. When an item is finished, the jobs that wait for it are
released, also in portions. A released job may still wait for its portion; an item that starts again meanwhile does not
hold it back again. Items and releases refer to these jobs by seq, and a seq is found without a search, however many
items were finished: each of a hundred thousand may release one job.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct, field
from sortedcontainers import SortedDict

from sockpqd.core import limits
from sockpqd.core.store.job import NEVER_MS, DelayedJob
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue
from sockpqd.core.store.timer_index import TimerIndex


class ItemRelease(Struct, gc=False, eq=False):
    """Jobs that waited for `item`, which has been finished; `number` is greater than those of earlier releases."""

    number: int
    item: str
    seqs: JobList[int] = field(default_factory=JobList)


class Outside(Protocol):
    """The DELAYED jobs outside memory (core/pages)."""

    def find(self, seq: int) -> DelayedJob | None:
        """The job of this seq, if it is outside memory; otherwise None."""


class Delays:
    """The queues with DELAYED jobs, and the items that jobs wait for."""

    __slots__ = ("_firsts", "_next_release", "_of_item", "by_seq", "dependents", "outside", "released")

    def __init__(self) -> None:
        self._firsts: TimerIndex[tuple[int, str]] = TimerIndex(limits.DUE_BITS)     # (due_ms of its first job, queue)
        self.by_seq: dict[int, DelayedJob] = {}                     # the DELAYED jobs in memory,
        self.outside: Outside | None = None                         # and those elsewhere, if there have been any
        self.dependents: dict[str, dict[int, None]] = {}            # seqs of those that wait for an item, by item
        self.released: SortedDict = SortedDict()                    # releases by number
        self._of_item: dict[str, dict[int, ItemRelease]] = {}           # the same by item
        self._next_release = 0

    def add(self, queue: Queue, job: DelayedJob) -> None:
        """Add `job` to the DELAYED jobs of `queue`."""
        delayed = queue.delayed
        if delayed is None:
            delayed = queue.delayed = JobList()
        delayed.add(job)
        self._index(queue)
        self.by_seq[job.seq] = job
        if job.due_ms == NEVER_MS and job.extras is not None:
            dependents = self.dependents
            for item in job.extras.after:
                seqs = dependents.get(item)
                if seqs is None:
                    seqs = dependents[item] = {}
                seqs[job.seq] = None

    def remove(self, queue: Queue, job: DelayedJob) -> list[ItemRelease]:
        """Remove `job` from the DELAYED jobs. Returns the releases it was part of: see `reinstate`."""
        assert queue.delayed is not None
        queue.delayed.remove(job)
        self._index(queue)
        del self.by_seq[job.seq]
        if job.due_ms != NEVER_MS or job.extras is None:
            return []
        found = [self._forget(item, job.seq) for item in job.extras.after]
        return [release for release in found if release is not None]

    def find(self, seq: int) -> DelayedJob | None:
        """The DELAYED job of this seq; None if there is none."""
        job = self.by_seq.get(seq)
        return self.outside.find(seq) if job is None and self.outside is not None else job

    def free(self, queue: Queue, job: DelayedJob, freed: DelayedJob) -> None:
        """Replace `job` by `freed`, which waits for one item less."""
        assert queue.delayed is not None
        queue.delayed.remove(job)
        queue.delayed.add(freed)
        self._index(queue)
        self.by_seq[job.seq] = freed

    def waits_for(self, item: str, seq: int) -> bool:
        """Return whether the job waits for the item, which is not finished."""
        seqs = self.dependents.get(item)
        return seqs is not None and seq in seqs

    def release(self, item: str) -> None:
        """Release the jobs that wait for `item`, which is finished."""
        seqs = self.dependents.pop(item, None)
        if seqs is not None:
            self.begin_release(item, JobList.of(sorted(seqs)))

    def begin_release(self, item: str, seqs: JobList[int]) -> ItemRelease:
        """Begin to release the jobs of these seqs, which wait for `item`, in order."""
        release = ItemRelease(self._next_release, item, seqs)
        self._next_release += 1
        self._list(release)
        return release

    def end_release(self, release: ItemRelease) -> None:
        """Remove a release that has no more jobs."""
        del self.released[release.number]
        of_item = self._of_item[release.item]
        del of_item[release.number]
        if not of_item:
            del self._of_item[release.item]

    def _list(self, release: ItemRelease) -> None:
        self.released[release.number] = release
        self._of_item.setdefault(release.item, {})[release.number] = release

    def reinstate(self, job: DelayedJob, releases: list[ItemRelease]) -> None:
        """Make a job that was just added back part of these releases again (undo.py)."""
        for release in releases:
            self._forget(release.item, job.seq)
            if release.number not in self.released:
                self._list(release)
            release.seqs.add(job.seq)

    def next_due_ms(self, clock_ms: int) -> int | None:
        """The time at which the next job becomes active, rounded up so that entries are rarer; None if never."""
        return clock_ms if self.released else self._firsts.next_due_ms()

    @property
    def first_ms(self) -> int:
        """The time at which the next job becomes active; beyond all times if none does."""
        return self._firsts.first_ms

    def due(self, clock_ms: int, queues_max: int) -> list[str]:
        """Names of the queues that have a due job, the earliest first."""
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

    def _forget(self, item: str, seq: int) -> ItemRelease | None:
        """Stop the job's wait for the item; returns the release it was part of, if any."""
        seqs = self.dependents.get(item)
        if seqs is not None and seq in seqs:
            del seqs[seq]
            if not seqs:
                del self.dependents[item]
            return None
        for release in list(self._of_item.get(item, {}).values()):
            if release.seqs.discard(seq):
                if not release.seqs.size:
                    self.end_release(release)
                return release
        return None
