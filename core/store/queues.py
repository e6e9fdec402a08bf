"""The queues that exist, what they are told to do, and which of them have something to give.

A queue exists while it has an unfinished job, DELAYED, READY or running, or settings (spec/state-machine 5.1).
One that has nothing but settings stands aside, `idle`, so that nobody who looks for jobs meets it. The names of those
that can give a job are kept up to date, sorted by themselves and by the rank of the job that comes next, so that a
choice among a hundred thousand queues costs no more than one among two.

What has happened in a queue is counted in it, and forgotten with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice

from msgspec import Struct, field
from sortedcontainers import SortedList

from core.ops.queues import Order
from core.ops.settings import QueueSettings
from core.store.job import AnyJob, DelayedJob, Job
from core.store.job_list import JobList
from core.store.ready import ReadyJobs

# What is counted in a queue since it began, by its place in Queue.counters: jobs that came, hand-outs, and how these
# ended; jobs that were given up, and those whose TTL was over. A list, because to count in it costs least.
PUT, TAKEN, DONE, LATER, EXPIRED, DEAD, FADED = range(7)
NOTHING_COUNTED = (0,) * 7


class Queue(Struct, gc=False, eq=False):
    """The unfinished jobs of one queue."""

    name: str
    settings: QueueSettings | None = None
    ready: ReadyJobs = field(default_factory=ReadyJobs)
    taken: dict[int, None] = field(default_factory=dict)    # ids of the running ones, in rising order
    disordered: bool = False                                # or not, since a batch was undone
    ranks: dict[int, int] = field(default_factory=dict)     # rank -> waiting jobs of it, for TOTAL's priorities
    held: JobList[Job] | None = None                        # READY, but withheld by ITEMLIMIT (see items.py)
    delayed: JobList[DelayedJob] | None = None
    keys: dict[str, AnyJob] | None = None                   # the jobs that have a key
    filed_ms: int | None = None                             # under which it stands in delayed.py
    seqs: SortedList | None = None                          # of all READY jobs, where their order is another
    counters: list[int] = field(default_factory=lambda: [*NOTHING_COUNTED])
    front: int | None = None                                # rank of the job it would give next; None: it gives none

    @property
    def running(self) -> int:
        """Number of running jobs."""
        return len(self.taken)

    def first_taken(self, count: int) -> list[int]:
        """The ids of so many running jobs, the smallest first."""
        if self.disordered:
            self.taken = dict.fromkeys(sorted(self.taken))
            self.disordered = False
        return list(islice(self.taken, count))

    @property
    def ready_count(self) -> int:
        """Number of READY jobs, withheld ones too."""
        return self.ready.size if self.held is None else self.ready.size + self.held.size

    @property
    def deferred(self) -> int:
        """Number of DELAYED jobs."""
        return 0 if self.delayed is None else self.delayed.size

    @property
    def finished(self) -> bool:
        """Has it no unfinished job?"""
        return not (self.taken or self.ready_count or self.deferred)

    @property
    def closed(self) -> bool:
        """Does it give nothing, whatever it has (LIMIT, PAUSE)?"""
        settings = self.settings
        return settings is not None and (settings.paused_out or 0 < settings.limit <= self.running)

    def available(self) -> int:
        """How many jobs would be given now, one after the other."""
        settings = self.settings
        if settings is None:
            return self.ready.size
        if settings.paused_out:
            return 0
        return min(self.ready.size, max(0, settings.limit - self.running)) if settings.limit else self.ready.size

    def oldest_seq(self) -> int | None:
        """The least sequence number of a READY job: that of the one which took its place first. None: there is none."""
        if self.seqs is not None:
            return self.seqs[0] if self.seqs else None
        return self.ready.oldest_seq() if self.ready.size else None

    def all_ready(self) -> Iterator[Job]:
        """The READY jobs in their order."""
        return iter(self.ready) if self.held is None else merge(self.ready, self.held)


class Queues:
    """All queues by name, their settings, and the sums TOTAL tells."""

    __slots__ = ("by_name", "by_rank", "idle", "nonempty", "priorities", "settings", "waiting")

    def __init__(self) -> None:
        self.by_name: dict[str, Queue] = {}         # those with an unfinished job
        self.idle: dict[str, Queue] = {}            # those with settings and without one
        self.settings: dict[str, QueueSettings] = {}
        self.nonempty: SortedList = SortedList()    # names of the queues that can give a job
        self.by_rank: SortedList = SortedList()     # the same as pairs (front, name)
        self.priorities = 0                         # pairs (queue, priority) with a waiting job
        self.waiting = 0                            # jobs that wait, READY or DELAYED

    def open(self, name: str) -> Queue:
        """The queue of this name, made when it does not exist; the caller puts a job into it."""
        queue = self.by_name.get(name)
        if queue is None:
            queue = self.by_name[name] = self.idle.pop(name) if name in self.idle else Queue(name)
        return queue

    def find(self, name: str) -> Queue | None:
        """The queue of this name, also when it has nothing but settings."""
        return self.by_name.get(name) or self.idle.get(name)

    def add(self, queue: Queue, job: Job, withheld: bool = False) -> None:
        """`job` is READY in `queue` from now on."""
        if queue.settings is None:
            front = queue.front
            if front is None or job.rank < front:
                self._list(queue, job.rank)
            queue.ready.add(job)
        else:
            if queue.seqs is not None:
                queue.seqs.add(job.seq)
            if withheld:
                if queue.held is None:
                    queue.held = JobList()
                queue.held.add(job)
            else:
                queue.ready.add(job)
                self.relist(queue)
        self.count(queue, job.rank)

    def remove(self, queue: Queue, job: Job, withheld: bool = False) -> None:
        """`job` is not READY in `queue` any more."""
        if withheld:
            assert queue.held is not None
            queue.held.remove(job)
        else:
            queue.ready.remove(job)
        self.removed(queue, job)

    def removed(self, queue: Queue, job: Job) -> None:
        """The same when it was taken out of its list already."""
        if queue.settings is not None:
            if queue.seqs is not None:
                queue.seqs.remove(job.seq)
            self.relist(queue)
        elif not queue.ready.size:
            self._list(queue, None)
        elif queue.ready.front != queue.front:
            self._list(queue, queue.ready.front)
        self.uncount(queue, job.rank)

    def count(self, queue: Queue, rank: int) -> None:
        """One more job of this rank waits, READY or DELAYED."""
        self.waiting += 1
        ranks = queue.ranks
        count = ranks.get(rank)
        if count is None:
            ranks[rank] = 1
            self.priorities += 1
        else:
            ranks[rank] = count + 1

    def uncount(self, queue: Queue, rank: int) -> None:
        """One less."""
        self.waiting -= 1
        count = queue.ranks[rank]
        if count == 1:
            del queue.ranks[rank]
            self.priorities -= 1
        else:
            queue.ranks[rank] = count - 1

    def relist(self, queue: Queue) -> None:
        """Something has changed on which it depends which job this queue with settings would give, if any."""
        front = queue.ready.front if queue.ready.size and not queue.closed else None
        if front != queue.front:
            self._list(queue, front)

    def withdraw(self, queue: Queue) -> None:
        """The queue is to give nothing until `relist`."""
        self._list(queue, None)

    def _list(self, queue: Queue, front: int | None) -> None:
        """This is the rank of the job that the queue would give next; there was another, or none."""
        before, queue.front = queue.front, front
        if before is None:
            self.nonempty.add(queue.name)
        else:
            self.by_rank.remove((before, queue.name))
        if front is None:
            self.nonempty.remove(queue.name)
        else:
            self.by_rank.add((front, queue.name))

    def configure(self, name: str, settings: QueueSettings) -> None:
        """These are the settings of the queue from now on. For another order or ITEMLIMIT it must have no READY job."""
        self.settings[name] = settings
        queue = self.find(name)
        if queue is None:
            queue = self.idle[name] = Queue(name)
        queue.settings = settings
        # In a queue as it is by default the first job of a priority came first; see ready.py.
        jumbled = settings.order is Order.TIME or settings.item_limit > 0
        if jumbled != (queue.seqs is not None):
            queue.seqs = SortedList() if jumbled else None
        self.relist(queue)

    def forget(self, name: str) -> None:
        """The queue, which has no unfinished job, has no settings any more, and so is no more."""
        self.settings.pop(name, None)
        self.idle.pop(name, None)

    def close(self, queue: Queue) -> bool:
        """A job of the queue has ended or has left it; is the queue finished, and so gone?"""
        if not queue.finished:
            return False
        del self.by_name[queue.name]
        if queue.settings is not None:
            self.idle[queue.name] = queue
        return True
