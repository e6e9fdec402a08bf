"""Keys that queues keep, each until its own expiry.

Each entry of the log removes at least twice as many expired keys as it may have added, so they never pile up. The keys
of a deleted queue stop counting at once; their memory is freed gradually, which clients cannot observe.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field
from sortedcontainers import SortedList

from sockpqd.core import limits
from sockpqd.core.store.timer_index import TimerIndex


class Keys(Struct, gc=False, eq=False):
    """The keys of one queue."""

    until_ms: dict[str, int] = field(default_factory=dict)
    order: SortedList = field(default_factory=SortedList)       # (until_ms, key)
    numbers: dict[str, int] = field(default_factory=dict)       # of jobs, for keys that have one
    indexed_ms: int = 0                                         # when the first expires, as indexed in ExpiringKeys

    def remove_first(self) -> tuple[int, str]:
        """Remove the key that expires first; returns its expiry and its name."""
        first: tuple[int, str] = self.order.pop(0)
        self._remove(first[1])
        return first

    def remove_last(self) -> None:
        """Remove the key that expires last."""
        self._remove(self.order.pop()[1])

    def _remove(self, key: str) -> None:
        del self.until_ms[key]
        if self.numbers:
            self.numbers.pop(key, None)


class ExpiringKeys:
    """The expiry time of each (queue, key), and perhaps a number. `count`: the number of keys."""

    __slots__ = ("_dropped", "_firsts", "_queues", "added", "count")

    def __init__(self) -> None:
        self._queues: dict[str, Keys] = {}
        self._firsts: TimerIndex[tuple[int, str]] = TimerIndex(limits.RETAINED_KEY_BITS)    # (indexed_ms, queue)
        self.added = 0                              # by the entry that is being applied
        self.count = 0                              # without those that were dropped
        self._dropped: list[Keys] = []              # memory to be freed; not part of the state

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """Yield queue, key and expiry: queues in name order, the keys of each in the order of expiry."""
        for queue in sorted(self._queues):
            for until_ms, key in self._queues[queue].order:
                yield queue, key, until_ms

    def __len__(self) -> int:
        return self.count

    def until_ms(self, queue: str, key: str) -> int:
        """Return the time at which the key expires; 0 if it is not here."""
        keys = self._queues.get(queue)
        return 0 if keys is None else keys.until_ms.get(key, 0)

    def set(self, queue: str, key: str, until_ms: int, number: int = 0) -> None:
        """Keep the key until `until_ms`; 0: forget it."""
        keys = self._queues.get(queue)
        if keys is None:
            keys = self._queues[queue] = Keys()
        before_ms = keys.until_ms.pop(key, None)
        if before_ms is not None:
            keys.order.remove((before_ms, key))
            keys.numbers.pop(key, None)
            self.count -= 1
        if until_ms:
            keys.until_ms[key] = until_ms
            keys.order.add((until_ms, key))
            if number:
                keys.numbers[key] = number
            self.added += 1
            self.count += 1
        self._index(queue, keys)

    def drop(self, queue: str) -> None:
        """Forget all keys of the queue."""
        keys = self._queues.pop(queue, None)
        if keys is not None:
            self.count -= len(keys.order)
            self._firsts.remove((keys.indexed_ms, queue))
            self._dropped.append(keys)

    def expire(self, clock_ms: int) -> None:
        """Remove expired keys and free dropped ones, a limited number of both; called once with each entry."""
        if self._firsts.first_ms > clock_ms and not self._dropped:
            return
        left = self._expire(clock_ms, limits.FORGOTTEN_KEYS_MAX + 2 * self.added)
        while left and self._dropped:
            keys = self._dropped[-1]
            while left and keys.order:
                keys.remove_last()
                left -= 1
            if not keys.order:
                self._dropped.pop()

    def _expire(self, clock_ms: int, most: int) -> int:
        """Remove up to `most` expired keys; returns how many more could have been removed."""
        while most and (first := self._firsts.first_due(clock_ms)) is not None:
            queue = first[1]
            keys = self._queues[queue]
            while most and keys.order and keys.order[0][0] <= clock_ms:
                keys.remove_first()
                self.count -= 1
                most -= 1
            self._index(queue, keys)
        return most

    def postpone(self, from_ms: int, by_ms: int) -> None:
        """Let all keys that are not over at `from_ms` expire this much later."""
        for keys in self._queues.values():
            for key, until_ms in keys.until_ms.items():
                if until_ms > from_ms:
                    keys.until_ms[key] = until_ms + by_ms
            keys.order = SortedList((until_ms, key) for key, until_ms in keys.until_ms.items())
            keys.indexed_ms = keys.order[0][0]
        self._firsts.replace((keys.indexed_ms, queue) for queue, keys in self._queues.items())

    def next_due_ms(self, clock_ms: int) -> int | None:
        """Return the time at which `expire` has something to do next; None if never."""
        return clock_ms if self._dropped else self._firsts.next_due_ms()

    def _index(self, queue: str, keys: Keys) -> None:
        first_ms: int = keys.order[0][0] if keys.order else 0
        if first_ms != keys.indexed_ms:
            if keys.indexed_ms:
                self._firsts.remove((keys.indexed_ms, queue))
            keys.indexed_ms = first_ms
            if first_ms:
                self._firsts.add((first_ms, queue))
        if not first_ms:
            del self._queues[queue]
