"""One item: its unfinished jobs, counted and listed by their states, and the counts of those that have ended.

There may be as many items as jobs, so the garbage collector does not track these either (see job.py). Parts that few
items have are created when needed.
"""

from __future__ import annotations

from msgspec import Struct, field

from sockpqd.core.store.items.holds import Hold
from sockpqd.core.store.items.item_groups import ItemGroups
from sockpqd.core.store.job import BuriedJob, DelayedJob, Job, group_of
from sockpqd.core.store.job_list import JobList

LOOKED_AT = 64      # up to this many READY jobs of an item in a queue are looked at one by one


class ItemQueue(Struct, gc=False, eq=False):
    """The unfinished jobs of one item in one queue."""

    ready: JobList[Job] = field(default_factory=JobList)
    running: int = 0
    deferred: int = 0
    eligible: int = 0           # with an ITEMLIMIT: how many READY jobs, the first ones, may be handed out
    foreign: int = 0            # READY jobs of groups not named like the queue
    groups: ItemGroups | None = None    # there are some, and more than LOOKED_AT READY jobs; or there were

    @property
    def finished(self) -> bool:
        """True if it has no unfinished job."""
        return not (self.running or self.ready.size or self.deferred)

    def listed(self, job: Job) -> None:
        """List a job by group that was added to the READY ones, if that is necessary.

        Need not be called while there are no groups, unless the job has extras or there are foreign ones.
        """
        foreign = group_of(job) != job.queue
        if foreign:
            self.foreign += 1
        if self.groups is not None:
            self.groups.add(job)
        elif self.foreign and self.ready.size > LOOKED_AT:
            # There are many jobs already only if this is the first one of another group.
            first = foreign and self.foreign == 1
            self.groups = ItemGroups.split(
                self.ready, [job] if first else [one for one in self.ready if group_of(one) != one.queue],
            )

    def unlisted(self, job: Job) -> None:
        """Undo `listed` for a job that was removed from the READY ones. Need not be called in the same case."""
        if group_of(job) != job.queue:
            self.foreign -= 1
        if self.groups is not None:
            if self.ready.size > LOOKED_AT // 2:
                self.groups.remove(job)
            else:
                self.groups = None

    def firsts(self) -> JobList[Job]:
        """Return READY jobs in order, among them the first one of each group.

        How many follows from the READY jobs alone, not from what was before, as the work of a command is counted by it.
        """
        if self.ready.size <= LOOKED_AT:
            return self.ready
        if self.foreign:
            assert self.groups is not None
            return self.groups.firsts
        return JobList.of([self.ready.first])


class Fate(Struct, gc=False, eq=False):
    """The marks of ITEM CANCEL: few items have any."""

    cancelling: bool = False        # the item is cancelled
    reason: str | None = None       # for which
    tainted: bool = False           # a job of it was removed because an item for which it waited was cancelled
    cancelled: int = 0              # jobs removed since it began


class Item(Struct, gc=False, eq=False):
    """The unfinished jobs of one item."""

    name: str
    unfinished: int = 0         # with those that are BURIED, which no queue counts
    by_queue: dict[str, ItemQueue] = field(default_factory=dict)
    nonempty: list[str] = field(default_factory=list)       # sorted names of the queues in which it has a READY job
    done: int = 0               # jobs that ended with DONE since it began
    dead: JobList[Job] | None = None
    buried: JobList[BuriedJob] | None = None
    failed: bool = False        # had a DEAD or BURIED job when the last operation ended
    hold: Hold | None = None    # it does not end before that does
    delayed: JobList[DelayedJob] | None = None
    fate: Fate | None = None
    owner: str | None = None    # the user whose HOLD NEW made it

    def open(self, queue: str) -> ItemQueue:
        """Return the item's jobs in `queue`, created if necessary; the caller adds a job."""
        item_queue = self.by_queue.get(queue)
        if item_queue is None:
            item_queue = self.by_queue[queue] = ItemQueue()
        return item_queue

    @property
    def lost(self) -> int:
        """The number of its DEAD and BURIED jobs."""
        return (0 if self.dead is None else self.dead.size) + (0 if self.buried is None else self.buried.size)

    @property
    def cancelling(self) -> bool:
        """True if it is cancelled."""
        return self.fate is not None and self.fate.cancelling

    @property
    def settled(self) -> bool:
        """True if it has no job but DEAD and BURIED ones, and no hold (Until.END)."""
        return self.hold is None and self.unfinished == self.lost

    def add_dead(self, job: Job) -> None:
        """List a job that became DEAD; it counts as a READY one of its queue already."""
        if self.dead is None:
            self.dead = JobList()
        self.dead.add(job)

    def remove_dead(self, job: Job) -> None:
        """Remove a job that is no longer DEAD from the list."""
        assert self.dead is not None
        self.dead.remove(job)
        if not self.dead.size:
            self.dead = None

    def bury(self, job: BuriedJob) -> None:
        """Add a job that becomes BURIED: unfinished for the item, but not in its queue."""
        self.unfinished += 1
        if self.buried is None:
            self.buried = JobList()
        self.buried.add(job)

    def unbury(self, job: BuriedJob) -> None:
        """Remove a job that is no longer BURIED."""
        self.unfinished -= 1
        assert self.buried is not None
        self.buried.remove(job)
        if not self.buried.size:
            self.buried = None
