"""Jobs that the entry being collected will make READY: a client that asks now can get one in the same entry."""

from __future__ import annotations

from collections import deque

from sockpqd.cluster.api import Cluster
from sockpqd.core import Get, Put


class PendingPuts:
    """PUTs that are proposed and not yet in an entry, and for whose jobs no waiter has been sent.

    Entries are created only in turns, so all PUTs noted between two turns belong to the same entry.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._entry = 0                                         # the one these will be in; 0: clients take turns
        self._of_queues: dict[str, deque[str | None]] = {}      # the item of each

    def __len__(self) -> int:
        return sum(map(len, self._of_queues.values()))

    def turn_ended(self, entry: int) -> None:
        """Forget PUTs that are in an entry by now; `entry` is being collected (Cluster.collecting)."""
        if entry != self._entry or not entry:
            self._entry = entry
            self._of_queues.clear()

    def note(self, put: Put) -> None:
        """Record a PUT just proposed whose job will be ready immediately, and which no Get follows."""
        items = self._of_queues.get(put.queue)
        if items is None:
            self._of_queues[put.queue] = deque((put.item,))
        else:
            items.append(put.item)

    def queue_for(self, get: Get) -> str | None:
        """Return a queue with a job for this Get, if it is proposed now; None if there is none."""
        found = self._of_queues
        if not found or not self._entry or self._entry != self._cluster.collecting:
            return None
        for queue in found if get.queues is None else get.queues:
            items = found.get(queue)
            if items and (get.item is None or get.item in items):
                return queue
        return None

    def take(self, queue: str, item: str | None) -> None:
        """Record that a waiter was sent for one of these jobs."""
        items = self._of_queues[queue]
        if item is None:
            items.popleft()
        else:
            items.remove(item)
        if not items:
            del self._of_queues[queue]
