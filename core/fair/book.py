"""The groups and levels, kept in step with the jobs of all queues (spec/fair 1).

The state and the collection of queues report each step of a job here, in pairs that undo each other. A group is offered
while it stands in its level. The pool has, for each level, the groups that are next in one of the open queues; so a
choice among a hundred thousand queues or groups costs no more than a search in sorted lists.

What may concern any number of groups is done in portions: the first use, and RESUME (`tasks`).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace
from sortedcontainers import SortedDict, SortedList

from core import limits
from core.fair.levels import Account, Levels
from core.fair.shelves import Head, Shelf, group_of
from core.store.job import DelayedJob, Job, RunningJob
from core.store.job_list import JobList
from core.store.queues import Queue, Queues


class Task(Struct, gc=False):
    """Groups to be offered in portions: of this queue (None: of all, at the first use), behind the name `reached`."""

    queue: str | None
    reached: str = ""
    names: list[str] | None = None          # those left, the last one first; None: to be found


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
        "_heads", "_held", "_idle", "_pool", "_queues", "_saved", "_saved_levels", "accounts", "levels", "next_turn",
        "now_ms", "offered", "shelves", "started_ms", "tasks",
    )

    def __init__(self, queues: Queues, started_ms: int) -> None:
        self._queues = queues
        self.now_ms = started_ms                    # the replicated time
        self.started_ms = started_ms                # hand-outs that were under way then are charged from here on
        self.levels = Levels()
        self.accounts: dict[str, Account] = {}
        self.shelves: dict[str, Shelf] = {}         # by queue
        self.offered: dict[int, SortedList] = {}    # the keys of the groups that stand in each level
        self.next_turn = 1
        self.tasks: list[Task] = []
        self._heads: dict[int, dict[str, SortedList]] = {}      # level -> group -> (rank, seq, queue)
        self._pool: dict[int, SortedList] = {}                  # level -> the keys of these groups
        self._idle: SortedList = SortedList()                   # (since, group) without unfinished jobs
        self._held: dict[str, None] | None = None               # groups to look at when a change is complete
        self._saved: dict[str, Scalars | None] | None = None    # accounts touched in a batch, as they were before
        self._saved_levels: tuple[Levels, int] | None = None

    # ---- READY jobs, as the collection of queues reports them

    def added(self, queue: Queue, job: Job, *, blocked: bool) -> None:
        """`job` became READY in `queue`, whose lists have it already; `blocked`: ITEMLIMIT withholds it."""
        group = group_of(job)
        shelf = self._shelf(queue)
        account = self._account(group)
        if not blocked:
            shelf.add(job, group)
        elif group != queue.name:
            shelf.blocked[group] = shelf.blocked.get(group, 0) + 1
        if group != queue.name:
            shelf.foreign_ready += 1
            shelf.foreign_waiting += 1
            account.waiting += 1
            account.queues[queue.name] = None
        self._busy(account)
        if account.offered:
            if not blocked:
                shelf.join(account, self.accounts)
        elif not _paused(queue) and not self._not_reached(account, shelf):
            self.offer(account)
        self.refresh(queue)

    def removed(self, queue: Queue, job: Job, *, blocked: bool) -> None:
        """`job` is no longer READY in `queue`, whose lists do not have it any more."""
        group = group_of(job)
        shelf = self._shelf(queue)
        account = self._account(group)
        if blocked and group != queue.name:
            _take_one(shelf.blocked, group)
        if group != queue.name:
            shelf.foreign_ready -= 1
            shelf.foreign_waiting -= 1
            account.waiting -= 1
        if not blocked:
            shelf.remove(job, group)
        if group != queue.name and not shelf.jobs_of(group):
            del account.queues[queue.name]
        if account.offered:
            if not blocked and shelf.first(group) is None:
                shelf.leave(account, self.accounts)
            if not account.queues and not self._own_ready(group):
                if self._held is None:
                    self.withdraw(account)
                else:
                    self._held[group] = None
        self.refresh(queue)
        self._left(account, shelf)

    def hold(self) -> None:
        """READY jobs are about to be replaced: no group leaves its level before `release`."""
        self._held = {}

    def release(self) -> None:
        """READY jobs were replaced: groups that have none any more leave their levels."""
        held, self._held = self._held or {}, None
        for group in held:
            account = self.accounts[group]
            if account.offered and not account.queues and not self._own_ready(group):
                self.withdraw(account)

    def eligible(self, queue: Queue, job: Job, *, now: bool) -> None:
        """ITEMLIMIT no longer withholds this READY job, or does so from `now` on False."""
        group = group_of(job)
        shelf = self._shelf(queue)
        account = self._account(group)
        if now:
            if group != queue.name:
                _take_one(shelf.blocked, group)
            shelf.add(job, group)
            if account.offered:
                shelf.join(account, self.accounts)
        else:
            if group != queue.name:
                shelf.blocked[group] = shelf.blocked.get(group, 0) + 1
            shelf.remove(job, group)
            if account.offered and shelf.first(group) is None:
                shelf.leave(account, self.accounts)
        self.refresh(queue)

    def refresh(self, queue: Queue) -> None:
        """What the queue hands out next may be another job, or none: it was closed or opened, or its jobs changed."""
        shelf = self.shelves.get(queue.name)
        if shelf is None:
            return
        for level in {**shelf.heads, **shelf.levels}:
            head = None if queue.front is None else shelf.head(level, self.accounts)
            before = shelf.heads.get(level)
            if head == before:
                continue
            if before is not None:
                self._unlist(level, before, queue.name)
                del shelf.heads[level]
            if head is not None:
                shelf.heads[level] = head
                self._list(level, head, queue.name)

    def _list(self, level: int, head: Head, queue: str) -> None:
        group, rank, seq = head
        groups = self._heads.setdefault(level, {})
        places = groups.get(group)
        if places is None:
            places = groups[group] = SortedList()
            self._pool.setdefault(level, SortedList()).add(self.accounts[group].key)
        places.add((rank, seq, queue))

    def _unlist(self, level: int, head: Head, queue: str) -> None:
        group, rank, seq = head
        places = self._heads[level][group]
        places.remove((rank, seq, queue))
        if not places:
            del self._heads[level][group]
            self._pool[level].remove(self.accounts[group].key)

    def first_of(self, level: int) -> tuple[tuple[int, int, str], tuple[int, int, str]] | None:
        """The group that is next in this level in any open queue, by its key; and the place of its first job."""
        pool = self._pool.get(level)
        if not pool:
            return None
        key: tuple[int, int, str] = pool[0]
        return key, self._heads[level][key[2]][0]

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
        group = group_of(job)
        account = self._account(group) if group != job.queue else self.accounts.get(group)
        queue = self._queues.by_name[job.queue]
        if group != queue.name:
            assert account is not None
            account.waiting += waiting
            account.running += running
            shelf = self._shelf(queue)
            shelf.foreign_waiting += waiting
            shelf.foreign_running += running
        if account is not None:
            if waiting + running > 0:
                self._busy(account)
            else:
                self._left(account, self.shelves.get(queue.name))

    # ---- what groups are

    def _account(self, group: str) -> Account:
        account = self.accounts.get(group)
        if account is None:
            self._save(group)
            account = self.accounts[group] = Account(group)
            self.levels.standing[0] += 1
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
        if account.idle_ms is not None:
            self._save(account.name)
            self._idle.remove((account.idle_ms, account.name))
            account.idle_ms = None

    def _left(self, account: Account, shelf: Shelf | None) -> None:
        """A job has left the group and a queue: perhaps it was the last one."""
        if shelf is not None and shelf.empty:
            self.shelves.pop(shelf.queue.name, None)
        if account.idle_ms is None and self.counts(account.name) == (0, 0):
            self._save(account.name)
            account.idle_ms = self.now_ms
            self._idle.add((account.idle_ms, account.name))

    def forget(self, clock_ms: int, most: int) -> int:
        """Forget groups that have had no unfinished job for long, `most` of them at most; returns how many."""
        for forgotten in range(most):
            if not self._idle or self._idle[0][0] + self.levels.settings.keep_ms > clock_ms:
                return forgotten
            _, group = self._idle.pop(0)
            self.levels.standing[self.accounts.pop(group).level] -= 1
        return most

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
        self._save(account.name)
        level, levels = account.level, self.levels
        standing = self.offered.setdefault(level, SortedList())
        if not standing:
            levels.refill(level)
        least = levels.least_us[level]
        if least is not None and account.priority_us < least:
            account.priority_us = least
        account.turn = self._new_turn()
        self._stand(account)

    def offer_now(self, group: str) -> None:
        """Offer a group that has a READY job before its portion comes."""
        self.offer(self._account(group))

    def _stand(self, account: Account) -> None:
        account.offered = True
        self.offered.setdefault(account.level, SortedList()).add(account.key)
        for queue in self._queues_of(account):
            shelf = self._shelf(queue)
            if shelf.first(account.name) is not None:
                shelf.join(account, self.accounts)
                self.refresh(queue)

    def withdraw(self, account: Account) -> None:
        """The group leaves its level."""
        self._save(account.name)
        for queue in self._queues_of(account):
            shelf = self.shelves.get(queue.name)
            if shelf is not None:
                shelf.leave(account, self.accounts)
                self.refresh(queue)
        self.offered[account.level].remove(account.key)
        account.offered = False

    def _queues_of(self, account: Account) -> list[Queue]:
        """The queues in which the group has READY jobs."""
        by_name = self._queues.by_name
        names = list(account.queues)
        if account.name in by_name:
            names.append(account.name)
        return [by_name[name] for name in names]

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
        self._save(account.name)
        level, before = account.level, account.key
        account.priority_us, account.turn = priority_us, turn
        standing = self.offered[level]
        standing.remove(before)
        standing.add(account.key)
        if account.name in self._heads.get(level, ()):
            self._pool[level].remove(before)
            self._pool[level].add(account.key)
        for name in account.shared:
            shelf = self.shelves[name]
            shelf.ranking[level].remove(before)
            shelf.ranking[level].add(account.key)
            self.refresh(shelf.queue)

    # ---- time

    def charge(self, group: str, run_us: int) -> None:
        """A hand-out of the group has run for so long, or since its last charge."""
        account = self._account(group)
        self._save(group)
        if not account.offered:
            self.levels.charge(account, run_us)
            if account.idle_ms is None and self.counts(group) == (0, 0):
                self._left(account, None)
            return
        level, priority_us = account.level, account.priority_us
        self.levels.charge(account, run_us)
        new_level, new_priority_us = account.level, account.priority_us
        account.level, account.priority_us = level, priority_us
        if new_level == level:
            self._rekey(account, new_priority_us, account.turn)
        else:
            self.withdraw(account)
            account.level, account.priority_us = new_level, new_priority_us
            self.offer(account)

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
            if not more:
                del self.tasks[0]
        return most - left

    def _portion(self, task: Task, most: int) -> tuple[int, bool]:
        """Offer up to `most` groups of the task; returns how many there were, and whether there are more."""
        if task.names is None:
            task.names = sorted((name for name in self._names_of(task) if name > task.reached), reverse=True)
        names, offered = task.names, 0
        while names:
            name = names[-1]
            if self._returns(name):
                if offered == most:
                    return offered, True
                task.reached = name
                self.offer(self._account(name))
                offered += 1
            names.pop()
        return offered, False

    def _returns(self, group: str) -> bool:
        """Whether the group is to be offered."""
        account = self.accounts.get(group)
        if account is None:
            return self._own_ready(group) > 0 and not _paused(self._queues.by_name[group])
        ready = account.queues or self._own_ready(group)
        return bool(ready) and not account.offered and not self.all_paused(account)

    def _names_of(self, task: Task) -> list[str]:
        """The groups that have READY jobs in the queue, or in any at the first use."""
        if task.queue is None:
            return [name for name, queue in self._queues.by_name.items() if queue.ready_count]
        shelf = self.shelves.get(task.queue)
        return [task.queue] if shelf is None else [*{**dict(shelf.ready or {}), **shelf.blocked, task.queue: 0}]

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
        by_group: dict[str, list[Job]] = {}
        for job in jobs:
            group = group_of(job)
            account = self._account(group)
            account.waiting += 1
            account.queues[queue.name] = None
            if job.seq in blocked:
                shelf.blocked[group] = shelf.blocked.get(group, 0) + 1
            else:
                by_group.setdefault(group, []).append(job)
        shelf.foreign_ready += len(jobs)
        shelf.foreign_waiting += len(jobs)
        if by_group:
            own = [job for job in queue.ready if group_of(job) == queue.name]
            lists = {queue.name: own, **by_group} if own else by_group
            shelf.ready = SortedDict({group: JobList.of(ordered) for group, ordered in lists.items()})

    def end_restore(self) -> None:
        """All accounts are there: those offered take their places."""
        for account in self.accounts.values():
            if account.offered:
                self._stand(account)

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


def _take_one(counts: dict[str, int], name: str) -> None:
    """Count one less, and nothing at all if it was the last one."""
    if counts[name] == 1:
        del counts[name]
    else:
        counts[name] -= 1
