"""Keys of finished jobs that are still remembered (QUEUE CONFIG .. KEEP, spec/state-machine 7.2).

With each entry of the log as many keys are forgotten as can have been remembered with it, and some more, so that those
whose time is over never pile up. A whole queue's keys are dropped at once, but a million of them are freed little by
little, which nobody can see.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field
from sortedcontainers import SortedList

from core import limits


class _Keys(Struct, gc=False, eq=False):
    """Those of one queue."""

    until_ms: dict[str, int] = field(default_factory=dict)
    order: SortedList = field(default_factory=SortedList)       # (until_ms, key)
    filed_ms: int = 0                                           # when the first is over, as all queues are sorted


class Kept:
    """For each queue and key until when it counts as taken."""

    __slots__ = ("_dropped", "_firsts", "_queues", "remembered")

    def __init__(self) -> None:
        self._queues: dict[str, _Keys] = {}
        self._firsts: SortedList = SortedList()     # (filed_ms, queue)
        self.remembered = 0                         # keys, with the entry that is being executed
        self._dropped: list[_Keys] = []             # memory to be freed; no part of the state

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """Queue, key and until when: queues in name order, and of each the first to be forgotten first."""
        for queue in sorted(self._queues):
            for until_ms, key in self._queues[queue].order:
                yield queue, key, until_ms

    def __len__(self) -> int:
        return sum(len(keys.until_ms) for keys in self._queues.values())

    def until_ms(self, queue: str, key: str) -> int:
        """Until when the key counts as taken; 0: it is not known."""
        keys = self._queues.get(queue)
        return 0 if keys is None else keys.until_ms.get(key, 0)

    def keep(self, queue: str, key: str, until_ms: int) -> tuple[int, str] | None:
        """Remember the key until then, not at all with 0; returns until when and which other was forgotten for it."""
        keys = self._queues.get(queue)
        if keys is None:
            keys = self._queues[queue] = _Keys()
        before_ms = keys.until_ms.pop(key, None)
        if before_ms is not None:
            keys.order.remove((before_ms, key))
        forgotten: tuple[int, str] | None = None
        if until_ms:
            if len(keys.until_ms) >= limits.RETAINED_KEYS_MAX:
                forgotten = keys.order.pop(0)
                del keys.until_ms[forgotten[1]]
            keys.until_ms[key] = until_ms
            keys.order.add((until_ms, key))
            self.remembered += 1
        self._file(queue, keys)
        return forgotten

    def drop(self, queue: str) -> None:
        """No key of the queue counts as taken any more."""
        keys = self._queues.pop(queue, None)
        if keys is not None:
            self._firsts.remove((keys.filed_ms, queue))
            self._dropped.append(keys)

    def forget(self, clock_ms: int) -> None:
        """An entry was executed: forget what is over, or a part of it, for there may be much."""
        left = limits.FORGOTTEN_KEYS_MAX + 2 * self.remembered
        while left and self._firsts and self._firsts[0][0] <= clock_ms:
            queue = self._firsts[0][1]
            keys = self._queues[queue]
            while left and keys.order and keys.order[0][0] <= clock_ms:
                _, key = keys.order.pop(0)
                del keys.until_ms[key]
                left -= 1
            self._file(queue, keys)
        while left and self._dropped:
            keys = self._dropped[-1]
            while left and keys.order:
                _, key = keys.order.pop()
                del keys.until_ms[key]
                left -= 1
            if not keys.order:
                self._dropped.pop()

    def next_due_ms(self, clock_ms: int) -> int | None:
        """When there is something to forget; None: never."""
        if self._dropped:
            return clock_ms
        if not self._firsts:
            return None
        until_ms: int = self._firsts[0][0]
        return (until_ms + (1 << limits.RETAINED_KEY_BITS) - 1) >> limits.RETAINED_KEY_BITS << limits.RETAINED_KEY_BITS

    def _file(self, queue: str, keys: _Keys) -> None:
        first_ms: int = keys.order[0][0] if keys.order else 0
        if first_ms != keys.filed_ms:
            if keys.filed_ms:
                self._firsts.remove((keys.filed_ms, queue))
            keys.filed_ms = first_ms
            if first_ms:
                self._firsts.add((first_ms, queue))
        if not first_ms:
            del self._queues[queue]
