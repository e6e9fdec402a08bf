"""Keys of accepted Puts that are not executed once more for a while (PUT .. DEDUP, spec/state-machine 7.5)."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.core import limits
from sockpqd.core.store.keys.expiring_keys import ExpiringKeys


class RememberedKeys(ExpiringKeys):
    """The expiry of each remembered (queue, key), and the number of its job, if any. None is forgotten early."""

    __slots__ = ()

    def find(self, queue: str, key: str, clock_ms: int) -> int | None:
        """Return the number of the job put with this key, 0 without one; None if the key is not remembered now."""
        keys = self._queues.get(queue)
        if keys is None or keys.until_ms.get(key, 0) <= clock_ms:
            return None
        return keys.numbers.get(key, 0)

    def entry(self, queue: str, key: str) -> tuple[int, int]:
        """Return the expiry and the number with which `set` restores the key as it is now."""
        keys = self._queues.get(queue)
        return (0, 0) if keys is None else (keys.until_ms.get(key, 0), keys.numbers.get(key, 0))

    def full(self, queue: str, most: int, clock_ms: int) -> bool:
        """Return whether the queue remembers `most` keys now, or all queues together have reached their limit."""
        if self.count >= limits.REMEMBERED_KEYS_MAX:
            self._expire(clock_ms, self.count - limits.REMEMBERED_KEYS_MAX + 1)
            if self.count >= limits.REMEMBERED_KEYS_MAX:
                return True
        keys = self._queues.get(queue)
        expired = 0 if keys is None else keys.order.bisect_left((clock_ms + 1,))
        return (0 if keys is None else len(keys.order)) - expired >= most

    def rows(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield queue, key, expiry, number (0: none): queues in name order, the keys of each in the order of expiry."""
        for queue in sorted(self._queues):
            keys = self._queues[queue]
            for until_ms, key in keys.order:
                yield queue, key, until_ms, keys.numbers.get(key, 0)
