"""Where waiters stand: in a line for each queue they wait for, or for any, of whatever item or of one.

Lines hold the numbers of those who stand in them, in order of arrival.
"""

from __future__ import annotations

from sortedcontainers import SortedList

from core import Get


class Lines:
    """All lines. None stands for any queue."""

    def __init__(self) -> None:
        self._any: SortedList = SortedList()                                # for a job of any queue
        self._queues: dict[str, SortedList] = {}                            # for a job of this queue, among others
        self._items: dict[str | None, dict[str, SortedList]] = {}           # for a job of this queue and this item

    def stand(self, get: Get, number: int) -> None:
        """Who waits for `get` stands in its lines now, at the place of his number."""
        if get.item is not None:
            for queue in get.queues or (None,):
                _line(self._items.setdefault(queue, {}), get.item).add(number)
        elif get.queues is None:
            self._any.add(number)
        else:
            for queue in get.queues:
                _line(self._queues, queue).add(number)

    def leave(self, get: Get, number: int) -> None:
        """He does not any more."""
        if get.item is not None:
            for queue in get.queues or (None,):
                items = self._items[queue]
                _leave(items, get.item, number)
                if not items:
                    del self._items[queue]
        elif get.queues is None:
            self._any.remove(number)
        else:
            for queue in get.queues:
                _leave(self._queues, queue, number)

    def first(self, queue: str) -> int | None:
        """Who has waited longest for a job of this queue, of whatever item."""
        line = self._queues.get(queue)
        if line is None:
            return self._any[0] if self._any else None
        return min(line[0], self._any[0]) if self._any else line[0]     # type: ignore[no-any-return]

    def first_of_item(self, queue: str, item: str) -> int | None:
        """Who has waited longest for a job of this queue and item."""
        if not self._items:
            return None
        firsts = [items[item][0] for key in (queue, None) if (items := self._items.get(key)) and item in items]
        return min(firsts) if firsts else None

    @property
    def of_items(self) -> bool:
        """Does anybody wait for an item?"""
        return bool(self._items)

    def items(self, queue: str) -> list[str]:
        """The items somebody waits for in this queue."""
        return [*self._items.get(queue, ()), *self._items.get(None, ())] if self._items else []


def _line(lines: dict[str, SortedList], name: str) -> SortedList:
    line = lines.get(name)
    if line is None:
        line = lines[name] = SortedList()
    return line


def _leave(lines: dict[str, SortedList], name: str, number: int) -> None:
    line = lines[name]
    line.remove(number)
    if not line:
        del lines[name]
