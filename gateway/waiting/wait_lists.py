"""The lines of waiters for jobs, and the jobs claimed for those that were sent for some.

There is a line per queue, or for any queue, and one per item for waiters that want one.
"""

from __future__ import annotations

from sockpqd.core import Get
from sockpqd.gateway.waiting.lines import Lines


class WaitLists:
    """All lines of waiters for jobs. The queue None stands for any queue."""

    def __init__(self) -> None:
        self._queues: Lines[str | None] = Lines()                   # for a job of this queue, among others
        self._items: dict[str | None, Lines[str]] = {}              # for a job of this queue and this item

    def add(self, get: Get, number: int) -> None:
        """Add a waiter to the lines of its Get, in the order of its number."""
        for queue in get.queues or (None,):
            if get.item is None:
                self._queues.add(queue, number)
            else:
                self._items.setdefault(queue, Lines()).add(get.item, number)

    def remove(self, get: Get, number: int) -> None:
        """Remove a waiter from the lines of its Get."""
        for queue in get.queues or (None,):
            if get.item is None:
                self._queues.remove(queue, number)
            else:
                items = self._items[queue]
                items.remove(get.item, number)
                if not items:
                    del self._items[queue]

    def first(self, queue: str) -> int | None:
        """Return the number of the longest waiter for a job of this queue, whatever its item."""
        first = self._queues.first(queue)
        if None not in self._queues:
            return first
        of_any = self._queues.first(None)
        return of_any if first is None or of_any is None else min(first, of_any)

    def first_of_item(self, queue: str, item: str) -> int | None:
        """Return the number of the longest waiter for a job of this queue and item."""
        if not self._items:
            return None
        found = [items.first(item) for key in (queue, None) if (items := self._items.get(key)) is not None]
        return min((first for first in found if first is not None), default=None)

    def waiting(self, queue: str) -> int:
        """Return how many waiters named this queue, for any item."""
        items = self._items.get(queue)
        return self._queues.length(queue) + (0 if items is None else sum(map(items.length, items)))

    def queues(self) -> list[str]:
        """Return the queues that waiters named; some perhaps twice."""
        return [queue for queue in (*self._queues, *self._items) if queue is not None]

    @property
    def of_items(self) -> bool:
        """Return whether there are waiters for items."""
        return bool(self._items)

    def items(self, queue: str) -> list[str]:
        """Return the items waited for in this queue."""
        return [*self._items.get(queue, ()), *self._items.get(None, ())] if self._items else []


class Claims:
    """Counts the ready jobs claimed by Gets in flight, so that no second Get is sent for the same job."""

    def __init__(self) -> None:
        self._counts: dict[str | tuple[str, str], int] = {}     # by queue, and by queue and item

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, queue: str, item: str | None, count: int) -> None:
        """Note that a Get claims `count` jobs of the queue, or of this item in it."""
        counts = self._counts
        counts[queue] = counts.get(queue, 0) + count
        if item is not None:
            counts[queue, item] = counts.get((queue, item), 0) + count

    def end(self, queue: str, item: str | None, count: int) -> None:
        """Drop the claim of a Get no longer in flight."""
        counts = self._counts
        for key in (queue,) if item is None else (queue, (queue, item)):
            counts[key] -= count
            if not counts[key]:
                del counts[key]

    def of(self, queue: str) -> int:
        """Return how many jobs of this queue are claimed."""
        return self._counts.get(queue, 0)

    def of_item(self, queue: str, item: str) -> int:
        """Return how many jobs of this queue and item are claimed by waiters for the item."""
        return self._counts.get((queue, item), 0)
