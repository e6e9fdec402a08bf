"""The queues that exist, and which of them have something to give.

A queue exists while it has an unfinished job, waiting or running (PROTOCOL.md A49). The sorted names of those with a
waiting job are kept up to date, so that a choice among a hundred thousand queues costs no more than one among two.
"""

from __future__ import annotations

from msgspec import Struct, field
from sortedcontainers import SortedList

from core.job import Job
from core.ready import ReadyList


class Queue(Struct, gc=False, eq=False):
    """The unfinished jobs of one queue."""

    name: str
    ready: ReadyList = field(default_factory=ReadyList)
    running: int = 0
    ranks: dict[int, int] = field(default_factory=dict)     # rank -> waiting jobs of it, for TOTAL's priorities


class Queues:
    """All queues by name, with the sums TOTAL tells."""

    __slots__ = ("by_name", "nonempty", "priorities", "waiting")

    def __init__(self) -> None:
        self.by_name: dict[str, Queue] = {}
        self.nonempty: SortedList = SortedList()    # names of the queues with a waiting job
        self.priorities = 0                         # pairs (queue, priority) with a waiting job
        self.waiting = 0

    def open(self, name: str) -> Queue:
        """The queue of this name, made when it does not exist; the caller puts a job into it."""
        queue = self.by_name.get(name)
        if queue is None:
            queue = self.by_name[name] = Queue(name)
        return queue

    def add(self, queue: Queue, job: Job) -> None:
        """`job` waits in `queue` from now on."""
        if not queue.ready.size:
            self.nonempty.add(queue.name)
        queue.ready.add(job)
        self.waiting += 1
        ranks = queue.ranks
        count = ranks.get(job.rank)
        if count is None:
            ranks[job.rank] = 1
            self.priorities += 1
        else:
            ranks[job.rank] = count + 1

    def taken(self, queue: Queue, job: Job) -> None:
        """`job` was taken out of the ready list of `queue` and is running."""
        queue.running += 1
        self.waiting -= 1
        if not queue.ready.size:
            self.nonempty.remove(queue.name)
        count = queue.ranks[job.rank]
        if count == 1:
            del queue.ranks[job.rank]
            self.priorities -= 1
        else:
            queue.ranks[job.rank] = count - 1

    def ended(self, name: str) -> bool:
        """A running job of the queue `name` is no longer running; is the queue finished, and so gone?"""
        queue = self.by_name[name]
        queue.running -= 1
        if queue.running or queue.ready.size:
            return False
        del self.by_name[name]
        return True
