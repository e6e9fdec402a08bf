"""Tells whether a group is open: neither paused nor at a limit or a rate, everywhere or in one queue (spec/fair 7).

The answer follows from the settings, the running jobs and the rate windows, so it is not stored but computed whenever
one of these has changed. The scheduler keeps closed groups apart, so that a choice does not look at them.
"""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.core.fair.group_settings import GroupTable
from sockpqd.core.fair.queue_groups import QueueGroups
from sockpqd.core.fair.rates import ANY_QUEUE, RateWindows, slot_of
from sockpqd.core.store.job import Job
from sockpqd.core.store.queues import Queue


class GroupGates:
    """Tells whether groups are open. `running`: returns the RUNNING jobs of a group in all queues."""

    __slots__ = ("_running", "table", "windows")

    def __init__(self, table: GroupTable, running: Callable[[str], int]) -> None:
        self.table = table
        self.windows = RateWindows()
        self._running = running

    def shut(self, group: str) -> bool:
        """Return whether no job of the group may be handed out from any queue."""
        its = self.table.by_name.get(group)
        if its is None:
            return False
        if its.paused or 0 < its.limit <= self._running(group):
            return True
        window = self.windows.find(ANY_QUEUE, group) if its.rate else None
        return window is not None and window.closed

    def shut_in(self, groups: QueueGroups, group: str, job: Job | None = None) -> bool:
        """Return whether the group may have no job from this queue, for reasons that concern only this queue.

        `job`: the job in question; None: the group's first one.
        """
        settings = groups.queue.settings
        if settings is None or not settings.by_groups:
            return False
        if 0 < settings.group_limit <= groups.running_of(group):
            return True
        if groups.in_order is not None:
            first = groups.first(group) if job is None else job
            if first is not None and groups.in_order.holds(group, first):
                return True
        window = self.windows.find(groups.queue.name, group)
        return window is not None and window.closed

    def room(self, groups: QueueGroups, group: str) -> int:
        """Return how many jobs of the group the queue could hand out now, one after another; rates may allow fewer."""
        if self.shut(group) or self.shut_in(groups, group):
            return 0
        jobs = groups.jobs_to_give(group)
        its, settings = self.table.of(group), groups.queue.settings
        if its.limit:
            jobs = min(jobs, its.limit - self._running(group))
        if settings is not None and settings.by_groups and settings.group_limit:
            jobs = min(jobs, settings.group_limit - groups.running_of(group))
        return min(jobs, 1) if settings is not None and settings.group_order else jobs

    def count(self, queue: Queue, group: str, now_ms: int) -> None:
        """Count a hand-out of the group by FAIR or GROUPS."""
        its, settings = self.table.of(group), queue.settings
        if its.rate:
            self.windows.get(ANY_QUEUE, group, its.per_ms, now_ms).add(now_ms)
            self.windows.schedule(ANY_QUEUE, group, its.rate, now_ms)
        if settings is not None and settings.by_groups and settings.group_rate:
            self.windows.get(queue.name, group, settings.group_per_ms, now_ms).add(now_ms)
            self.windows.schedule(queue.name, group, settings.group_rate, now_ms)

    def look_at(self, name: str, queue: Queue | None, group: str, now_ms: int) -> None:
        """Update a window that is due or whose rate has changed. `queue`: the one of this name, if any.

        Earlier hand-outs keep counting for their full time, even if the rate is removed for a while.
        """
        window = self.windows.find(name, group)
        if window is None:
            return
        rate = per_ms = 0
        if name == ANY_QUEUE:
            its = self.table.of(group)
            rate, per_ms = its.rate, its.per_ms
        elif queue is not None and queue.settings is not None and queue.settings.by_groups:
            rate, per_ms = queue.settings.group_rate, queue.settings.group_per_ms
        if per_ms:
            window.resize(slot_of(per_ms), now_ms)
        self.windows.schedule(name, group, rate, now_ms)

    def sleep(self, queue: Queue, group: str, until_ms: int, now_ms: int) -> None:
        """Close the group in this queue until `until_ms`."""
        settings = queue.settings
        assert settings is not None
        window = self.windows.get(queue.name, group, settings.group_per_ms, now_ms)
        self.windows.put_to_sleep(queue.name, group, window, max(window.sleep_until_ms, until_ms))
        self.windows.schedule(queue.name, group, settings.group_rate, now_ms)
