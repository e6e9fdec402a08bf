"""Counts the ready jobs claimed by Gets in flight, so that no second Get is sent for the same job."""

from __future__ import annotations

from typing import Any


class Claims:
    """The number of jobs claimed per queue, and of those per item that waiters asked for."""

    def __init__(self) -> None:
        self._of_queues: dict[str, int] = {}
        self._of_items: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._of_queues) + len(self._of_items)

    def add(self, queue: str, item: str | None, count: int) -> None:
        """Note that a Get claims `count` jobs of the queue, or of this item in it."""
        self._of_queues[queue] = self._of_queues.get(queue, 0) + count
        if item is not None:
            key = (queue, item)
            self._of_items[key] = self._of_items.get(key, 0) + count

    def end(self, queue: str, item: str | None, count: int) -> None:
        """Drop the claim of a Get no longer in flight."""
        _count_down(self._of_queues, queue, count)
        if item is not None:
            _count_down(self._of_items, (queue, item), count)

    def of(self, queue: str) -> int:
        """Return how many jobs of this queue are claimed."""
        return self._of_queues.get(queue, 0)

    def of_item(self, queue: str, item: str) -> int:
        """Return how many jobs of this queue and item are claimed by waiters for the item."""
        return self._of_items.get((queue, item), 0)


def _count_down(counts: dict[Any, int], key: Any, count: int) -> None:
    if counts[key] == count:
        del counts[key]
    else:
        counts[key] -= count
