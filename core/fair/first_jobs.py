"""The first jobs of each group in open queues, which show the groups that have a job to hand out.

A queue with many groups lists only those that are next in their levels, because everything is listed again when the
queue closes or opens. Their ranking follows the levels (`rank_moved`).

A group that is one of the many of more than WIDE queues is not ranked in them, so that it opens, closes and moves in
one step: each of these queues lists it, and compares its wide groups one by one. There are few of them, as each has
that many jobs.

The ranking, and which groups are wide, follow from the jobs alone and not from their history: they determine the work
that a command is charged for, which must be the same on a node that started from a snapshot.
"""

from __future__ import annotations

from sockpqd.core.fair.levels import GroupAccount
from sockpqd.core.fair.offered import OfferedGroups
from sockpqd.core.fair.place_order import PlaceOrder
from sockpqd.core.fair.queue_groups import FEW, Place, QueueGroups
from sockpqd.core.ops.queues import Sched
from sockpqd.core.store.job_list import JobList

WIDE = 256      # a group is ranked in up to this many queues


class FirstJobs:
    """Lists the places of first jobs by group, and moves groups between the runnable and blocked ones of a level.

    `relisted` counts the places listed again, except for the current command's own jobs.
    """

    __slots__ = ("_accounts", "_moved", "_offered", "_places", "_queue_groups", "relisted")

    def __init__(
        self, accounts: dict[str, GroupAccount], queue_groups: dict[str, QueueGroups], offered: OfferedGroups,
    ) -> None:
        self._accounts = accounts
        self._queue_groups = queue_groups
        self._offered = offered
        self._places: dict[str, JobList[Place]] = {}    # by group, in open queues; see QueueGroups.wanted
        self._moved: dict[str, None] = {}               # groups to be re-ranked, see rank_moved
        self.relisted = 0

    def has(self, account: GroupAccount) -> bool:
        """Return whether the group is open and an open queue has a job of it to hand out."""
        return account.open and account.name in self._places

    def first(self, group: str) -> Place:
        """Return the place of the first job of a group that has one."""
        return self._places[group].first

    def places(self, group: str) -> JobList[Place]:
        """Return the places of the first jobs of a group that has one, in their order."""
        return self._places[group]

    def changed(self, groups: QueueGroups, group: str) -> None:
        """Record that the first job of the group in this queue may have changed."""
        if groups.ranking is not None:
            self.rank(groups, group)
            groups.reorder(group)
            if groups.ready is None or len(groups.ready) <= FEW:
                self._end_ranking(groups)
            self._relist(groups)
            self._show_wide(groups)
        elif groups.ready is not None and len(groups.ready) > FEW:
            self._begin_ranking(groups)
        else:
            place = None if groups.queue.front is None else groups.place(group)
            if place != groups.listed.get(group):
                self._list(groups, group, place)

    def queue_changed(self, groups: QueueGroups) -> None:
        """Record that the queue was closed or opened."""
        if groups.ready is None:
            self.changed(groups, groups.queue.name)
            return
        self._relist(groups)
        self._show_wide(groups)

    def restore(self, groups: QueueGroups) -> None:
        """List the first jobs of a queue restored from a snapshot."""
        if groups.ready is not None and len(groups.ready) > FEW:
            self._begin_ranking(groups)
        else:
            self._relist(groups)

    def _relist(self, groups: QueueGroups) -> None:
        """List exactly the places of this queue that `QueueGroups.wanted` returns."""
        wanted = groups.wanted()
        if wanted == groups.listed:
            return
        for group in [name for name in groups.listed if name not in wanted]:
            self._list(groups, group, None)
        for group, place in wanted.items():
            if groups.listed.get(group) != place:
                self._list(groups, group, place)

    def _list(self, groups: QueueGroups, group: str, place: Place | None) -> None:
        """List this place for the group in this queue; None removes the entry."""
        before = groups.listed.get(group)
        if place is None:
            del groups.listed[group]
        else:
            groups.listed[group] = place
        self._replace(group, before, place)

    def _list_wide(self, groups: QueueGroups, group: str) -> None:
        """List the place of a wide group in this queue, if the queue is open."""
        before, place = groups.wide[group], None if groups.queue.front is None else groups.place(group)
        if place != before:
            groups.wide[group] = place
            self._replace(group, before, place)

    def _show_wide(self, groups: QueueGroups) -> None:
        """List all wide groups of this queue if it has been opened, or none of them if it has been closed."""
        shown = groups.queue.front is not None
        if shown != groups.shown:
            groups.shown = shown
            self.relisted += len(groups.wide)
            for group in groups.wide:
                self._list_wide(groups, group)

    def _replace(self, group: str, before: Place | None, place: Place | None) -> None:
        """Replace the place of a group in one queue; None: it has none."""
        places = self._places.get(group)
        if places is None:
            if place is not None:
                places = self._places[group] = JobList()
                places.add(place)
                self._move(group, runnable=True)
            return
        if before is not None:
            places.remove(before)
        if place is not None:
            places.add(place)
        elif not places.size:
            del self._places[group]
            self._move(group, runnable=False)

    def _move(self, group: str, *, runnable: bool) -> None:
        """Move the group, if it is offered, to the runnable or the blocked list of its level."""
        account = self._accounts.get(group)
        if account is not None and account.offered and account.open:
            self._offered.move(account, runnable=runnable)

    def opened(self, account: GroupAccount, *, now: bool) -> None:
        """Open the group, or close it (`now` False), for all its queues in one step.

        Only queues that rank it, which are WIDE at most, must add or remove it.
        """
        account.open = now
        if account.offered and account.name in self._places:
            self._offered.move(account, runnable=now)
        self.moved(account)
        for name in () if account.wide else account.ranked:
            self._queue_groups[name].reorder(account.name)

    # ---- ranking in queues with many groups

    def moved(self, account: GroupAccount) -> None:
        """Record that the group has changed or lost its place in its level."""
        if account.moves:
            self._moved[account.name] = None

    def rank_moved(self) -> None:
        """Re-rank the groups that have moved, in queues with many groups.

        Called before each choice and at the end of an entry, as an operation may charge a group many times.
        """
        for group in self._moved:
            account = self._accounts.get(group)
            if account is not None:
                self._rank_again(account)
        self._moved.clear()

    def rank(self, groups: QueueGroups, group: str) -> None:
        """Rank the group among the many of this queue if it has a job to hand out there, otherwise remove its rank."""
        account, name = self._accounts.get(group), groups.queue.name
        if account is None:
            return
        has = groups.place(group) is not None
        if has == (name in account.ranked):
            if has and account.wide:
                self._list_wide(groups, group)
            return
        self._rank_again(account)
        if has:
            if len(account.ranked) == WIDE:
                self._widen(account)
            account.ranked[name] = None
            if account.wide:
                self._widen_in(groups, group)
            elif account.ranked_as is not None:
                groups.rank(*account.ranked_as)
            return
        if account.wide:
            self._replace(group, groups.wide.pop(group), None)
        elif account.ranked_as is not None:
            groups.unrank(*account.ranked_as)
        self._leave(account, name)

    def _leave(self, account: GroupAccount, queue: str) -> None:
        """Record that the group is no longer one of the many of this queue."""
        del account.ranked[queue]
        if account.wide and len(account.ranked) <= WIDE:
            self._narrow(account)

    def _widen(self, account: GroupAccount) -> None:
        """List the group in its queues instead of ranking it."""
        self.relisted += len(account.ranked)
        ranked_as, account.ranked_as, account.wide = account.ranked_as, None, True
        self._moved.pop(account.name, None)
        for name in account.ranked:
            groups = self._queue_groups[name]
            if ranked_as is not None:
                groups.unrank(*ranked_as)
            self._widen_in(groups, account.name)
            self._relist(groups)

    def _widen_in(self, groups: QueueGroups, group: str) -> None:
        self._show_wide(groups)         # before it is one of them: without any, `shown` may be out of date
        groups.wide[group] = groups.listed.pop(group, None)
        if groups.order is not None:
            groups.order.set(group, None)
        self._list_wide(groups, group)

    def _narrow(self, account: GroupAccount) -> None:
        """Rank the group in its queues instead of listing it."""
        self.relisted += len(account.ranked)
        account.wide = False
        for name in account.ranked:
            groups = self._queue_groups[name]
            place = groups.wide.pop(account.name)
            if place is not None:
                groups.listed[account.name] = place
            groups.reorder(account.name)
        self._rank_again(account)
        if account.ranked_as is None:
            for name in account.ranked:
                self._relist(self._queue_groups[name])

    def _rank_again(self, account: GroupAccount) -> None:
        if account.wide:
            return
        before, after = account.ranked_as, (account.level, account.key) if account.offered and account.open else None
        if before == after:
            return
        account.ranked_as = after
        for name in account.ranked:
            groups = self._queue_groups[name]
            if before is not None:
                groups.unrank(*before)
            if after is not None:
                groups.rank(*after)
            self._relist(groups)

    def _begin_ranking(self, groups: QueueGroups) -> None:
        """Rank the groups of a queue that now has many of them."""
        groups.ranking = {}
        for group in groups.names():
            self.rank(groups, group)
        self.order(groups)
        self._relist(groups)

    def order(self, groups: QueueGroups) -> None:
        """Begin or stop ordering the groups by their first jobs, as the settings of the queue say."""
        settings = groups.queue.settings
        by_place = groups.ranking is not None and settings is not None and settings.sched is Sched.GROUPS
        if by_place == (groups.order is not None):
            return
        groups.order = PlaceOrder() if by_place else None
        for group in groups.names() if by_place else ():
            groups.reorder(group)

    def _end_ranking(self, groups: QueueGroups) -> None:
        """Stop ranking the groups of a queue that now has only a few."""
        groups.ranking = groups.order = None
        wide, groups.wide = groups.wide, {}
        groups.listed.update((group, place) for group, place in wide.items() if place is not None)
        for group in groups.names():
            account = self._accounts.get(group)
            if account is not None and groups.queue.name in account.ranked:
                self._leave(account, groups.queue.name)
