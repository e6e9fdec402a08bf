"""GETBE: waiting that ends when queues, or an item in them, have no unfinished jobs left (spec/state-machine 4.6)."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.core import Effects, Get, Machine
from sockpqd.gateway.waiting.job_waiter import JobWaiter

Watched = tuple[str | None, str | None]         # a queue or any, an item or any


class Watchers:
    """Waiters that each watch one unfinished queue or item: their wait cannot be over before that has finished.

    Watching one is enough, and keeps the end of a queue cheap when many wait for other queues as well.
    """

    def __init__(self) -> None:
        self._by_watched: dict[Watched, dict[int, JobWaiter]] = {}

    def watch(self, waiter: JobWaiter, machine: Machine) -> bool:
        """Watch something unfinished among what the waiter waits for; False if there is nothing."""
        watched = self.unfinished(waiter.wants.get, machine)
        if watched is None:
            return False
        waiter.watched = watched
        self._by_watched.setdefault(watched, {})[waiter.number] = waiter
        return True

    def unfinished(self, get: Get, machine: Machine) -> Watched | None:
        """Find something unfinished among what the Get asks for; None: there is nothing."""
        for queue in get.queues or (None,):
            if machine.unfinished(queue, get.item):
                return queue, get.item
        return None

    def unwatch(self, waiter: JobWaiter) -> None:
        """Stop watching for this waiter."""
        watched, waiter.watched = waiter.watched, None
        if watched is not None:
            watchers = self._by_watched[watched]
            del watchers[waiter.number]
            if not watchers:
                del self._by_watched[watched]

    def after(self, effects: Effects, machine: Machine) -> Iterator[JobWaiter]:
        """Yield the waiters whose watched queue or item an entry has finished; they are no longer watching."""
        if not self._by_watched:
            return
        for queue in effects.ended:
            yield from self._ended((queue, None), machine)
        for queue, item in effects.ended_items:
            yield from self._ended((queue, item), machine)
            yield from self._ended((None, item), machine)
        if effects.ended:
            yield from self._ended((None, None), machine)

    def restored(self, machine: Machine) -> Iterator[JobWaiter]:
        """Yield them after a restore, when anything can have finished."""
        for watched in list(self._by_watched):
            yield from self._ended(watched, machine)

    def _ended(self, watched: Watched, machine: Machine) -> Iterator[JobWaiter]:
        if watched in self._by_watched and not machine.unfinished(*watched):
            for waiter in self._by_watched.pop(watched).values():
                waiter.watched = None
                yield waiter
