"""Keys of finished jobs that are still remembered (QUEUE CONFIG .. KEEP, EXTENSIONS.md 7 and 9)."""

from __future__ import annotations

from collections.abc import Iterator

from sortedcontainers import SortedList

FORGOTTEN_MAX = 100     # in one entry


class Kept:
    """For each queue and key until when it counts as taken."""

    __slots__ = ("_order", "_until")

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], int] = {}
        self._order: SortedList = SortedList()      # (until_ms, queue, key)

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """Queue, key and until when, the first to be forgotten first."""
        return ((queue, key, until_ms) for until_ms, queue, key in self._order)

    def __len__(self) -> int:
        return len(self._order)

    def until_ms(self, queue: str, key: str) -> int:
        """Until when the key counts as taken; 0: it is not known."""
        return self._until.get((queue, key), 0)

    def keep(self, queue: str, key: str, until_ms: int) -> None:
        """Remember the key until then; not at all with 0."""
        before_ms = self._until.pop((queue, key), None)
        if before_ms is not None:
            self._order.remove((before_ms, queue, key))
        if until_ms:
            self._until[queue, key] = until_ms
            self._order.add((until_ms, queue, key))

    def forget(self, clock_ms: int) -> None:
        """Drop what is over: a part of it, for there may be much."""
        for _ in range(FORGOTTEN_MAX):
            if not self._order or self._order[0][0] > clock_ms:
                return
            _, queue, key = self._order.pop(0)
            del self._until[queue, key]
