"""Counts the ready jobs claimed by Gets in flight, so that no second Get is sent for the same job."""

from __future__ import annotations


class Claims:
    """The number of jobs claimed per queue, and of those per item that waiters asked for."""

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
