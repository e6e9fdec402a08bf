"""The wait lists: a line per queue, or for any queue, and per item for waiters that want one.

A line holds the numbers of its waiters in order of arrival. Most lines have a single waiter, and one waiter can be in
ten thousand lines, so a line of one is stored as just the number.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from sockpqd.core import Get

Line = int | list[int]


class WaitLists:
    """All lines of waiters. The queue None stands for any queue."""

    def __init__(self) -> None:
        self._any: list[int] = []                                       # for a job of any queue
        self._queues: dict[str, Line] = {}                              # for a job of this queue, among others
        self._items: dict[str | None, dict[str, Line]] = {}             # for a job of this queue and this item

    def add(self, get: Get, number: int) -> None:
        """Add a waiter to the lines of its Get, in the order of its number."""
        if get.item is not None:
            for queue in get.queues or (None,):
                _insert(self._items.setdefault(queue, {}), get.item, number)
        elif get.queues is None:
            insort(self._any, number)
        else:
            for queue in get.queues:
                _insert(self._queues, queue, number)

    def remove(self, get: Get, number: int) -> None:
        """Remove a waiter from the lines of its Get."""
        if get.item is not None:
            for queue in get.queues or (None,):
                items = self._items[queue]
                _delete(items, get.item, number)
                if not items:
                    del self._items[queue]
        elif get.queues is None:
            del self._any[bisect_left(self._any, number)]
        else:
            for queue in get.queues:
                _delete(self._queues, queue, number)

    def first(self, queue: str) -> int | None:
        """Return the number of the longest waiter for a job of this queue, whatever its item."""
        line = self._queues.get(queue)
        if line is None:
            return self._any[0] if self._any else None
        return min(_first(line), self._any[0]) if self._any else _first(line)

    def first_of_item(self, queue: str, item: str) -> int | None:
        """Return the number of the longest waiter for a job of this queue and item."""
        if not self._items:
            return None
        firsts = [_first(items[item]) for key in (queue, None) if (items := self._items.get(key)) and item in items]
        return min(firsts) if firsts else None

    def waiting(self, queue: str) -> int:
        """Return how many waiters named this queue, for any item."""
        return _length(self._queues.get(queue)) + sum(map(_length, self._items.get(queue, {}).values()))

    def queues(self) -> list[str]:
        """Return the queues that waiters named."""
        return [*self._queues, *(queue for queue in self._items if queue is not None)]

    @property
    def of_items(self) -> bool:
        """Return whether there are waiters for items."""
        return bool(self._items)

    def items(self, queue: str) -> list[str]:
        """Return the items waited for in this queue."""
        return [*self._items.get(queue, ()), *self._items.get(None, ())] if self._items else []


def _length(line: Line | None) -> int:
    return 0 if line is None else 1 if isinstance(line, int) else len(line)


def _first(line: Line) -> int:
    return line if isinstance(line, int) else line[0]


def _insert(lines: dict[str, Line], name: str, number: int) -> None:
    line = lines.get(name)
    if line is None:
        lines[name] = number
    elif isinstance(line, int):
        lines[name] = [line, number] if line < number else [number, line]
    else:
        insort(line, number)


def _delete(lines: dict[str, Line], name: str, number: int) -> None:
    line = lines[name]
    if isinstance(line, int):
        assert line == number
        del lines[name]
        return
    del line[bisect_left(line, number)]
    if len(line) == 1:
        lines[name] = line[0]
