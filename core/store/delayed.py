"""DELAYED jobs: which becomes active next, and which waits for which items (spec/state-machine 6).

Each queue has its DELAYED jobs in the order in which they will become active; here the queues stand in the order of
their first ones. At most `portion` jobs of a queue become active with one entry, and PORTION_MAX in all, so that a
hundred thousand jobs due in the same second stop nobody: the leader proposes Ticks until none is left.

A job that waits for items (PUT .. AFTER) has no due time yet. When an item is finished, those that wait for it are
released, in portions too. So there may be a batch of jobs that nothing holds back but that their turn has not come; an
item that begins anew meanwhile does not hold them up. Items and releases know these jobs by their seqs, and where a seq
stands is found without a search, however many items were finished: each of a hundred thousand may release one job.
"""

from __future__ import annotations

from msgspec import Struct, field
from sortedcontainers import SortedDict, SortedList

from core.limits import DUE_BITS
from core.store.job import NEVER_MS, DelayedJob
from core.store.job_list import JobList
from core.store.queues import Queue


class Release(Struct, gc=False, eq=False):
    """Jobs that waited for `item`, which was finished meanwhile; `number` is greater than those of earlier ones."""

    number: int
    item: str
    seqs: JobList[int] = field(default_factory=JobList)


class Delays:
    """The queues that have DELAYED jobs, and the items that are waited for."""

    __slots__ = ("_firsts", "_next_release", "_of_item", "dependents", "released", "waiting")

    def __init__(self) -> None:
        self._firsts: SortedList = SortedList()                     # (due_ms of its first job, queue)
        self.waiting: dict[int, DelayedJob] = {}                    # the jobs that wait for items, by seq
        self.dependents: dict[str, dict[int, None]] = {}            # seqs of those that wait for an item, by item
        self.released: SortedDict = SortedDict()                    # releases by number
        self._of_item: dict[str, dict[int, Release]] = {}           # the same by item
        self._next_release = 0

    def add(self, queue: Queue, job: DelayedJob) -> None:
        """`job` is DELAYED in `queue` from now on."""
        delayed = queue.delayed
        if delayed is None:
            delayed = queue.delayed = JobList()
        delayed.add(job)
        self._file(queue)
        if job.due_ms == NEVER_MS and job.more is not None:
            self.waiting[job.seq] = job
            dependents = self.dependents
            for item in job.more.after:
                seqs = dependents.get(item)
                if seqs is None:
                    seqs = dependents[item] = {}
                seqs[job.seq] = None

    def remove(self, queue: Queue, job: DelayedJob) -> list[Release]:
        """It is no longer. Returns the releases among which it was: see `reinstate`."""
        assert queue.delayed is not None
        queue.delayed.remove(job)
        self._file(queue)
        if job.due_ms != NEVER_MS or job.more is None:
            return []
        del self.waiting[job.seq]
        found = [self._forget(item, job.seq) for item in job.more.after]
        return [release for release in found if release is not None]

    def free(self, queue: Queue, job: DelayedJob, freed: DelayedJob) -> None:
        """`freed` takes the place of the job, which waits for one item less."""
        assert queue.delayed is not None
        queue.delayed.remove(job)
        queue.delayed.add(freed)
        self._file(queue)
        if freed.due_ms == NEVER_MS:
            self.waiting[job.seq] = freed
        else:
            del self.waiting[job.seq]

    def waits_for(self, item: str, seq: int) -> bool:
        """Does the job wait for the item, which is not finished?"""
        seqs = self.dependents.get(item)
        return seqs is not None and seq in seqs

    def release(self, item: str) -> None:
        """`item` is finished."""
        seqs = self.dependents.pop(item, None)
        if seqs is not None:
            self.begin_release(item, JobList.of(sorted(seqs)))

    def begin_release(self, item: str, seqs: JobList[int]) -> Release:
        """The jobs of these seqs need not wait for `item` any more, when their turn comes."""
        release = Release(self._next_release, item, seqs)
        self._next_release += 1
        self._list(release)
        return release

    def end_release(self, release: Release) -> None:
        """It has no more jobs."""
        del self.released[release.number]
        of_item = self._of_item[release.item]
        del of_item[release.number]
        if not of_item:
            del self._of_item[release.item]

    def _list(self, release: Release) -> None:
        self.released[release.number] = release
        self._of_item.setdefault(release.item, {})[release.number] = release

    def reinstate(self, job: DelayedJob, releases: list[Release]) -> None:
        """The job, which has come back as if it waited for all its items, is among these releases again (undo.py)."""
        for release in releases:
            self._forget(release.item, job.seq)
            if release.number not in self.released:
                self._list(release)
            release.seqs.add(job.seq)

    def next_due_ms(self, clock_ms: int) -> int | None:
        """When a job becomes active next, rounded up so that not every millisecond brings an entry; None: never."""
        if self.released:
            return clock_ms
        if not self._firsts:
            return None
        due_ms: int = self._firsts[0][0]
        return (due_ms + (1 << DUE_BITS) - 1) >> DUE_BITS << DUE_BITS

    def due(self, clock_ms: int, queues_max: int) -> list[str]:
        """Names of the queues that have a job due, those with the earliest first."""
        names: list[str] = []
        for due_ms, name in self._firsts:
            if due_ms > clock_ms or len(names) == queues_max:
                break
            names.append(name)
        return names

    def _file(self, queue: Queue) -> None:
        delayed = queue.delayed
        first_ms = delayed[0].due_ms if delayed is not None and delayed.size else NEVER_MS
        if delayed is not None and not delayed.size:
            queue.delayed = None
        filed_ms = None if first_ms == NEVER_MS else first_ms
        if filed_ms != queue.filed_ms:
            if queue.filed_ms is not None:
                self._firsts.remove((queue.filed_ms, queue.name))
            queue.filed_ms = filed_ms
            if filed_ms is not None:
                self._firsts.add((filed_ms, queue.name))

    def _forget(self, item: str, seq: int) -> Release | None:
        """The job waits for `item` no more; returns the release in which it was, if it was in one."""
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
