"""Keeps the READY jobs of a queue by group, and finds the queue's next group in each level.

Most queues have only jobs of the group of their own name. They need no lists: all jobs are in the queue's own. While
there is a job with another GROUP, the list of the queue is one by groups (core/pages/grouped_ready.py), so that the
jobs of each group can be found, and be outside memory. The offered groups are kept in order only where there are many;
among a few, all are compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct, field
from sortedcontainers import SortedDict, SortedList

from sockpqd.core.fair.group_order import GroupOrder
from sockpqd.core.fair.place_order import PlaceOrder
from sockpqd.core.fair.rates import RateWindows
from sockpqd.core.pages.grouped_ready import GroupedReady, PagedGroup
from sockpqd.core.store.job import Job, group_of
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue
from sockpqd.core.store.ready import ReadyJobs

FEW = 8             # up to this many groups of a queue are compared one by one
LOOKED_AT = 64      # READY jobs inspected in a queue whose many groups are not kept in order
WIDE_LOOKED = 8     # wide groups of a queue that take as long as one blocked group

Key = tuple[int, int, str]          # the order of the groups of a level: priority, turn, name
Place = tuple[int, int, str]        # of a READY job: rank, seq, queue


class Gates(Protocol):
    """Tells from which groups a queue may hand out jobs (gates.py)."""

    windows: RateWindows

    def shut(self, group: str) -> bool:
        """Return whether no job of the group may be handed out from any queue."""

    def shut_in(self, groups: QueueGroups, group: str, job: Job | None = None) -> bool:
        """Return whether the group may have no job from this queue, for reasons that concern only this queue.

        `job`: the job in question; None: the group's first one.
        """


class QueueGroups(Struct, gc=False, eq=False):
    """The groups of one queue. A foreign group is one whose name is not the queue's."""

    queue: Queue
    gates: Gates
    ready: SortedDict | None = None         # group -> its jobs, as in GroupedReady; None: all jobs are the queue's own
    blocked: SortedDict | None = None       # foreign group -> how many of its jobs ITEMLIMIT withholds
    foreign_ready: int = 0
    foreign_waiting: int = 0                # READY or DELAYED
    foreign_running: int = 0
    running: dict[str, int] = field(default_factory=dict)       # the RUNNING jobs of each foreign group that has some
    listed: dict[str, Place] = field(default_factory=dict)      # the first jobs of groups, as the scheduler lists them
    ranking: dict[int, SortedList] | None = None                # of many groups: by level the keys of those offered,
    wide: dict[str, Place | None] = field(default_factory=dict) # but not of these, nor in `listed`: see first_jobs.py
    shown: bool = True                      # these are listed, as the queue is open
    in_order: GroupOrder | None = None      # with GROUPORDER: the running jobs
    order: PlaceOrder | None = None         # of many groups with SCHED GROUPS: the open ones by their first jobs

    @property
    def empty(self) -> bool:
        """True if there is nothing to keep."""
        runs = self.in_order is not None and not self.in_order.empty
        return not (self.queue.ready_count or self.foreign_waiting or self.foreign_running or runs)

    def jobs_of(self, group: str) -> int:
        """Return the number of READY jobs of the group, including those that are withheld."""
        if group == self.queue.name:
            return self.queue.ready_count - self.foreign_ready
        jobs = None if self.ready is None else self.ready.get(group)
        blocked = 0 if self.blocked is None else self.blocked.get(group, 0)
        return blocked if jobs is None else blocked + int(jobs.size)

    def running_of(self, group: str) -> int:
        """Return the number of RUNNING jobs of the group in this queue."""
        return self.queue.running - self.foreign_running if group == self.queue.name else self.running.get(group, 0)

    def count_running(self, group: str, count: int) -> None:
        """Add `count`, which may be negative, to the number of RUNNING jobs of a foreign group."""
        self.foreign_running += count
        left = self.running.get(group, 0) + count
        if left:
            self.running[group] = left
        else:
            del self.running[group]

    def jobs_to_give(self, group: str) -> int:
        """Return the number of READY jobs of the group that can be handed out: ITEMLIMIT withholds the others."""
        if self.ready is None:
            return self.queue.ready.size if group == self.queue.name else 0
        jobs = self.ready.get(group)
        return 0 if jobs is None else int(jobs.size)

    def names(self) -> Iterable[str]:
        """Return the groups with a job that could be handed out, in sorted order."""
        if self.ready is None:
            return (self.queue.name,) if self.queue.ready.size else ()
        names: Iterable[str] = self.ready
        return names

    def first(self, group: str) -> Job | None:
        """Return the group's next job; None: it has none that could be handed out."""
        if self.ready is None:
            return self.queue.ready.first if group == self.queue.name and self.queue.ready.size else None
        jobs: JobList[Job] | PagedGroup | ReadyJobs | None = self.ready.get(group)
        return None if jobs is None else jobs.first

    def add(self, job: Job, group: str) -> None:
        """Record that a job of the group, already in the queue's list, can be handed out."""
        if self.ready is None and group != self.queue.name:
            self.ready = GroupedReady.split(self.queue, (job,)).groups

    def remove(self) -> None:
        """Record that a job is no longer in the queue's list."""
        ready = self.queue.ready
        if isinstance(ready, GroupedReady) and not ready.other_count:
            self.queue.ready = ready.own
            self.ready = None

    def withhold(self, group: str, count: int) -> None:
        """Count jobs of a foreign group that ITEMLIMIT withholds: `count` more, or fewer if it is negative."""
        if self.blocked is None:
            self.blocked = SortedDict()
        left = self.blocked.get(group, 0) + count
        if left:
            self.blocked[group] = left
        else:
            del self.blocked[group]
            if not self.blocked:
                self.blocked = None

    def place(self, group: str) -> Place | None:
        """Return the place of the group's next job; None: it has none that this queue could hand out."""
        job, settings = self.first(group), self.queue.settings
        if job is None:
            return None
        limited = settings is not None and (
            settings.group_limit or settings.group_order or bool(self.gates.windows.by_queue)
        )
        if limited and self.gates.shut_in(self, group):
            return None
        return job.rank, job.seq, self.queue.name

    def has_open(self, group: str) -> bool:
        """Return whether the group has a job here that could be handed out, and is open."""
        return self.first(group) is not None and not self.gates.shut_in(self, group) and not self.gates.shut(group)

    def next_in_order(self) -> str | None:
        """Return the group of the job last handed out to the current command, if another may follow; otherwise None."""
        giving = None if self.in_order is None else self.in_order.giving
        return giving if giving is not None and self.has_open(giving) else None

    def first_open(self) -> str | None:
        """Return the open group whose first job comes first; None: all are closed."""
        names = [name for name in (self.names() if self.order is None else self.wide) if self.has_open(name)]
        if self.order is not None and self.order.first is not None:
            names.append(self.order.first)
        return min(names, key=self._order_of) if names else None

    def open_wide(self) -> Iterable[str]:
        """Return the wide groups that are open and have a job here that could be handed out."""
        return (name for name in self.wide if self.has_open(name))

    def first_open_job(self) -> Job | None:
        """Return the first job, in the queue's order, of an open group; None: all groups are closed.

        If there are many groups and they are not kept in this order, only the first 64 jobs of foreign groups are
        inspected. If none of these belongs to an open group the last of them is returned: the first open job cannot
        precede it.
        """
        if self.ranking is None or self.order is not None:
            group = self.first_open()
            return None if group is None else self.first(group)
        name = self.queue.name
        own = self.first(name) if self.has_open(name) else None
        last: Job | None = None
        ready = self.queue.ready
        others = ready.of_others() if isinstance(ready, GroupedReady) else ()
        for last, _ in zip(others, range(LOOKED_AT), strict=False):
            if own is not None and own < last:
                return own
            group = group_of(last)
            if not self.gates.shut(group) and not self.gates.shut_in(self, group, last):
                break
        return last

    def _order_of(self, group: str) -> tuple[int, int, int]:
        job = self.first(group)
        assert job is not None
        return job.rank, job.when, job.seq

    def reorder(self, group: str) -> None:
        """Update the place of the group in the order of SCHED GROUPS."""
        if self.order is not None and group not in self.wide:
            self.order.set(group, self.first(group) if self.has_open(group) else None)

    def rank(self, level: int, key: Key) -> None:
        """Add a group with this key to the ranking of the queue's many groups."""
        assert self.ranking is not None
        keys = self.ranking.get(level)
        if keys is None:
            keys = self.ranking[level] = SortedList()
        keys.add(key)

    def unrank(self, level: int, key: Key) -> None:
        """Remove the group with this key from the ranking."""
        assert self.ranking is not None
        keys = self.ranking[level]
        keys.remove(key)
        if not keys:
            del self.ranking[level]

    def wanted(self) -> dict[str, Place]:
        """Return the places of the groups that may be next; the scheduler lists them while the queue is open."""
        if self.queue.front is None:
            return {}
        names = self.names() if self.ranking is None else [keys[0][2] for keys in self.ranking.values()]
        return {name: place for name in names if (place := self.place(name)) is not None}
