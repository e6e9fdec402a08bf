"""Keys of finished jobs that still count as taken (QUEUE CONFIG .. KEEP, spec/state-machine 7.2).

Each entry of the log removes at least twice as many expired keys as it may have added, so they never pile up. The keys
of a deleted queue stop counting at once; their memory is freed little by little, which nobody can observe.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field
from sortedcontainers import SortedList

from sockpqd.core import limits
from sockpqd.core.store.timer_index import TimerIndex


class _Keys(Struct, gc=False, eq=False):
    """The retained keys of one queue."""

    until_ms: dict[str, int] = field(default_factory=dict)
    order: SortedList = field(default_factory=SortedList)       # (until_ms, key)
    indexed_ms: int = 0                                         # when the first expires, as indexed in RetainedKeys


class RetainedKeys:
    """The expiry time of each retained (queue, key)."""

    __slots__ = ("_dropped", "_firsts", "_queues", "added")

    def __init__(self) -> None:
        self._queues: dict[str, _Keys] = {}
        self._firsts: TimerIndex[tuple[int, str]] = TimerIndex(limits.RETAINED_KEY_BITS)    # (indexed_ms, queue)
        self.added = 0                              # by the entry that is being applied
        self._dropped: list[_Keys] = []             # memory to be freed; not part of the state

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """Queue, key and expiry: queues in name order, the keys of each in the order of their expiry."""
        for queue in sorted(self._queues):
            for until_ms, key in self._queues[queue].order:
                yield queue, key, until_ms

    def __len__(self) -> int:
        return sum(len(keys.until_ms) for keys in self._queues.values())

    def until_ms(self, queue: str, key: str) -> int:
        """The time at which the key expires; 0: it is not retained."""
        keys = self._queues.get(queue)
        return 0 if keys is None else keys.until_ms.get(key, 0)

    def retain(self, queue: str, key: str, until_ms: int) -> tuple[int, str] | None:
        """Retain the key until then (0: forget it). Returns expiry and name of a key that was dropped for it."""
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
            self.added += 1
        self._index(queue, keys)
        return forgotten

    def drop(self, queue: str) -> None:
        """Forget all keys of the queue."""
        keys = self._queues.pop(queue, None)
        if keys is not None:
            self._firsts.remove((keys.indexed_ms, queue))
            self._dropped.append(keys)

    def expire(self, clock_ms: int) -> None:
        """Remove expired keys and free dropped ones, a limited number of both; called once with each entry."""
        if self._firsts.first_ms > clock_ms and not self._dropped:
            return
        left = limits.FORGOTTEN_KEYS_MAX + 2 * self.added
        while left and (first := self._firsts.first_due(clock_ms)) is not None:
            queue = first[1]
            keys = self._queues[queue]
            while left and keys.order and keys.order[0][0] <= clock_ms:
                _, key = keys.order.pop(0)
                del keys.until_ms[key]
                left -= 1
            self._index(queue, keys)
        while left and self._dropped:
            keys = self._dropped[-1]
            while left and keys.order:
                _, key = keys.order.pop()
                del keys.until_ms[key]
                left -= 1
            if not keys.order:
                self._dropped.pop()

    def next_due_ms(self, clock_ms: int) -> int | None:
        """The time at which `expire` has something to do; None if never."""
        return clock_ms if self._dropped else self._firsts.next_due_ms()

    def _index(self, queue: str, keys: _Keys) -> None:
        first_ms: int = keys.order[0][0] if keys.order else 0
        if first_ms != keys.indexed_ms:
            if keys.indexed_ms:
                self._firsts.remove((keys.indexed_ms, queue))
            keys.indexed_ms = first_ms
            if first_ms:
                self._firsts.add((first_ms, queue))
        if not first_ms:
            del self._queues[queue]
