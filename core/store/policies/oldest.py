"""The queues that can hand out a job, by how long their first job has been READY: for GET * BY OLDEST.

It is kept only from the first such GET on, because each hand-out changes it. So that no entry takes long, that GET
lists the first 1,000 queues by name, and each later entry 1,000 more. Until then the choice is among those listed.
"""

from __future__ import annotations

from itertools import islice

from sortedcontainers import SortedList

from sockpqd.core.limits import PORTION_MAX, SEQ_BITS
from sockpqd.core.store.job import Job


def ready_since(job: Job) -> tuple[int, int]:
    """Return the time at which the job last became READY, in ms, and its seq to order equal times."""
    extras, since_ms = job.extras, job.seq >> SEQ_BITS
    if extras is not None and extras.ready_ms is not None:
        since_ms = max(since_ms, extras.ready_ms)
    return since_ms, job.seq


class OldestFirst:
    """Queues by the time from which their first job has been READY.

    `reached`: queues up to this name are listed; None: all.
    """

    __slots__ = ("_keys", "entries", "reached")

    def __init__(self, reached: str | None = "") -> None:
        self.entries: SortedList = SortedList()             # (since_ms, seq, name)
        self._keys: dict[str, tuple[int, int, str]] = {}
        self.reached = reached

    def update(self, name: str, first: Job | None) -> None:
        """Set the job that the queue hands out next; None: there is none."""
        if self.reached is not None and name > self.reached:
            return
        key = None if first is None else (*ready_since(first), name)
        before = self._keys.get(name)
        if key == before:
            return
        if before is not None:
            self.entries.remove(before)
        if key is None:
            del self._keys[name]
        else:
            self.entries.add(key)
            self._keys[name] = key

    def move_behind(self, name: str, job: Job) -> bool:
        """List the queue by this job; returns False if it is listed there or behind it already."""
        if (*ready_since(job), name) <= self._keys[name]:
            return False
        self.update(name, job)
        return True

    def portion(self, names: SortedList) -> list[str]:
        """Return the next of `names` to list; the caller must `update` each."""
        found = list(islice(names.irange(self.reached, None, (False, True)), PORTION_MAX))
        self.reached = found[-1] if len(found) == PORTION_MAX else None
        return found
