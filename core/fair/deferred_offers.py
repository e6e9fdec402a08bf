"""Offers of many groups at once, which are made in portions: at the first use of FAIR, and after RESUME."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import merge

from msgspec import Struct

from sockpqd.core import limits
from sockpqd.core.fair.queue_groups import QueueGroups
from sockpqd.core.store.queues import Queue, Queues


class Task(Struct, gc=False):
    """Groups to offer in portions: those of this queue (None: of all, at the first use) after the name `reached`."""

    queue: str | None
    reached: str = ""


class DeferredOffers:
    """The tasks in progress.

    `returns`: returns whether a group is to be offered; `offer` offers it.
    """

    __slots__ = ("_offer", "_queue_groups", "_queues", "_returns", "tasks")

    def __init__(
        self, queues: Queues, queue_groups: dict[str, QueueGroups], returns: Callable[[str], bool],
        offer: Callable[[str], None],
    ) -> None:
        self.tasks: list[Task] = []
        self._queues = queues
        self._queue_groups = queue_groups
        self._returns = returns
        self._offer = offer

    def begin(self) -> None:
        """At the first use of groups, offer the groups of all READY jobs, each of which has the name of its queue."""
        self.tasks.append(Task(None))
        self.go_on(limits.PORTION_MAX)

    def resumed(self, queue: Queue) -> int:
        """Offer the groups that have left their levels while this queue was paused; returns how many were looked at."""
        self.tasks = [task for task in self.tasks if task.queue != queue.name]
        task = Task(queue.name)
        self.tasks.append(task)
        _, looked, more = self._portion(task, limits.PORTION_MAX)
        if not more:
            self.tasks.remove(task)
        return looked

    def go_on(self, most: int) -> int:
        """Offer up to `most` more of the groups that wait to be offered; returns how many."""
        left = most
        while self.tasks and left:
            offered, _, more = self._portion(self.tasks[0], left)
            left -= offered
            if more:
                break
            del self.tasks[0]
        return most - left

    def not_reached(self, group: str) -> bool:
        """Return whether the group still waits for its portion at the first use."""
        return any(task.queue is None and group > task.reached for task in self.tasks)

    def _portion(self, task: Task, most: int) -> tuple[int, int, bool]:
        """Offer up to `most` groups of the task.

        Returns how many there were, how many groups were looked at, and whether there may be more.
        """
        offered = looked = 0
        for name in self._names_of(task):
            if offered == most or looked == limits.LOOKED_MAX:
                return offered, looked, True
            looked += 1
            task.reached = name
            if self._returns(name):
                self._offer(name)
                offered += 1
        return offered, looked, False

    def _names_of(self, task: Task) -> Iterable[str]:
        """Return, sorted, the groups the task has yet to reach.

        These are groups with READY jobs in its queue, or in any queue at the first use.
        """
        behind = (task.reached, None, (False, True))
        if task.queue is None:
            return merge(self._queues.nonempty.irange(*behind), self._closed(task.reached))
        groups = self._queue_groups.get(task.queue)
        own = [task.queue] if task.queue > task.reached else []
        foreign = () if groups is None else (one for one in (groups.ready, groups.blocked) if one is not None)
        return merge(own, *[names.irange(*behind) for names in foreign])

    def _closed(self, reached: str) -> list[str]:
        """Return the queues after `reached` whose settings prevent hand-outs, although they have READY jobs."""
        by_name = self._queues.by_name
        return sorted(
            name for name in self._queues.settings
            if name > reached and name in by_name and by_name[name].front is None and by_name[name].ready_count
        )
