"""How many ready jobs the Gets in flight were sent for: nobody else need be sent for those."""

from __future__ import annotations

from typing import Any


class Claims:
    """Jobs claimed of each queue, and among them of each item somebody waits for."""

    def __init__(self) -> None:
        self._of_queues: dict[str, int] = {}
        self._of_items: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._of_queues) + len(self._of_items)

    def add(self, queue: str, item: str | None, count: int) -> None:
        """A Get was sent for so many jobs of the queue, of this item if it waits for one."""
        self._of_queues[queue] = self._of_queues.get(queue, 0) + count
        if item is not None:
            key = (queue, item)
            self._of_items[key] = self._of_items.get(key, 0) + count

    def end(self, queue: str, item: str | None, count: int) -> None:
        """It is no longer in flight."""
        _count_down(self._of_queues, queue, count)
        if item is not None:
            _count_down(self._of_items, (queue, item), count)

    def of(self, queue: str) -> int:
        """Jobs of this queue."""
        return self._of_queues.get(queue, 0)

    def of_item(self, queue: str, item: str) -> int:
        """Jobs of this queue and item, by those who wait for the item."""
        return self._of_items.get((queue, item), 0)


def _count_down(counts: dict[Any, int], key: Any, count: int) -> None:
    if counts[key] == count:
        del counts[key]
    else:
        counts[key] -= count
