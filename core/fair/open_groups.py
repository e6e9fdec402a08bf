"""Updates the scheduler's lists when groups open and close, and notes openings for which clients may wait.

A group that is closed everywhere leaves the choice in one step, in however many queues it has jobs, and one that is
closed in one queue loses its place there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import nsmallest
from itertools import chain

from sockpqd.core.fair.first_jobs import FirstJobs
from sockpqd.core.fair.gates import GroupGates
from sockpqd.core.fair.group_order import GroupOrder, standing
from sockpqd.core.fair.group_settings import GroupTable
from sockpqd.core.fair.levels import GroupAccount
from sockpqd.core.fair.queue_groups import QueueGroups
from sockpqd.core.fair.rates import ANY_QUEUE, RateWindow
from sockpqd.core.ops.effects import Effects
from sockpqd.core.store.job import RunningJob, group_of
from sockpqd.core.store.queues import Queue, Queues

LOOKED_AT = 64          # groups counted exactly by `room`; with more, all jobs are assumed to be allowed


class OpenGroups:
    """Opens and closes groups. `running`: returns the RUNNING jobs of a group in all queues."""

    __slots__ = ("_accounts", "_firsts", "_giving", "_groups", "_opened", "_queue_groups", "_queues", "gates")

    def __init__(
        self, queues: Queues, accounts: dict[str, GroupAccount], queue_groups: dict[str, QueueGroups],
        firsts: FirstJobs, table: GroupTable, running: Callable[[str], int],
    ) -> None:
        self._queues = queues
        self._accounts = accounts
        self._queue_groups = queue_groups
        self._firsts = firsts
        self.gates = GroupGates(table, running)
        self._groups: dict[str, None] = {}          # opened in this entry,
        self._opened: dict[str, None] = {}          # and queues in which some were
        self._giving: dict[str, QueueGroups] = {}   # with GROUPORDER: queues from which the current command takes jobs

    def changed(self, group: str) -> None:
        """Open or close the group everywhere, as its settings, running jobs and rate say now."""
        opened, account = not self.gates.shut(group), self._accounts.get(group)
        if account is None:
            own = self._queue_groups.get(group)
            if own is not None:
                own.reorder(group)
        elif account.open != opened:
            self._firsts.opened(account, now=opened)
        if opened:
            self._groups[group] = None

    def changed_in(self, groups: QueueGroups, group: str) -> None:
        """Open or close the group in this queue."""
        self._firsts.changed(groups, group)
        if not self.gates.shut_in(groups, group):
            self._opened[groups.queue.name] = None

    def ran(self, queue: Queue, group: str, job: RunningJob, *, now: bool) -> None:
        """Record that this job of the group in this queue is RUNNING, or is no longer (`now` False)."""
        by_name, settings = self.gates.table.by_name, queue.settings
        if by_name and (its := by_name.get(group)) is not None and its.limit:
            self.changed(group)
        if settings is None or not settings.by_groups or not (settings.group_limit or settings.group_order):
            return
        if settings.group_order:
            self._note_place(queue, group, job, now=now)
        groups = self._queue_groups.get(queue.name)
        if groups is None:
            return
        if now:
            self._firsts.changed(groups, group)
        else:
            self.changed_in(groups, group)
            if groups.empty:
                del self._queue_groups[queue.name]

    def _note_place(self, queue: Queue, group: str, job: RunningJob, *, now: bool) -> None:
        groups = self._queue_groups.get(queue.name)
        if groups is None:
            groups = self._queue_groups[queue.name] = QueueGroups(queue, self.gates)
        if groups.in_order is None:
            groups.in_order = GroupOrder()
        if now:
            groups.in_order.start(group, standing(queue, job))
        else:
            groups.in_order.stop(group, standing(queue, job))

    def swapped(self, queue: Queue, group: str, old: RunningJob, new: RunningJob) -> None:
        """Record that the priority of a RUNNING job has changed."""
        groups = self._queue_groups.get(queue.name)
        if groups is not None and groups.in_order is not None:
            groups.in_order.stop(group, standing(queue, old))
            groups.in_order.start(group, standing(queue, new))
            self.changed_in(groups, group)

    def choose(self, queue: Queue, group: str) -> None:
        """Record that a job of the group, chosen by its group, is about to be handed out to the current command."""
        settings = queue.settings
        if settings is None or not settings.group_order or not settings.by_groups:
            return
        groups = self._queue_groups[queue.name]
        if groups.in_order is None:
            groups.in_order = GroupOrder()
        groups.in_order.choose(group)
        self._giving.pop(queue.name, None)
        self._giving[queue.name] = groups

    def giving(self) -> Iterable[tuple[QueueGroups, str]]:
        """Return the queues, latest first, from which the current command may take more jobs of a group, with it."""
        return self._going_on() if self._giving else ()

    def _going_on(self) -> Iterable[tuple[QueueGroups, str]]:
        for groups in reversed(self._giving.values()):
            group = groups.next_in_order()
            if group is not None:
                yield groups, group

    def settle(self) -> None:
        """End the current command: from now on the jobs handed out to it hold back the later ones of their groups."""
        for groups in self._giving.values():
            assert groups.in_order is not None
            for group in groups.in_order.settle():
                self._firsts.changed(groups, group)
        self._giving.clear()

    def gave(self, queue: Queue, group: str, now_ms: int) -> None:
        """Count a hand-out of the group by FAIR or GROUPS."""
        gates, settings = self.gates, queue.settings
        of_queue = settings is not None and settings.group_rate > 0 and settings.by_groups
        if not of_queue and not (gates.table.by_name and gates.table.of(group).rate):
            return
        gates.count(queue, group, now_ms)
        self.changed(group)
        groups = self._queue_groups.get(queue.name)
        if of_queue and groups is not None:
            self.changed_in(groups, group)

    def sleep(self, queue: Queue, group: str, until_ms: int, now_ms: int) -> None:
        """Hand out nothing of the group from this queue until `until_ms`, unless too many groups sleep already."""
        if self.gates.windows.has_room(queue.name, group):
            self.gates.sleep(queue, group, until_ms, now_ms)
            self._list(queue.name, group)

    def wake(self, group: str, now_ms: int, most: int) -> int:
        """End the sleep of the group in up to `most` queues, the first by name; returns their number."""
        windows = self.gates.windows
        asleep = (
            name for name in windows.asleep.get(group, ()) if windows.by_queue[name][group].sleep_until_ms > now_ms
        )
        names = nsmallest(most, asleep)
        for name in names:
            windows.put_to_sleep(name, group, windows.by_queue[name][group], 0)
            self.look_at(name, group, now_ms)
        return len(names)

    def set_window(self, queue_name: str, group: str, window: RateWindow | None) -> None:
        """Set the window of the group in this queue back to `window`, to undo a batch."""
        self.gates.windows.set(queue_name, group, window)
        self._list(queue_name, group)

    def _list(self, queue_name: str, group: str) -> None:
        """List the group as open or closed in this queue."""
        groups = self._queue_groups.get(queue_name)
        if groups is not None:
            self._firsts.changed(groups, group)

    def look_at(self, queue_name: str, group: str, now_ms: int) -> None:
        """Check the window of a rate again."""
        if queue_name == ANY_QUEUE:
            self.gates.look_at(ANY_QUEUE, None, group, now_ms)
            self.changed(group)
            return
        self.gates.look_at(queue_name, self._queues.find(queue_name), group, now_ms)
        groups = self._queue_groups.get(queue_name)
        if groups is not None:
            self.changed_in(groups, group)

    def pass_time(self, now_ms: int, most: int) -> int:
        """Check up to `most` windows that are due; returns how many."""
        for looked in range(most):
            due = self.gates.windows.first_due(now_ms)
            if due is None:
                return looked
            self.look_at(*due, now_ms)
        return most

    def configured(self, queue: Queue, running: Iterable[RunningJob], now_ms: int) -> None:
        """Apply changed group settings of the queue. `running`: its RUNNING jobs, if their places are needed."""
        groups = self._queue_groups.get(queue.name)
        if groups is not None:
            groups.in_order = None
        for job in running:
            self._note_place(queue, group_of(job), job, now=True)
        groups = self._queue_groups.get(queue.name)
        windows = self.gates.windows.by_queue.get(queue.name, {})
        for group in list(windows):
            self.gates.look_at(queue.name, queue, group, now_ms)
        if groups is not None:
            for group in list(groups.names()):
                self._firsts.changed(groups, group)
            self._firsts.order(groups)
            self._opened[queue.name] = None

    def report(self, effects: Effects) -> None:
        """Add what was opened in this entry to its effects."""
        if self._opened:
            effects.reopened.update(self._opened)
            self._opened.clear()
        if self._groups:
            effects.opened_groups = {**(effects.opened_groups or {}), **self._groups}
            self._groups.clear()

    def room(self, groups: QueueGroups, jobs: int) -> int:
        """Return the number of these jobs of a queue that its open groups allow it to hand out now.

        0 only if it can hand out none; with many groups a larger number may be an overestimate.
        """
        room = 0
        for looked, group in enumerate(_open_names(groups)):
            if looked == LOOKED_AT:
                in_order = groups.queue.settings is not None and groups.queue.settings.group_order
                return min(jobs, _open_count(groups)) if in_order else jobs
            room += self.gates.room(groups, group)
        return min(room, jobs)


def _open_names(groups: QueueGroups) -> Iterable[str]:
    """Return the groups of the queue that have a job to hand out; if there are many, only open ones."""
    if groups.ranking is None:
        return groups.names()
    if groups.order is not None:
        return chain(groups.order.names(), groups.open_wide())
    return chain((key[2] for keys in groups.ranking.values() for key in keys), groups.open_wide())


def _open_count(groups: QueueGroups) -> int:
    """Return the number of open groups of a queue that has many."""
    if groups.ranking is None:
        return 0
    ranked = groups.order.size if groups.order is not None else sum([len(keys) for keys in groups.ranking.values()])
    return ranked + sum(1 for _ in groups.open_wide())
