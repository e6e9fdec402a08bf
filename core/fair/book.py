"""The groups and levels, kept in step with the jobs of all queues (spec/fair 1).

The state and the collection of queues report each step of a job here, in pairs that undo each other. A group is offered
while it stands in its level. Of each group the places of its first jobs in open queues are listed; a level has in its
pool the groups of which there is one, and aside from it those kept back. So a choice among a hundred thousand queues or
groups costs no more than a search in sorted lists, and a group with jobs in as many queues moves as one.

In a queue with many groups only those that are next in their levels are listed, as all are listed anew when the queue
closes or opens.

What may concern any number of groups is done in portions: the first use, and RESUME (`tasks`).
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge

from msgspec import Struct
from msgspec.structs import replace
from sortedcontainers import SortedList

from sockpqd.core import limits
from sockpqd.core.fair.levels import Account, Levels
from sockpqd.core.fair.shelves import FEW, Key, Place, Shelf, group_of
from sockpqd.core.store.job import DelayedJob, Job, RunningJob
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue, Queues


class Task(Struct, gc=False):
    """Groups to be offered in portions: of this queue (None: of all, at the first use), behind the name `reached`."""

    queue: str | None
    reached: str = ""


class Scalars(Struct, gc=False, frozen=True):
    """What an account was before a batch: see FairBook.undo."""

    used_us: int
    level: int
    priority_us: int
    turn: int
    offered: bool
    idle_ms: int | None


class FairBook:
    """All groups."""

    __slots__ = (
        "_held", "_idle", "_left", "_moved", "_places", "_queues", "_saved", "_saved_levels", "accounts", "aside",
        "levels", "looked", "next_turn", "now_ms", "pool", "shelves", "started_ms", "tasks",
    )

    def __init__(self, queues: Queues, started_ms: int) -> None:
        self._queues = queues
        self.now_ms = started_ms                    # the replicated time
        self.started_ms = started_ms                # hand-outs that were under way then are charged from here on
        self.levels = Levels()
        self.accounts: dict[str, Account] = {}
        self.shelves: dict[str, Shelf] = {}         # by queue
        self.pool: dict[int, SortedList] = {}       # by level the keys of the offered groups that can give a job,
        self.aside: dict[int, SortedList] = {}      # and of those kept back by LIMIT, ITEMLIMIT, RATE or PAUSE
        self.next_turn = 1
        self.looked = 0                             # groups that choices have looked at in vain, ever
        self.tasks: list[Task] = []
        self._places: dict[str, JobList[Place]] = {}            # by group, in open queues; see Shelf.wanted
        self._idle: SortedList = SortedList()                   # (since, group) without unfinished jobs
        self._left: dict[str, None] = {}                        # groups that jobs have left: perhaps they are idle
        self._moved: dict[str, None] = {}                       # groups to be ranked anew, see rank_moved
        self._held: dict[str, None] | None = None               # groups to look at when a change is complete
        self._saved: dict[str, Scalars | None] | None = None    # accounts touched in a batch, as they were before
        self._saved_levels: tuple[Levels, int] | None = None

    # ---- READY jobs, as the collection of queues reports them

    def added(self, queue: Queue, job: Job, *, blocked: bool) -> None:
        """`job` became READY in `queue`, whose lists have it already; `blocked`: ITEMLIMIT withholds it."""
        group, name = group_of(job), queue.name
        shelf = self._shelf(queue)
        account = self._account(group)
        if group == name and shelf.ready is None and account.offered and (blocked or queue.ready.first is not job):
            return                      # nearly always
        if group != name:
            shelf.foreign_ready += 1
            shelf.foreign_waiting += 1
            account.waiting += 1
            account.queues[name] = None
            if blocked:
                shelf.withhold(group, 1)
        if account.idle_ms is not None:
            self._busy(account)
        if not blocked:
            shelf.add(job, group)
            self._first_changed(shelf, group)
        if not account.offered and not _paused(queue) and not (self.tasks and self._not_reached(account, shelf)):
            self.offer(account)

    def removed(self, queue: Queue, job: Job, *, blocked: bool) -> None:
        """`job` is no longer READY in `queue`, whose lists do not have it any more."""
        group, name = group_of(job), queue.name
        shelf = self._shelf(queue)
        if group == name and shelf.ready is None and queue.ready.size:
            self._first_changed(shelf, group)
            return                      # nearly always
        account = self._account(group)
        if group != name:
            shelf.foreign_ready -= 1
            shelf.foreign_waiting -= 1
            account.waiting -= 1
            if blocked:
                shelf.withhold(group, -1)
        if not blocked:
            shelf.remove(job, group)
        if group != name and not shelf.jobs_of(group):
            del account.queues[name]
        if account.offered and not self.has_ready(account):
            if self._held is None:
                self.withdraw(account)
            else:
                self._held[group] = None
        if not blocked:
            self._first_changed(shelf, group)
        if shelf.empty:
            del self.shelves[name]
        self._left[group] = None

    def hold(self) -> None:
        """READY jobs are about to be replaced: no group leaves its level before `release`."""
        self._held = {}

    def release(self) -> None:
        """READY jobs were replaced: groups that have none any more leave their levels."""
        held, self._held = self._held or {}, None
        for group in held:
            account = self.accounts[group]
            if account.offered and not self.has_ready(account):
                self.withdraw(account)

    def eligible(self, queue: Queue, job: Job, *, now: bool) -> None:
        """ITEMLIMIT no longer withholds this READY job, or does so from `now` on False."""
        group = group_of(job)
        shelf = self._shelf(queue)
        if group != queue.name:
            shelf.withhold(group, -1 if now else 1)
        if now:
            shelf.add(job, group)
        else:
            shelf.remove(job, group)
        self._first_changed(shelf, group)

    # ---- which jobs are next

    def refresh(self, queue: Queue) -> None:
        """The queue was closed or opened."""
        shelf = self.shelves.get(queue.name)
        if shelf is None:
            return
        if shelf.ready is None:
            self._first_changed(shelf, queue.name)
        else:
            self._relist(shelf)

    def _first_changed(self, shelf: Shelf, group: str) -> None:
        """The first job of the group in this queue may be another one."""
        if shelf.ranking is not None:
            self._rank(shelf, group)
            if shelf.ready is None or len(shelf.ready) <= FEW // 2:
                self._end_ranking(shelf)
            self._relist(shelf)
        elif shelf.ready is not None and len(shelf.ready) > FEW:
            self._begin_ranking(shelf)
        else:
            place = None if shelf.queue.front is None else shelf.place(group)
            if place != shelf.listed.get(group):
                self._list(shelf, group, place)

    def _relist(self, shelf: Shelf) -> None:
        """List the places that the shelf wants to have listed, and no others."""
        wanted = shelf.wanted()
        if wanted == shelf.listed:
            return
        for group in [name for name in shelf.listed if name not in wanted]:
            self._list(shelf, group, None)
        for group, place in wanted.items():
            if shelf.listed.get(group) != place:
                self._list(shelf, group, place)

    def _list(self, shelf: Shelf, group: str, place: Place | None) -> None:
        """List this place for the group in this queue, or none."""
        places, before = self._places.get(group), shelf.listed.get(group)
        if place is None:
            assert places is not None
            assert before is not None
            del shelf.listed[group]
            places.remove(before)
            if not places.size:
                del self._places[group]
                self._move(group, self.pool, self.aside)
            return
        shelf.listed[group] = place
        if places is None:
            places = self._places[group] = JobList()
            places.add(place)
            self._move(group, self.aside, self.pool)
            return
        if before is not None:
            places.remove(before)
        places.add(place)

    def _move(self, group: str, source: dict[int, SortedList], target: dict[int, SortedList]) -> None:
        """The group, if it is offered, can give a job from now on, or cannot any more."""
        account = self.accounts.get(group)
        if account is not None and account.offered:
            _take_out(source, account.level, account.key)
            _put_in(target, account.level, account.key)

    def _begin_ranking(self, shelf: Shelf) -> None:
        """There are many groups in the queue now."""
        shelf.ranking = {}
        for group in shelf.groups():
            self._rank(shelf, group)
        self._relist(shelf)

    def _end_ranking(self, shelf: Shelf) -> None:
        """There are few groups in the queue now."""
        shelf.ranking = None
        for group in shelf.groups():
            if group in self.accounts:
                del self.accounts[group].ranked[shelf.queue.name]

    def _rank(self, shelf: Shelf, group: str) -> None:
        """The group stands among the many of this queue if it has a job to give there."""
        account, name = self.accounts.get(group), shelf.queue.name
        if account is None:
            return
        has = shelf.first(group) is not None
        if has == (name in account.ranked):
            return
        self._rank_anew(account)
        if has:
            account.ranked[name] = None
            if account.ranked_as is not None:
                shelf.rank(*account.ranked_as)
        else:
            del account.ranked[name]
            if account.ranked_as is not None:
                shelf.unrank(*account.ranked_as)

    def rank_moved(self) -> None:
        """Give the groups that have moved their right places in queues with many groups.

        That is done before each choice and at the end of an entry, as an operation may charge a group many times.
        """
        for group in self._moved:
            account = self.accounts.get(group)
            if account is not None:
                self._rank_anew(account)
        self._moved.clear()

    def _rank_anew(self, account: Account) -> None:
        before, after = account.ranked_as, (account.level, account.key) if account.offered else None
        if before == after:
            return
        account.ranked_as = after
        for name in account.ranked:
            shelf = self.shelves[name]
            if before is not None:
                shelf.unrank(*before)
            if after is not None:
                shelf.rank(*after)
            self._relist(shelf)

    def first_of(self, level: int) -> tuple[Key, Place] | None:
        """The group that is next in this level in any open queue, by its key; and the place of its first job."""
        pool = self.pool.get(level)
        if not pool:
            return None
        key: Key = pool[0]
        return key, self._places[key[2]].first

    def standing(self, level: int) -> int:
        """The number of groups offered in this level."""
        return len(self.pool.get(level, ())) + len(self.aside.get(level, ()))

    def offered_levels(self) -> list[int]:
        """The levels with an offered group."""
        return [*self.pool, *[level for level in self.aside if level not in self.pool]]

    # ---- other jobs

    def deferred(self, job: DelayedJob) -> None:
        """`job` became DELAYED."""
        self._count(job, waiting=1)

    def undeferred(self, job: DelayedJob) -> None:
        """`job` is no longer DELAYED."""
        self._count(job, waiting=-1)

    def started(self, job: RunningJob) -> None:
        """`job` became RUNNING."""
        self._count(job, running=1)

    def stopped(self, job: RunningJob) -> None:
        """`job` no longer runs."""
        self._count(job, running=-1)

    def _count(self, job: DelayedJob | RunningJob, waiting: int = 0, running: int = 0) -> None:
        group, name = group_of(job), job.queue
        if group == name:
            account = self.accounts.get(group)
            if account is None:
                return
        else:
            account = self._account(group)
            account.waiting += waiting
            account.running += running
            shelf = self._shelf(self._queues.by_name[name])
            shelf.foreign_waiting += waiting
            shelf.foreign_running += running
            if shelf.empty:
                del self.shelves[name]
        if waiting + running < 0:
            self._left[group] = None
        elif account.idle_ms is not None:
            self._busy(account)

    # ---- what groups are

    def _account(self, group: str) -> Account:
        account = self.accounts.get(group)
        if account is None:
            if self._saved is not None:
                self._save(group)
            account = self.accounts[group] = Account(group)
            self.levels.standing[0] += 1
            shelf = self.shelves.get(group)
            if shelf is not None and shelf.ranking is not None:
                self._rank(shelf, group)
        return account

    def _shelf(self, queue: Queue) -> Shelf:
        shelf = self.shelves.get(queue.name)
        if shelf is None:
            shelf = self.shelves[queue.name] = Shelf(queue)
        return shelf

    def _own_ready(self, group: str) -> int:
        """The number of READY jobs of the group in the queue of its name."""
        queue = self._queues.by_name.get(group)
        if queue is None:
            return 0
        shelf = self.shelves.get(group)
        return queue.ready_count - (0 if shelf is None else shelf.foreign_ready)

    def counts(self, group: str) -> tuple[int, int]:
        """The jobs of the group that are READY or DELAYED, and those that are RUNNING."""
        account, queue, shelf = self.accounts.get(group), self._queues.by_name.get(group), self.shelves.get(group)
        waiting, running = (0, 0) if account is None else (account.waiting, account.running)
        if queue is not None:
            waiting += queue.ready_count + queue.deferred - (0 if shelf is None else shelf.foreign_waiting)
            running += queue.running - (0 if shelf is None else shelf.foreign_running)
        return waiting, running

    def _not_reached(self, account: Account, shelf: Shelf) -> bool:
        """Whether the first use has not offered this group yet, although it has had a READY job since then."""
        own = self._queues.by_name.get(account.name)
        if own is None or _paused(own) or self._own_ready(account.name) <= (shelf.queue is own):
            return False
        return any(task.queue is None and account.name > task.reached for task in self.tasks)

    def _busy(self, account: Account) -> None:
        self._save(account.name)
        self._idle.remove((account.idle_ms, account.name))
        account.idle_ms = None

    def end_entry(self) -> None:
        """An entry is executed."""
        self.rank_moved()
        self.note_idle()

    def note_idle(self) -> None:
        """What is due before an entry is done, or the entry: groups that have no job left are idle from now on."""
        for group in self._left:
            account = self.accounts.get(group)
            if account is not None and account.idle_ms is None and self.counts(group) == (0, 0):
                account.idle_ms = self.now_ms
                self._idle.add((account.idle_ms, group))
        self._left.clear()

    def forget(self, clock_ms: int, most: int) -> int:
        """Forget groups that have had no unfinished job for long, `most` of them at most; returns how many."""
        for forgotten in range(most):
            if not self._idle or self._idle[0][0] + self.levels.settings.keep_ms > clock_ms:
                return forgotten
            _, group = self._idle.pop(0)
            self.levels.standing[self.accounts.pop(group).level] -= 1
        return most

    @property
    def unfinished(self) -> int:
        """The number of accounts whose groups have an unfinished job."""
        return len(self.accounts) - len(self._idle)

    def is_over(self, account: Account, clock_ms: int) -> bool:
        """Whether the group has had no unfinished job for long, so that it begins anew if it comes back."""
        return account.idle_ms is not None and account.idle_ms + self.levels.settings.keep_ms <= clock_ms

    def next_due_ms(self, clock_ms: int) -> int | None:
        """When a group is to be forgotten, or groups are to be offered; rounded up, as forgetting only frees memory."""
        if self.tasks:
            return clock_ms
        if not self._idle:
            return None
        bits = limits.RETAINED_KEY_BITS
        due_ms: int = self._idle[0][0] + self.levels.settings.keep_ms
        return (due_ms + (1 << bits) - 1) >> bits << bits

    # ---- offers

    def offer(self, account: Account) -> None:
        """The group takes its place in its level."""
        if self._saved is not None:
            self._save(account.name)
        level, levels = account.level, self.levels
        if level not in self.pool and level not in self.aside:
            levels.refill(level)
        least = levels.least_us[level]
        if least is not None and account.priority_us < least:
            account.priority_us = least
        account.turn = self._new_turn()
        self._stand(account)

    def offer_now(self, group: str) -> None:
        """Offer a group that has a READY job before its portion comes."""
        self._see_own(group)
        self.offer(self._account(group))

    def _see_own(self, group: str) -> None:
        """List the jobs in the queue of this name: they may be older than the first use."""
        queue = self._queues.by_name.get(group)
        if queue is not None and queue.ready_count:
            self._first_changed(self._shelf(queue), group)

    def _stand(self, account: Account) -> None:
        account.offered = True
        _put_in(self.pool if account.name in self._places else self.aside, account.level, account.key)
        if account.ranked:
            self._moved[account.name] = None

    def withdraw(self, account: Account) -> None:
        """The group leaves its level."""
        if self._saved is not None:
            self._save(account.name)
        account.offered = False
        _take_out(self.pool if account.name in self._places else self.aside, account.level, account.key)
        if account.ranked:
            self._moved[account.name] = None

    @property
    def any_paused(self) -> bool:
        """Whether some queue is paused."""
        return self._queues.paused > 0

    def all_paused(self, account: Account) -> bool:
        """Whether all READY jobs of the group are in queues that are paused."""
        if self._own_ready(account.name) and not _paused(self._queues.by_name[account.name]):
            return False
        return all(_paused(self._queues.by_name[name]) for name in account.queues)

    def _new_turn(self) -> int:
        self.next_turn += 1
        return self.next_turn - 1

    def renew(self, account: Account) -> None:
        """The group was chosen: it goes behind its equals."""
        least = self.levels.least_us[account.level]
        priority_us = account.priority_us if least is None else max(account.priority_us, least)
        self.levels.least_us[account.level] = priority_us
        self.levels.selected[account.level] += 1
        self._rekey(account, priority_us, self._new_turn())

    def _rekey(self, account: Account, priority_us: int, turn: int) -> None:
        """Give an offered group another place in its level."""
        if self._saved is not None:
            self._save(account.name)
        level, before = account.level, account.key
        account.priority_us, account.turn = priority_us, turn
        keys = (self.pool if account.name in self._places else self.aside)[level]
        keys.remove(before)
        keys.add(account.key)
        if account.ranked:
            self._moved[account.name] = None

    # ---- time

    def charge(self, group: str, run_us: int) -> int:
        """A hand-out of the group has run for this long, or since its last charge.

        Returns in how many queues with many groups it moves.
        """
        account = self._account(group)
        if self._saved is not None:
            self._save(group)
        if not account.offered:
            self.levels.charge(account, run_us)
            self._left[group] = None
            return 0
        level, priority_us = account.level, account.priority_us
        self.levels.charge(account, run_us)
        new_level, new_priority_us = account.level, account.priority_us
        account.level, account.priority_us = level, priority_us
        if new_level != level:
            self.withdraw(account)
            account.level, account.priority_us = new_level, new_priority_us
            self.offer(account)
        elif new_priority_us != priority_us:
            self._rekey(account, new_priority_us, account.turn)
        return len(account.ranked)

    # ---- portions

    def begin(self) -> None:
        """The first use: offer the groups of the READY jobs, which are all of the names of their queues."""
        self.tasks.append(Task(None))
        self.go_on(limits.PORTION_MAX)

    def resumed(self, queue: Queue) -> None:
        """The queue is no longer paused: the groups that have left their levels return."""
        self.tasks = [task for task in self.tasks if task.queue != queue.name]
        task = Task(queue.name)
        self.tasks.append(task)
        if not self._portion(task, limits.PORTION_MAX)[1]:
            self.tasks.remove(task)

    def go_on(self, most: int) -> int:
        """Offer some more of the groups that wait for it, `most` at most; returns how many."""
        left = most
        while self.tasks and left:
            offered, more = self._portion(self.tasks[0], left)
            left -= offered
            if more:
                break
            del self.tasks[0]
        return most - left

    def _portion(self, task: Task, most: int) -> tuple[int, bool]:
        """Offer up to `most` groups of the task; returns how many there were, and whether there may be more."""
        offered = 0
        for looked, name in enumerate(self._names_of(task)):
            if offered == most or looked == limits.LOOKED_MAX:
                return offered, True
            task.reached = name
            if self._returns(name):
                self.offer_now(name)
                offered += 1
        return offered, False

    def has_ready(self, account: Account) -> bool:
        """Whether the group has a READY job."""
        return bool(account.queues) or self._own_ready(account.name) > 0

    def _returns(self, group: str) -> bool:
        """Whether the group is to be offered."""
        account = self.accounts.get(group)
        if account is None:
            return self._own_ready(group) > 0 and not _paused(self._queues.by_name[group])
        if account.offered:
            return False
        return self.has_ready(account) and not self.all_paused(account)

    def _names_of(self, task: Task) -> Iterable[str]:
        """The groups that have READY jobs in the queue, or in any at the first use: those not reached yet, sorted."""
        behind = (task.reached, None, (False, True))
        if task.queue is None:
            return merge(self._queues.nonempty.irange(*behind), self._closed(task.reached))
        shelf = self.shelves.get(task.queue)
        own = [task.queue] if task.queue > task.reached else []
        foreign = () if shelf is None else (one for one in (shelf.ready, shelf.blocked) if one is not None)
        return merge(own, *[groups.irange(*behind) for groups in foreign])

    def _closed(self, reached: str) -> list[str]:
        """The queues behind `reached` that have READY jobs and hand out none: they have settings."""
        by_name = self._queues.by_name
        return sorted(
            name for name in self._queues.settings
            if name > reached and name in by_name and by_name[name].front is None and by_name[name].ready_count
        )

    # ---- a restart

    def restore(self, account: Account) -> None:
        """Add an account of a snapshot, as its jobs are counted and in place already."""
        known = self.accounts.pop(account.name, None)
        if known is not None:
            self.levels.standing[known.level] -= 1
            account.waiting, account.running, account.queues = known.waiting, known.running, known.queues
        self.accounts[account.name] = account
        self.levels.standing[account.level] += 1
        if account.idle_ms is not None:
            self._idle.add((account.idle_ms, account.name))

    def restore_ready(self, queue: Queue, jobs: list[Job], blocked: set[int]) -> None:
        """These READY jobs of the queue are of groups of other names; `blocked`: the seqs of those withheld."""
        shelf = self._shelf(queue)
        eligible: list[Job] = []
        for job in jobs:
            group = group_of(job)
            account = self._account(group)
            account.waiting += 1
            account.queues[queue.name] = None
            if job.seq in blocked:
                shelf.withhold(group, 1)
            else:
                eligible.append(job)
        shelf.foreign_ready += len(jobs)
        shelf.foreign_waiting += len(jobs)
        if eligible:
            shelf.restore(eligible)

    def end_restore(self) -> None:
        """All accounts are there: their jobs are listed, and those offered take their places."""
        self._left.clear()
        offered = [account for account in self.accounts.values() if account.offered]
        for account in offered:
            account.offered = False
        for queue in self._queues.by_name.values():
            if queue.ready_count:
                shelf = self._shelf(queue)
                if shelf.ready is not None and len(shelf.ready) > FEW:
                    self._begin_ranking(shelf)
                else:
                    self._relist(shelf)
        for account in offered:
            self._stand(account)
        self.rank_moved()

    # ---- batches that may be undone

    def save(self) -> None:
        """Remember from now on what `undo` needs."""
        self._saved = {}
        levels = self.levels
        self._saved_levels = (
            replace(
                levels, time_us=[*levels.time_us], least_us=[*levels.least_us], selected=[*levels.selected],
                standing=[*levels.standing],
            ), self.next_turn,
        )

    def commit(self) -> None:
        """Nothing needs to be undone."""
        self._saved = self._saved_levels = None

    def undo(self) -> None:
        """The jobs are again where they were at `save`; so are now times, priorities, and turns."""
        saved, levels = self._saved, self._saved_levels
        assert saved is not None
        assert levels is not None
        self.commit()
        for name in saved:
            account = self.accounts.get(name)
            if account is not None and account.offered:
                self.withdraw(account)
        self.levels, self.next_turn = levels
        for name, before in saved.items():
            account = self.accounts.get(name)
            if account is not None and account.idle_ms is not None:
                self._idle.remove((account.idle_ms, name))
                account.idle_ms = None
            if before is None:
                self.accounts.pop(name, None)
                continue
            account = self.accounts.setdefault(name, Account(name))
            account.used_us, account.level, account.idle_ms = before.used_us, before.level, before.idle_ms
            account.priority_us, account.turn = before.priority_us, before.turn
            if account.idle_ms is not None:
                self._idle.add((account.idle_ms, name))
            if before.offered:
                self._stand(account)

    def _save(self, group: str) -> None:
        if self._saved is not None and group not in self._saved:
            account = self.accounts.get(group)
            self._saved[group] = None if account is None else Scalars(
                account.used_us, account.level, account.priority_us, account.turn, account.offered, account.idle_ms,
            )


def _paused(queue: Queue) -> bool:
    return queue.settings is not None and queue.settings.paused_out


def _put_in(levels: dict[int, SortedList], level: int, key: Key) -> None:
    keys = levels.get(level)
    if keys is None:
        keys = levels[level] = SortedList()
    keys.add(key)


def _take_out(levels: dict[int, SortedList], level: int, key: Key) -> None:
    """The level is there as long as it has a group."""
    keys = levels[level]
    keys.remove(key)
    if not keys:
        del levels[level]
