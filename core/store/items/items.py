"""All items by name.

An item exists while it has an unfinished job or is held. For each queue in which it has jobs it keeps a list of the
READY ones, so that a hand-out by item (PUT .. WAIT) finds its job without a search; a READY job with an item is thus in
two lists.

In a queue with an ITEMLIMIT the queue's own list holds only as many READY jobs of each item as may still run, always
the first ones: these are eligible, the others blocked. So the first job of that list can be handed out without checking
its item again.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from sortedcontainers import SortedSet

from sockpqd.core import limits
from sockpqd.core.store.items.holds import Holds
from sockpqd.core.store.items.item import Item, ItemQueue
from sockpqd.core.store.job import BuriedJob, DelayedJob, Job
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.policies.choice import splitmix64
from sockpqd.core.store.queues import Queues


class Items:
    """All items by name, and the counter for new names."""

    __slots__ = ("_queues", "by_name", "cancelled", "doomed", "holds", "next_item")

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self.by_name: dict[str, Item] = {}
        self.cancelled: dict[str, None] = {}        # the names of those that are cancelled, and of those of them
        self.doomed: SortedSet = SortedSet()        # that may have jobs to be removed, in an order that snapshots keep
        self.holds = Holds()
        self.next_item = 1

    def new_name(self, seed: int, end: str = "") -> str:
        """Return a new item name, which no unfinished job has and which was never generated (spec/state-machine 5.3).

        Clients may have used any number of the next names. After some tries the counter jumps by a random distance
        (`seed`: 64 random bits) that no client could have foreseen. `end`: the suffix of the name.
        """
        while True:
            for number in range(self.next_item, self.next_item + limits.ITEM_NAMES_TRIED):
                name = f"i{number}{end}"
                if name not in self.by_name:
                    self.next_item = number + 1
                    return name
            self.next_item += limits.ITEM_NAMES_TRIED + (splitmix64(seed) >> 32)

    def open(self, name: str) -> Item:
        """Return the item of this name, creating it if necessary; the caller adds a job or a hold."""
        item = self.by_name.get(name)
        if item is None:
            item = self.by_name[name] = Item(name)
        return item

    def in_queue(self, name: str, queue: str) -> ItemQueue | None:
        """Return the jobs of the item `name` in `queue`; None if it has no unfinished job there."""
        item = self.by_name.get(name)
        return None if item is None else item.by_queue.get(queue)

    def add(self, item: Item, job: Job) -> ItemQueue:
        """Add `job` to the READY jobs of this item."""
        item_queue = item.open(job.queue)
        if not item_queue.ready.size:
            insort(item.nonempty, job.queue)
            if item.cancelling:
                self.doomed.add(item.name)
                self._queues.withhold(job.queue, 1)
        item_queue.ready.add(job)
        if job.extras is not None or item_queue.foreign or item_queue.groups is not None:
            item_queue.listed(job)
        item.unfinished += 1
        return item_queue

    def remove(self, job: Job) -> ItemQueue:
        """Remove `job` from the READY jobs of its item."""
        assert job.item is not None
        item = self.by_name[job.item]
        item_queue = item.by_queue[job.queue]
        item_queue.ready.remove(job)
        if job.extras is not None or item_queue.groups is not None:
            item_queue.unlisted(job)
        self.removed(item, item_queue, job.queue)
        return item_queue

    def removed(self, item: Item, item_queue: ItemQueue, queue: str) -> None:
        """Stop counting a job that was already removed from the list of READY jobs."""
        item.unfinished -= 1
        if not item_queue.ready.size:
            del item.nonempty[bisect_left(item.nonempty, queue)]
            if item.cancelling:
                self._queues.withhold(queue, -1)

    def defer(self, item: Item, job: DelayedJob) -> None:
        """Add a job of this item that becomes DELAYED."""
        item.open(job.queue).deferred += 1
        item.unfinished += 1
        if item.delayed is None:
            item.delayed = JobList()
        item.delayed.add(job)
        if item.cancelling:
            self.doomed.add(item.name)

    def undefer(self, name: str, job: DelayedJob) -> None:
        """Remove a job of this item that is no longer DELAYED."""
        item = self.by_name[name]
        item.by_queue[job.queue].deferred -= 1
        item.unfinished -= 1
        assert item.delayed is not None
        item.delayed.remove(job)
        if not item.delayed.size:
            item.delayed = None

    def bury(self, item: Item, job: BuriedJob) -> None:
        """Add a job of this item that becomes BURIED."""
        item.bury(job)
        if item.cancelling:
            self.doomed.add(item.name)

    def mark(self, item: Item) -> None:
        """Record that the item is cancelled."""
        self.cancelled[item.name] = None
        self.doomed.add(item.name)
        for queue in item.nonempty:
            self._queues.withhold(queue, 1)

    def forget(self, item: Item) -> None:
        """Remove the item, which has ended."""
        del self.by_name[item.name]
        if item.cancelling:
            del self.cancelled[item.name]
            self.doomed.discard(item.name)

    def restore(self, item: Item) -> None:
        """Bring back the item, which had ended (undo.py)."""
        self.by_name[item.name] = item
        if item.cancelling:
            self.cancelled[item.name] = None

    def start(self, item: Item, queue: str) -> ItemQueue:
        """Count a job of this item that starts to run in `queue`."""
        item_queue = item.open(queue)
        item_queue.running += 1
        item.unfinished += 1
        return item_queue

    def stop(self, name: str, queue: str) -> ItemQueue:
        """Stop counting a job of this item that is no longer RUNNING in `queue`."""
        item = self.by_name[name]
        item_queue = item.by_queue[queue]
        item_queue.running -= 1
        item.unfinished -= 1
        return item_queue
