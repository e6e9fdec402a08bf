"""The wait lists for jobs, and the jobs claimed by waiters whose Gets are in flight.

There is a line per queue, one for any queue, and one per item for waiters that want a certain item.

Removing a waiter for 9,000 queues from its lines takes milliseconds, and a thousand may leave at once, when their
clients disconnect or this node stops serving. So a waiter for many queues is only marked as having left, and removed
from its lines in portions (`clear`); until then it is skipped. A new waiter for many queues first clears twice as many
lines, so that the number of leftovers shrinks however fast clients come back. When all have left, the lines are
dropped, in portions as well: millions of numbers take tens of milliseconds to free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from sockpqd.core import Get
from sockpqd.gateway.waiting.lines import Lines

K = TypeVar("K")

MANY_NAMES = 100        # a waiter for more leaves in portions
NUMBERS_DROPPED = 16    # dropping this many numbers of a line takes as long as removing a waiter from one


class WaitLists:
    """All lines of waiters for jobs. The queue None stands for any queue.

    `left`: called with a queue when one that had left is removed from its line; until then `in_line` counts it.
    """

    def __init__(self, left: Callable[[str], None] = lambda queue: None) -> None:
        self._left_line = left
        self._dropped: list[tuple[Lines[str | None], dict[str | None, Lines[str]]]] = []    # lines that all have left
        self._waiters = 0                                           # in the lines, with those that have left
        self._left: dict[int, tuple[Get, int]] = {}                 # of how many of its lines each is out by now
        self._queues: Lines[str | None] = Lines()                   # for a job of this queue, among others
        self._items: dict[str | None, Lines[str]] = {}              # for a job of this queue and this item

    def add(self, get: Get, number: int) -> None:
        """Add a waiter to the lines of its Get, in the order of its number."""
        if number in self._left:
            self._clear_one(number, *self._left[number], names=len(get.queues or ()))
        elif (self._left or self._dropped) and get.queues is not None and len(get.queues) > MANY_NAMES:
            self.clear(2 * len(get.queues))
        self._waiters += 1
        queues: Iterable[str | None] = get.queues or (None,)
        if get.item is None:
            self._queues.add_to_all(queues, number)
            return
        for queue in queues:
            self._items.setdefault(queue, Lines()).add(get.item, number)

    def remove(self, get: Get, number: int) -> bool:
        """Remove a waiter from the lines of its Get; return whether it is still in some, so that `clear` is called."""
        if get.queues is None or len(get.queues) <= MANY_NAMES:
            self._waiters -= 1
            for queue in get.queues or (None,):
                self._discard(queue, get.item, number)
                if queue is not None:
                    self._left_line(queue)
            return False
        self._left[number] = get, 0
        if len(self._left) == self._waiters:
            self._waiters = 0
            self._left.clear()
            self._dropped.append((self._queues, self._items))
            self._queues, self._items = Lines(), {}
        return bool(self._left or self._dropped)

    def clear(self, names: int) -> bool:
        """Remove waiters that have left from the lines of `names` queues; return whether there are more."""
        while names > 0 and self._left:
            number, (get, out) = next(iter(self._left.items()))
            names -= self._clear_one(number, get, out, names)
        while names > 0 and self._dropped:
            names -= self._drop_one(*self._dropped[-1])
        return bool(self._left or self._dropped)

    def _drop_one(self, queues: Lines[str | None], items: dict[str | None, Lines[str]]) -> int:
        """Drop a line that all have left; return how many names that counts as."""
        queue: str | None
        line: int | list[int] = 0
        if queues:
            queue, line = queues.popitem()
        elif items:
            queue, lines = next(iter(items.items()))
            if lines:
                _, line = lines.popitem()
            if not lines:
                del items[queue]
        else:
            self._dropped.pop()
            return 1
        if queue is not None:
            self._left_line(queue)
        return 1 if isinstance(line, int) else 1 + len(line) // NUMBERS_DROPPED

    def _clear_one(self, number: int, get: Get, out: int, names: int) -> int:
        """Remove a waiter that has left from `names` more of its lines, after the first `out`; return from how many."""
        queues = get.queues or ()
        until = min(out + names, len(queues))
        for queue in queues[out:until]:
            self._discard(queue, get.item, number)
            self._left_line(queue)
        if until < len(queues):
            self._left[number] = get, until
        else:
            del self._left[number]
            self._waiters -= 1
        return until - out

    def _discard(self, queue: str | None, item: str | None, number: int) -> None:
        if item is None:
            self._queues.discard(queue, number)
        elif (items := self._items.get(queue)) is not None:
            items.discard(item, number)
            if not items:
                del self._items[queue]

    def first(self, queue: str) -> int | None:
        """Return the number of the waiter that has waited longest for a job of this queue, whatever its item."""
        if self._left:
            self._skip(self._queues, queue, queue)
        first = self._queues.first(queue)
        if None not in self._queues:
            return first
        of_any = self._queues.first(None)
        return of_any if first is None or of_any is None else min(first, of_any)

    def first_of_item(self, queue: str, item: str) -> int | None:
        """Return the number of the waiter that has waited longest for a job of this queue and item."""
        if not self._items:
            return None
        if self._left and queue in self._items:
            self._skip(self._items[queue], item, queue)
            if not self._items[queue]:
                del self._items[queue]
        found = [items.first(item) for key in (queue, None) if (items := self._items.get(key)) is not None]
        return min((first for first in found if first is not None), default=None)

    def _skip(self, lines: Lines[K], key: K, queue: str) -> None:
        """Remove, from the head of the line, waiters that have left."""
        while (first := lines.first(key)) is not None and first in self._left:
            lines.discard(key, first)
            self._left_line(queue)

    def in_line(self, queue: str) -> bool:
        """Return whether a line has a waiter that named this queue, which may have left."""
        kept = [(self._queues, self._items), *self._dropped] if self._dropped else ((self._queues, self._items),)
        return any(queue in queues or queue in items for queues, items in kept)

    def waiting(self, queue: str) -> int:
        """Return how many waiters named this queue, for any item."""
        items = self._items.get(queue)
        if not self._left:
            return self._queues.length(queue) + (0 if items is None else sum(map(items.length, items)))
        lines = [self._queues.numbers(queue), *(map(items.numbers, items) if items else ())]
        return sum(number not in self._left for line in lines for number in line)

    def queues(self) -> list[str]:
        """Return the queues that waiters named; some perhaps twice."""
        return [queue for queue in (*self._queues, *self._items) if queue is not None]

    @property
    def for_any(self) -> bool:
        """True if there are waiters for any queue."""
        return None in self._queues or None in self._items

    @property
    def for_any_job(self) -> bool:
        """True if there are waiters for any job of any queue."""
        return None in self._queues

    @property
    def lines(self) -> int:
        """The number of queues that waiters named; some may count twice."""
        return len(self._queues) + len(self._items)

    @property
    def of_items(self) -> bool:
        """True if there are waiters for items."""
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
        """Record that a Get claims `count` jobs of the queue, or of this item in it."""
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
