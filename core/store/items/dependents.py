"""The DELAYED jobs that wait for items (PUT .. AFTER), and those for which items have decided (spec/state-machine 6).

When an event of an item decides the fate of the jobs that wait for it, these become part of a release, which is
processed in portions. A decision is final: if the item starts again in the meantime, it does not hold them back again.
Jobs are named by their seqs and found without a search, as each of a hundred thousand finished items may release one
job.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct, field
from sortedcontainers import SortedDict

from sockpqd.core.ops.jobs import Until
from sockpqd.core.store.job import DelayedJob
from sockpqd.core.store.job_list import JobList


class ItemTurn(IntEnum):
    """An event of an item in the last operation."""

    ENDED = 0           # it has ended, or has no job but DEAD and BURIED ones
    FAILED = 1          # it has its first DEAD or BURIED job
    CANCELLED = 2       # it has ended and is, or counts as, cancelled


class Outcome(IntEnum):
    """The decision of an item about the jobs that wait for it."""

    MET = 0         # they wait for this item no longer
    UNMET = 1       # the same; a job that waits for no other item is removed
    AT_ONCE = 2     # they wait for no item any longer
    CANCELLED = 3   # they are removed


class ItemRelease(Struct, gc=False, eq=False):
    """Jobs for which `item` has decided; `number` is greater than those of earlier releases."""

    number: int
    item: str
    until: Until
    outcome: Outcome
    seqs: JobList[int] = field(default_factory=JobList)


class Dependents:
    """The seqs of waiting jobs, by the item and event for which they wait, and the releases."""

    __slots__ = ("_next_release", "_of_item", "released", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[tuple[str, Until], dict[int, None]] = {}
        self.released: SortedDict = SortedDict()                                # releases by number
        self._of_item: dict[str, dict[int, ItemRelease]] = {}                   # the same by item
        self._next_release = 0

    def add(self, job: DelayedJob) -> None:
        """Let `job` wait for its items."""
        assert job.extras is not None
        waiting, until = self.waiting, job.extras.until
        for item in job.extras.after:
            seqs = waiting.get((item, until))
            if seqs is None:
                seqs = waiting[item, until] = {}
            seqs[job.seq] = None

    def count(self, item: str) -> int:
        """Return the number of jobs that still wait for the item."""
        return sum(len(self.waiting.get((item, until), ())) for until in Until)

    def wait(self, item: str, until: Until, seq: int) -> bool:
        """Return whether the job waits for the item, which has not reached a decision."""
        return seq in self.waiting.get((item, until), ())

    def release(self, item: str, until: Until, outcome: Outcome) -> None:
        """Release the jobs that wait for this event of the item, with the decision `outcome`."""
        seqs = self.waiting.pop((item, until), None)
        if seqs is not None:
            self.begin_release(item, until, outcome, JobList.of(sorted(seqs)))

    def begin_release(self, item: str, until: Until, outcome: Outcome, seqs: JobList[int]) -> ItemRelease:
        """Begin to release the jobs with these seqs, which have waited for `item`, in order."""
        release = ItemRelease(self._next_release, item, until, outcome, seqs)
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
        """Return a job that was just added back to these releases (undo.py)."""
        for release in releases:
            self.forget(release.item, release.until, job.seq)
            if release.number not in self.released:
                self._list(release)
            release.seqs.add(job.seq)

    def remove(self, job: DelayedJob) -> list[ItemRelease]:
        """End all waits of `job`. Returns the releases it was part of: see `reinstate`."""
        if job.extras is None:
            return []
        found = [self.forget(item, job.extras.until, job.seq) for item in job.extras.after]
        return [release for release in found if release is not None]

    def decisions(self, job: DelayedJob) -> list[ItemRelease]:
        """Return the releases that `job` is part of."""
        found: list[ItemRelease] = []
        if job.extras is not None:
            for item in job.extras.after:
                found += [one for one in self._of_item.get(item, {}).values() if job.seq in one.seqs]
        return found

    def forget(self, item: str, until: Until, seq: int) -> ItemRelease | None:
        """End the job's wait for the item; returns the release it was part of, if any."""
        seqs = self.waiting.get((item, until))
        if seqs is not None and seq in seqs:
            del seqs[seq]
            if not seqs:
                del self.waiting[item, until]
            return None
        for release in list(self._of_item.get(item, {}).values()):
            if release.seqs.discard(seq):
                if not release.seqs.size:
                    self.end_release(release)
                return release
        return None
