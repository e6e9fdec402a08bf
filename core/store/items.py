"""Items: named groups of jobs, over one or several queues.

An item exists while it has an unfinished job. For each queue it has jobs in, it keeps a list of its READY ones, so that
a hand-out by item (PUT .. WAIT) finds its job without a search; a READY job with an item is thus in two lists.

In a queue with an ITEMLIMIT only as many READY jobs of an item as may still run are in the queue's list of what can be
given, always the first ones; the others are withheld. So whoever takes the first job of that list never has to look
whether its item may run.

There may be as many items as jobs, so they too are kept out of the garbage collector's sight (see job.py).
"""

from __future__ import annotations

from bisect import bisect_left, insort

from msgspec import Struct, field

from core import limits
from core.store.choice import splitmix64
from core.store.job import Job
from core.store.job_list import JobList


class Part(Struct, gc=False, eq=False):
    """The unfinished jobs of one item in one queue."""

    ready: JobList[Job] = field(default_factory=JobList)
    running: int = 0
    deferred: int = 0
    given: int = 0              # with an ITEMLIMIT: so many of the first READY jobs can be given

    @property
    def finished(self) -> bool:
        """Has it no unfinished job?"""
        return not (self.running or self.ready.size or self.deferred)


class Item(Struct, gc=False, eq=False):
    """The unfinished jobs of one item."""

    name: str
    unfinished: int = 0
    parts: dict[str, Part] = field(default_factory=dict)    # by queue
    nonempty: list[str] = field(default_factory=list)       # sorted names of the queues in which a job of it is READY

    def open(self, queue: str) -> Part:
        """The part in `queue`, made when it does not exist; the caller adds a job to it."""
        part = self.parts.get(queue)
        if part is None:
            part = self.parts[queue] = Part()
        return part


class Items:
    """All items by name, and the counter for new names."""

    __slots__ = ("by_name", "next_item")

    def __init__(self) -> None:
        self.by_name: dict[str, Item] = {}
        self.next_item = 1

    def new_name(self, seed: int) -> str:
        """A name no unfinished job has, and that was never made before (spec/state-machine 5.3).

        Clients may have used the next names, any number of them. After some tries it goes on far away, where nobody
        could know: `seed` are random bits.
        """
        while True:
            for number in range(self.next_item, self.next_item + limits.ITEM_NAMES_TRIED):
                name = f"i{number}"
                if name not in self.by_name:
                    self.next_item = number + 1
                    return name
            self.next_item += limits.ITEM_NAMES_TRIED + (splitmix64(seed) >> 32)

    def open(self, name: str) -> Item:
        """The item of this name, made when it does not exist; the caller adds a job to it."""
        item = self.by_name.get(name)
        if item is None:
            item = self.by_name[name] = Item(name)
        return item

    def part(self, name: str, queue: str) -> Part | None:
        """What the item `name` has in `queue`; None when it has no unfinished job there."""
        item = self.by_name.get(name)
        return None if item is None else item.parts.get(queue)

    def add(self, item: Item, job: Job) -> Part:
        """`job` of this item is READY from now on."""
        part = item.open(job.queue)
        if not part.ready.size:
            insort(item.nonempty, job.queue)
        part.ready.add(job)
        item.unfinished += 1
        return part

    def remove(self, job: Job) -> Part:
        """A job is not READY any more."""
        assert job.item is not None
        item = self.by_name[job.item]
        part = item.parts[job.queue]
        part.ready.remove(job)
        self.removed(item, part, job.queue)
        return part

    def removed(self, item: Item, part: Part, queue: str) -> None:
        """The same when it was taken out of the list of its part already."""
        item.unfinished -= 1
        if not part.ready.size:
            del item.nonempty[bisect_left(item.nonempty, queue)]

    def defer(self, item: Item, queue: str) -> None:
        """One more job of this item is DELAYED in `queue`."""
        item.open(queue).deferred += 1
        item.unfinished += 1

    def undefer(self, name: str, queue: str) -> None:
        """One less."""
        item = self.by_name[name]
        item.parts[queue].deferred -= 1
        item.unfinished -= 1

    def start(self, item: Item, queue: str) -> Part:
        """One more job of this item runs in `queue`."""
        part = item.open(queue)
        part.running += 1
        item.unfinished += 1
        return part

    def stop(self, name: str, queue: str) -> Part:
        """One less."""
        item = self.by_name[name]
        part = item.parts[queue]
        part.running -= 1
        item.unfinished -= 1
        return part
