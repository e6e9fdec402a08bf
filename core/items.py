"""Items: named groups of jobs, over one or several queues.

An item exists while it has an unfinished job. For each queue it has jobs in, it keeps a ready list of its own, so that
a hand-out by item (PUT .. WAIT) finds its job without a search; a waiting job with an item is thus in two lists.

There may be as many items as jobs, so they too are kept out of the garbage collector's sight (see job.py).
"""

from __future__ import annotations

from bisect import bisect_left, insort

from msgspec import Struct, field

from core.job import Job
from core.ready import ReadyList


class Part(Struct, gc=False, eq=False):
    """The unfinished jobs of one item in one queue."""

    ready: ReadyList = field(default_factory=ReadyList)
    running: int = 0


class Item(Struct, gc=False, eq=False):
    """The unfinished jobs of one item."""

    name: str
    unfinished: int = 0
    parts: dict[str, Part] = field(default_factory=dict)    # by queue
    nonempty: list[str] = field(default_factory=list)       # sorted names of the queues in which a job of it waits

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

    def new_name(self) -> str:
        """A name no unfinished job has, and that was never made before (PROTOCOL.md A31)."""
        while True:
            name = f"i{self.next_item}"
            self.next_item += 1
            if name not in self.by_name:
                return name

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

    def add(self, item: Item, job: Job) -> None:
        """`job` of this item waits from now on."""
        part = item.open(job.queue)
        if not part.ready.size:
            insort(item.nonempty, job.queue)
        part.ready.add(job)
        item.unfinished += 1

    def resume(self, item: Item, queue: str) -> None:
        """A job of this item, restored from a snapshot, runs in `queue`."""
        item.open(queue).running += 1
        item.unfinished += 1

    def taken(self, name: str, queue: str) -> None:
        """A job of the item was taken out of the ready list of its part and is running."""
        item = self.by_name[name]
        part = item.parts[queue]
        part.running += 1
        if not part.ready.size:
            del item.nonempty[bisect_left(item.nonempty, queue)]

    def ended(self, name: str, queue: str) -> bool:
        """A running job of the item is no longer running; is the item finished, and so gone?"""
        item = self.by_name[name]
        part = item.parts[queue]
        part.running -= 1
        if not part.running and not part.ready.size:
            del item.parts[queue]
        item.unfinished -= 1
        if item.unfinished:
            return False
        del self.by_name[name]
        return True
