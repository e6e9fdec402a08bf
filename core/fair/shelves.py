"""Which READY jobs of a queue belong to which group, and which group of the queue is next in each level.

A queue in which every job belongs to the group of its own name, as most do, needs no lists: its jobs are the queue's.
From the first job with another GROUP on, each group has a list of those that could be handed out.
"""

from __future__ import annotations

from msgspec import Struct, field
from sortedcontainers import SortedDict, SortedList

from core.fair.levels import Account
from core.store.job import AnyJob, Job
from core.store.job_list import JobList
from core.store.queues import Queue

Head = tuple[str, int, int]         # a group, and the rank and seq of its first job


def group_of(job: AnyJob) -> str:
    """The group of a job: that of its PUT, otherwise the queue in which it lies."""
    extras = job.extras
    return job.queue if extras is None or extras.group is None else extras.group


class Shelf(Struct, gc=False, eq=False):
    """The groups of one queue. Foreign: of another name than the queue."""

    queue: Queue
    ready: SortedDict | None = None                             # group -> its jobs; None: all are the queue's own
    blocked: dict[str, int] = field(default_factory=dict)       # foreign group -> its jobs that ITEMLIMIT withholds
    foreign_ready: int = 0
    foreign_waiting: int = 0                                    # READY or DELAYED
    foreign_running: int = 0
    levels: dict[int, dict[str, None]] = field(default_factory=dict)    # offered groups that have a job
    ranking: dict[int, SortedList] = field(default_factory=dict)        # the keys of these, where there are several
    heads: dict[int, Head] = field(default_factory=dict)                # as listed in the pool

    @property
    def empty(self) -> bool:
        """Whether there is nothing to keep."""
        return not (self.queue.ready_count or self.foreign_waiting or self.foreign_running)

    def jobs_of(self, group: str) -> int:
        """The number of READY jobs of the group, with those that are withheld."""
        if group == self.queue.name:
            return self.queue.ready_count - self.foreign_ready
        jobs = None if self.ready is None else self.ready.get(group)
        return self.blocked.get(group, 0) + (0 if jobs is None else jobs.size)

    def first(self, group: str) -> Job | None:
        """The group's next job; None: it has none that could be handed out."""
        if self.ready is None:
            return self.queue.ready.first if group == self.queue.name and self.queue.ready.size else None
        jobs: JobList[Job] | None = self.ready.get(group)
        return None if jobs is None else jobs.first

    def add(self, job: Job, group: str) -> None:
        """A job that could be handed out came; it is in the queue's list already."""
        if self.ready is None:
            if group == self.queue.name:
                return
            own = JobList.of([one for one in self.queue.ready if one is not job])
            self.ready = SortedDict() if not own.size else SortedDict({self.queue.name: own})
        jobs = self.ready.get(group)
        if jobs is None:
            jobs = self.ready[group] = JobList()
        jobs.add(job)

    def remove(self, job: Job, group: str) -> None:
        """The job is gone, from the queue's list too."""
        if self.ready is None:
            return
        jobs = self.ready[group]
        jobs.remove(job)
        if not jobs.size:
            del self.ready[group]
        if not self.foreign_ready:
            self.ready = None

    def head(self, level: int, accounts: dict[str, Account]) -> Head | None:
        """The group that is next in this level, and the place of its first job."""
        groups = self.levels.get(level)
        if not groups:
            return None
        ranking = self.ranking.get(level)
        group: str = next(iter(groups)) if ranking is None else ranking[0][2]
        job = self.first(group)
        assert job is not None
        return group, job.rank, job.seq

    def join(self, account: Account, accounts: dict[str, Account]) -> None:
        """The offered group has a job here that could be handed out."""
        groups = self.levels.setdefault(account.level, {})
        if account.name in groups:
            return
        groups[account.name] = None
        if len(groups) == 1:
            return
        ranking = self.ranking.get(account.level)
        if ranking is None:
            self.ranking[account.level] = SortedList(accounts[name].key for name in groups)
            for name in groups:
                accounts[name].shared[self.queue.name] = None
        else:
            ranking.add(account.key)
            account.shared[self.queue.name] = None

    def leave(self, account: Account, accounts: dict[str, Account]) -> None:
        """The group has no job here any more, or is not offered; nothing happens if it is not here."""
        groups = self.levels.get(account.level)
        if groups is None or account.name not in groups:
            return
        del groups[account.name]
        account.shared.pop(self.queue.name, None)
        ranking = self.ranking.get(account.level)
        if ranking is not None:
            ranking.remove(account.key)
            if len(groups) == 1:
                del self.ranking[account.level]
                for name in groups:
                    accounts[name].shared.pop(self.queue.name, None)
        if not groups:
            del self.levels[account.level]
