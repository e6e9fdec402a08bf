"""Keys of finished jobs that still count as taken (QUEUE CONFIG .. KEEP, spec/state-machine 7.2)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.store.keys.expiring_keys import ExpiringKeys


class RetainedKeys(ExpiringKeys):
    """The expiry time of each retained (queue, key). A queue with too many forgets the one that expires first."""

    __slots__ = ()

    def retain(self, queue: str, key: str, until_ms: int) -> tuple[int, str] | None:
        """Retain the key until `until_ms` (0: forget it). Returns the expiry and name of a key dropped to make room."""
        forgotten: tuple[int, str] | None = None
        keys = self._queues.get(queue)
        if until_ms and keys is not None and len(keys.until_ms) - (key in keys.until_ms) >= limits.RETAINED_KEYS_MAX:
            until_of_first_ms, first = next(one for one in keys.order if one[1] != key)
            forgotten = until_of_first_ms, first
            self.set(queue, first, 0)
        self.set(queue, key, until_ms)
        return forgotten
