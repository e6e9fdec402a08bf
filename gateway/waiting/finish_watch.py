"""GETBE: waiting that ends when queues, or an item in them, have no unfinished jobs left (spec/state-machine 4.6)."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.core import Effects, Get, Machine
from sockpqd.gateway.waiting.job_waiter import JobWaiter
from sockpqd.gateway.waiting.lines import Lines

Watched = tuple[str | None, str | None]         # a queue or any, an item or any


class Watchers:
    """Waiters that each watch one unfinished queue or item: they cannot stop waiting before that has finished.

    Watching one is enough, and keeps the end of a queue cheap when many wait for other queues as well.
    """

    def __init__(self) -> None:
        self._by_watched: Lines[Watched] = Lines()

    def watch(self, waiter: JobWaiter, machine: Machine) -> bool:
        """Watch one of the unfinished queues or items that the waiter waits for; returns False if there are none."""
        waiter.watched = self.unfinished(waiter.wants.get, machine)
        if waiter.watched is not None:
            self._by_watched.add(waiter.watched, waiter.number)
        return waiter.watched is not None

    def unfinished(self, get: Get, machine: Machine) -> Watched | None:
        """Find an unfinished queue or item that the Get names; None: there are none."""
        for queue in get.queues or (None,):
            if machine.unfinished(queue, get.item):
                return queue, get.item
        return None

    def unwatch(self, waiter: JobWaiter) -> None:
        """Stop watching for this waiter."""
        if waiter.watched is not None:
            self._by_watched.remove(waiter.watched, waiter.number)
            waiter.watched = None

    def after(self, effects: Effects, machine: Machine) -> Iterator[int]:
        """Yield the numbers of waiters that must watch something else, as their queue or item has finished."""
        if effects.restored:
            for watched in list(self._by_watched):      # anything can have finished
                yield from self._ended(watched, machine)
        elif self._by_watched:
            for queue in effects.ended:
                yield from self._ended((queue, None), machine)
            for queue, item in effects.ended_items:
                yield from self._ended((queue, item), machine)
                yield from self._ended((None, item), machine)
            if effects.ended:
                yield from self._ended((None, None), machine)

    def _ended(self, watched: Watched, machine: Machine) -> list[int]:
        if watched not in self._by_watched or machine.unfinished(*watched):
            return []
        return self._by_watched.take(watched)
