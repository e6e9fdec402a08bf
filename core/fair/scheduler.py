"""The groups and levels, kept in step with the jobs of all queues (spec/fair 1).

The state and the collection of queues report each transition of a job here, by pairs of inverse calls. A group is
offered while it has a place in its level (offered.py). For each group the places of its first jobs in open queues are
listed (first_jobs.py). So a choice among a hundred thousand queues or groups costs only searches in sorted lists, and a
group with jobs in that many queues moves in one step.

Work that may touch any number of groups is split into portions: the first use, and RESUME (deferred_offers.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace
from sortedcontainers import SortedList

from sockpqd.core import limits
from sockpqd.core.fair.deferred_offers import DeferredOffers
from sockpqd.core.fair.first_jobs import FirstJobs
from sockpqd.core.fair.group_settings import GroupTable
from sockpqd.core.fair.levels import GroupAccount, Levels
from sockpqd.core.fair.offered import OfferedGroups
from sockpqd.core.fair.open_groups import OpenGroups
from sockpqd.core.fair.queue_groups import WIDE_LOOKED, Key, Place, QueueGroups
from sockpqd.core.ops.effects import Effects
from sockpqd.core.ops.queues import Sched
from sockpqd.core.pages.grouped_ready import GroupedReady
from sockpqd.core.store.job import DelayedJob, Job, RunningJob, group_of
from sockpqd.core.store.queues import Queue, Queues


class Scalars(Struct, gc=False, frozen=True):
    """The values of an account before a batch: see FairScheduler.undo."""

    used_us: int
    level: int
    priority_ns: int
    turn: int
    offered: bool
    idle_ms: int | None


class FairScheduler:
    """The groups of one state, with the time that each has used and its place in its level."""

    __slots__ = (
        "_firsts", "_held", "_idle", "_left", "_queues", "_saved", "_saved_levels", "accounts", "levels", "looked",
        "next_turn", "now_ms", "offered", "offers", "open", "queue_groups", "started_ms",
    )

    def __init__(self, queues: Queues, started_ms: int, table: GroupTable) -> None:
        self._queues = queues
        self.now_ms = started_ms                    # the replicated time
        self.started_ms = started_ms                # hand-outs that were in progress then are charged from here on
        self.levels = Levels()
        self.accounts: dict[str, GroupAccount] = {}
        self.queue_groups: dict[str, QueueGroups] = {}          # by queue
        self.offered = OfferedGroups()
        self.offers = DeferredOffers(queues, self.queue_groups, self._returns, self.offer_now)
        self._firsts = FirstJobs(self.accounts, self.queue_groups, self.offered)
        self.open = OpenGroups(queues, self.accounts, self.queue_groups, self._firsts, table, self._running_of)
        self.next_turn = 1
        self.looked = 0                             # groups that choices have inspected in vain since the start
        self._idle: SortedList = SortedList()                   # (idle since, group): groups without unfinished jobs
        self._left: dict[str, None] = {}                        # groups that lost a job and may now be idle
        self._held: dict[str, None] | None = None               # groups to check at `release`; None: not held
        self._saved: dict[str, Scalars | None] | None = None    # accounts changed by a batch, with their values before
        self._saved_levels: tuple[Levels, int] | None = None

    # ---- READY jobs, as the collection of queues reports them

    def added(self, queue: Queue, job: Job, *, blocked: bool) -> None:
        """Add a job that became READY and is already in the lists of `queue`; `blocked`: ITEMLIMIT withholds it."""
        group, name = group_of(job), queue.name
        groups = self.groups_of(queue)
        account = self._account(group)
        if group == name and groups.ready is None and account.offered and (blocked or queue.ready.first is not job):
            return                      # nearly always
        if group != name:
            groups.foreign_ready += 1
            groups.foreign_waiting += 1
            account.waiting += 1
            account.queues[name] = None
            if blocked:
                groups.withhold(group, 1)
        if account.idle_ms is not None:
            self._busy(account)
        if not blocked:
            groups.add(job, group)
            self._firsts.changed(groups, group)
        if account.offered or _paused(queue) or (self.offers.tasks and self._not_reached(account, groups)):
            return
        self.offer(account)

    def removed(self, queue: Queue, job: Job, *, blocked: bool) -> None:
        """Remove a job that is no longer READY and has left the lists of `queue`."""
        group, name = group_of(job), queue.name
        groups = self.groups_of(queue)
        if group == name and groups.ready is None and queue.ready.size:
            self._firsts.changed(groups, group)
            return                      # nearly always
        account = self.accounts.get(group)      # None: the queue's jobs precede the first use of groups
        if group != name:
            assert account is not None
            groups.foreign_ready -= 1
            groups.foreign_waiting -= 1
            account.waiting -= 1
            if blocked:
                groups.withhold(group, -1)
        if not blocked:
            groups.remove()
        if account is not None and group != name and not groups.jobs_of(group):
            del account.queues[name]
        self._left_by_ready(account)
        if not blocked:
            self._firsts.changed(groups, group)
        if groups.empty:
            del self.queue_groups[name]

    def dropped(self, queue: Queue) -> None:
        """Record that READY jobs of the group named after the queue were dropped unread, but not its first job."""
        name = queue.name
        groups = self.groups_of(queue)
        self._left_by_ready(self.accounts.get(name))
        self._firsts.changed(groups, name)

    def _left_by_ready(self, account: GroupAccount | None) -> None:
        """Record that the group lost READY jobs; without any it leaves its level, at `release` if groups are held."""
        if account is None:
            return
        if account.offered and not self.has_ready(account):
            if self._held is None:
                self.withdraw(account)
            else:
                self._held[account.name] = None
        self._left[account.name] = None

    def hold(self) -> None:
        """Keep all groups in their levels until `release`: READY jobs are about to be replaced."""
        self._held = {}

    def release(self) -> None:
        """Let groups without READY jobs leave their levels: the jobs have been replaced."""
        held, self._held = self._held or {}, None
        for group in held:
            account = self.accounts[group]
            if account.offered and not self.has_ready(account):
                self.withdraw(account)

    def eligible(self, queue: Queue, job: Job, *, now: bool) -> None:
        """Add a READY job that ITEMLIMIT no longer withholds (`now`), or remove one that it withholds."""
        group = group_of(job)
        groups = self.groups_of(queue)
        if group != queue.name:
            groups.withhold(group, -1 if now else 1)
        if now:
            groups.add(job, group)
        else:
            groups.remove()
        self._firsts.changed(groups, group)

    # ---- the next jobs

    def refresh(self, queue: Queue) -> None:
        """Record that the queue was closed or opened."""
        groups = self.queue_groups.get(queue.name)
        if groups is not None:
            self._firsts.queue_changed(groups)

    def first_of(self, level: int) -> tuple[Key, Place] | None:
        """Return the key of the next group of this level in any open queue, and the place of its first job."""
        keys = self.offered.runnable.get(level)
        if not keys:
            return None
        key: Key = keys[0]
        return key, self._firsts.first(key[2])

    def has_few_places(self, most: int) -> bool:
        """Return whether all groups with a job to hand out together have at most `most` listed places."""
        left = most
        for keys in self.offered.runnable.values():
            if len(keys) > left:
                return False
            for key in keys:
                left -= self._firsts.places(key[2]).size
                if left < 0:
                    return False
        return True

    def places(self, group: str) -> Iterable[Place]:
        """Return the listed places of a group with a job to hand out, in order."""
        return self._firsts.places(group)

    def rank_moved(self) -> None:
        """Re-rank the groups that have moved, in queues with many groups. Called before each choice."""
        self._firsts.rank_moved()

    def begin_entry(self, now_ms: int) -> None:
        """Begin an entry, at this replicated time."""
        self.now_ms, self._firsts.relisted = now_ms, 0

    def take_relisted(self) -> int:
        """Return the number of places listed again since the last call, except for commands' own jobs."""
        relisted, self._firsts.relisted = self._firsts.relisted, 0
        return relisted

    def has_many(self, queue: str) -> bool:
        """Return whether the queue has too many groups for its lists to be rebuilt within one entry."""
        return max(self._ready_groups(queue), self._windows_of(queue)) > limits.GROUPS_RELISTED_MAX

    def relisted(self, queue: str) -> int:
        """Return how many groups and rate windows must be inspected when the group settings of the queue change."""
        return self._ready_groups(queue) + self._windows_of(queue)

    def _ready_groups(self, queue: str) -> int:
        groups = self.queue_groups.get(queue)
        return 0 if groups is None or groups.ready is None else len(groups.ready)

    def _windows_of(self, queue: str) -> int:
        return len(self.open.gates.windows.by_queue.get(queue, ()))

    def configured(self, queue: str, running: Iterable[RunningJob]) -> None:
        """Apply changed group settings of the queue. `running`: see OpenGroups.configured."""
        found = self._queues.find(queue)
        assert found is not None
        self.open.configured(found, running, self.now_ms)

    # ---- jobs in other states

    def deferred(self, job: DelayedJob) -> None:
        """Count a job that became DELAYED."""
        self._count_deferred(job, 1)

    def undeferred(self, job: DelayedJob) -> None:
        """Stop counting a job that is no longer DELAYED."""
        self._count_deferred(job, -1)

    def started(self, job: RunningJob) -> None:
        """Count a job that became RUNNING."""
        self._count_running(job, 1)

    def stopped(self, job: RunningJob) -> None:
        """Stop counting a job that is no longer RUNNING."""
        self._count_running(job, -1)

    def _count_deferred(self, job: DelayedJob, count: int) -> None:
        group, name = group_of(job), job.queue
        if group == name:
            account = self.accounts.get(group)
        else:
            account = self._account(group)
            account.waiting += count
            account.deferred += count
            groups = self.groups_of(self._queues.by_name[name])
            groups.foreign_waiting += count
            self._end_counting(groups)
        self._note_count(account, count)

    def _count_running(self, job: RunningJob, count: int) -> None:
        group, name = group_of(job), job.queue
        queue = self._queues.by_name[name]
        if group == name:
            account = self.accounts.get(group)
        else:
            account = self._account(group)
            account.running += count
            groups = self.groups_of(queue)
            groups.count_running(group, count)
            if count < 0:
                self._end_counting(groups)
        settings = queue.settings
        if self.open.gates.table.by_name or (settings is not None and (settings.group_limit or settings.group_order)):
            self.open.ran(queue, group, job, now=count > 0)
        self._note_count(account, count)

    def _end_counting(self, groups: QueueGroups) -> None:
        if groups.empty:
            del self.queue_groups[groups.queue.name]

    def _note_count(self, account: GroupAccount | None, count: int) -> None:
        """Record that the group's number of unfinished jobs has changed: it is busy, or may now be idle."""
        if account is None:
            return
        if count < 0:
            self._left[account.name] = None
        elif account.idle_ms is not None:
            self._busy(account)

    # ---- questions about groups

    def _account(self, group: str) -> GroupAccount:
        account = self.accounts.get(group)
        if account is None:
            if self._saved is not None:
                self._save(group)
            account = self.accounts[group] = GroupAccount(group, open=not self.open.gates.shut(group))
            self.levels.standing[0] += 1
            groups = self.queue_groups.get(group)
            if groups is not None and groups.ranking is not None:
                self._firsts.rank(groups, group)
        return account

    def is_shut_in(self, queue: Queue, job: Job) -> bool:
        """Return whether the queue may not hand out this job, for reasons that concern its group only in this queue."""
        return self.open.gates.shut_in(self.groups_of(queue), group_of(job), job)

    def room(self, queue: Queue, jobs: int) -> int:
        """Return the number of these jobs of the queue that it could hand out now: see OpenGroups.room."""
        return self.open.room(self.queue_groups.get(queue.name) or QueueGroups(queue, self.open.gates), jobs)

    def all_closed(self, queue: Queue) -> bool:
        """Return whether no group of an open queue has a job to hand out, by its lists; False while offers are due."""
        groups = self.queue_groups.get(queue.name)
        if groups is None or self.offers.tasks:
            return False
        accounts = self.accounts
        if groups.ranking is not None:
            return not groups.ranking and not any(accounts[group].open for group in groups.wide)
        for group in groups.listed:
            account = accounts.get(group)
            if account is None or account.open:
                return False
        return True

    def open_among(self, asked: Iterable[str]) -> tuple[list[str], int]:
        """Return the queues among these, each once, that have a job and whose groups are not `all_closed`, or that do
        not choose by groups; and the number of the others, counted higher where many groups are compared.

        A command may name thousands: this takes a third of the time of as many calls.
        """
        by_name, accounts, fifo = self._queues.by_name, self.accounts, Sched.FIFO
        queue_groups = {} if self.offers.tasks else self.queue_groups
        found: list[str] = []
        closed = 0
        for name in dict.fromkeys(asked):
            queue = by_name.get(name)
            if queue is None or queue.front is None:
                continue
            settings = queue.settings
            if settings is not None and settings.sched is not fifo and (groups := queue_groups.get(name)) is not None:
                if groups.ranking is None:
                    for group in groups.listed:
                        account = accounts.get(group)
                        if account is None or account.open:
                            break
                    else:
                        closed += 1
                        continue
                elif not groups.ranking and not any(accounts[group].open for group in groups.wide):
                    closed += 1 + len(groups.wide) // WIDE_LOOKED
                    continue
            found.append(name)
        return found, closed

    def groups_of(self, queue: Queue) -> QueueGroups:
        """Return the groups of a queue that has an unfinished job."""
        groups = self.queue_groups.get(queue.name)
        if groups is None:
            groups = self.queue_groups[queue.name] = QueueGroups(queue, self.open.gates)
        return groups

    def _own_ready(self, group: str) -> int:
        """Return the number of READY jobs of the group in the queue of its name."""
        queue = self._queues.by_name.get(group)
        if queue is None:
            return 0
        groups = self.queue_groups.get(group)
        return queue.ready_count - (0 if groups is None else groups.foreign_ready)

    def counts(self, group: str) -> tuple[int, int]:
        """Return the number of jobs of the group that are READY or DELAYED, and of those that are RUNNING."""
        account, queue, groups = self.accounts.get(group), self._queues.by_name.get(group), self.queue_groups.get(group)
        waiting, running = (0, 0) if account is None else (account.waiting, account.running)
        if queue is not None:
            waiting += queue.ready_count + queue.deferred - (0 if groups is None else groups.foreign_waiting)
            running += queue.running - (0 if groups is None else groups.foreign_running)
        return waiting, running

    def counts_by_state(self, group: str) -> tuple[int, int, int]:
        """Return the numbers of READY, DELAYED and RUNNING jobs of the group."""
        account, queue, groups = self.accounts.get(group), self._queues.by_name.get(group), self.queue_groups.get(group)
        deferred = 0 if account is None else account.deferred
        if queue is not None:
            deferred += queue.deferred - (0 if groups is None else groups.foreign_waiting - groups.foreign_ready)
        waiting, running = self.counts(group)
        return waiting - deferred, deferred, running

    def is_named(self, group: str) -> bool:
        """Return whether the group has an unfinished job in a queue of another name."""
        account = self.accounts.get(group)
        return account is not None and account.waiting + account.running > 0

    def _running_of(self, group: str) -> int:
        """Return the number of RUNNING jobs of the group."""
        return self.counts(group)[1]

    def account(self, group: str) -> GroupAccount:
        """Return the account of a group with a READY job. Creates it if its jobs precede the first use of groups."""
        return self.accounts.get(group) or self._account(group)

    def _not_reached(self, account: GroupAccount, groups: QueueGroups) -> bool:
        """Return whether the first use has not offered this group yet, although it has had a READY job since then."""
        own = self._queues.by_name.get(account.name)
        if own is None or _paused(own) or self._own_ready(account.name) <= (groups.queue is own):
            return False
        return self.offers.not_reached(account.name)

    def _busy(self, account: GroupAccount) -> None:
        self._save(account.name)
        self._idle.remove((account.idle_ms, account.name))
        account.idle_ms = None

    def end_entry(self, effects: Effects) -> None:
        """Finish the bookkeeping of an executed entry, and report what clients may wait for."""
        self._firsts.rank_moved()
        self.note_idle()
        self.open.report(effects)

    def note_idle(self) -> None:
        """Mark groups without jobs as idle, after an entry or the events due before it."""
        for group in self._left:
            account = self.accounts.get(group)
            if account is not None and account.idle_ms is None and self.counts(group) == (0, 0):
                account.idle_ms = self.now_ms
                self._idle.add((account.idle_ms, group))
        self._left.clear()

    def forget(self, clock_ms: int, most: int) -> int:
        """Forget up to `most` groups that have had no unfinished job for a long time; returns how many."""
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

    def is_over(self, account: GroupAccount, clock_ms: int) -> bool:
        """Return whether the group has been idle for so long that it starts with a new account when it returns."""
        return account.idle_ms is not None and account.idle_ms + self.levels.settings.keep_ms <= clock_ms

    def next_due_ms(self, clock_ms: int) -> int | None:
        """Return when to forget or open a group next, or to offer groups; None if there is nothing to do.

        Rounded up, as forgetting only frees memory.
        """
        if self.offers.tasks:
            return clock_ms
        opens_ms = self.open.gates.windows.next_due_ms()
        if not self._idle:
            return opens_ms
        bits = limits.RETAINED_KEY_BITS
        due_ms: int = self._idle[0][0] + self.levels.settings.keep_ms
        due_ms = (due_ms + (1 << bits) - 1) >> bits << bits
        return due_ms if opens_ms is None else min(due_ms, opens_ms)

    # ---- offers

    def offer(self, account: GroupAccount) -> None:
        """Give the group its place in its level."""
        if self._saved is not None:
            self._save(account.name)
        level, levels = account.level, self.levels
        if not self.offered.has(level):
            levels.refill(level)
        least = levels.least_ns[level]
        if least is not None and account.priority_ns < least:
            account.priority_ns = least
        account.turn = self._new_turn()
        self._stand(account)

    def offer_now(self, group: str) -> None:
        """Offer a group that has a READY job ahead of its portion."""
        self._see_own(group)
        self.offer(self._account(group))

    def _see_own(self, group: str) -> None:
        """List the jobs in the queue of the group's name, which may precede the first use of groups."""
        queue = self._queues.by_name.get(group)
        if queue is not None and queue.ready_count:
            self._firsts.changed(self.groups_of(queue), group)

    def _stand(self, account: GroupAccount) -> None:
        account.offered = True
        self.offered.add(account, runnable=self._firsts.has(account))
        self._firsts.moved(account)

    def withdraw(self, account: GroupAccount) -> None:
        """Take the group out of its level."""
        if self._saved is not None:
            self._save(account.name)
        account.offered = False
        self.offered.remove(account, runnable=self._firsts.has(account))
        self._firsts.moved(account)

    @property
    def any_paused(self) -> bool:
        """True if any queue is paused."""
        return self._queues.paused > 0

    def all_paused(self, account: GroupAccount) -> bool:
        """Return whether all READY jobs of the group are in queues that are paused."""
        if self._own_ready(account.name) and not _paused(self._queues.by_name[account.name]):
            return False
        return all(_paused(self._queues.by_name[name]) for name in account.queues)

    def _new_turn(self) -> int:
        self.next_turn += 1
        return self.next_turn - 1

    def renew(self, account: GroupAccount) -> None:
        """Move the chosen group behind those of equal priority."""
        least = self.levels.least_ns[account.level]
        priority_ns = account.priority_ns if least is None else max(account.priority_ns, least)
        self.levels.least_ns[account.level] = priority_ns
        self.levels.selected[account.level] += 1
        self._rekey(account, priority_ns, self._new_turn())

    def _rekey(self, account: GroupAccount, priority_ns: int, turn: int) -> None:
        """Move an offered group to another place in its level."""
        if self._saved is not None:
            self._save(account.name)
        before = account.key
        account.priority_ns, account.turn = priority_ns, turn
        self.offered.replace(account, before, runnable=self._firsts.has(account))
        if account.moves:
            self._firsts.moved(account)

    # ---- time

    def charge(self, group: str, run_us: int) -> int:
        """Charge the group for the running time of a hand-out, or the time since its last charge.

        Returns the number of queues with many groups in which the group moves.
        """
        account, table = self._account(group), self.open.gates.table
        weight = table.of(group).weight if table.by_name else 1
        if self._saved is not None:
            self._save(group)
        if not account.offered:
            self.levels.charge(account, run_us, weight)
            self._left[group] = None
            return 0
        level, priority_ns = account.level, account.priority_ns
        self.levels.charge(account, run_us, weight)
        new_level, new_priority_ns = account.level, account.priority_ns
        account.level, account.priority_ns = level, priority_ns
        if new_level != level:
            self.withdraw(account)
            account.level, account.priority_ns = new_level, new_priority_ns
            self.offer(account)
        elif new_priority_ns != priority_ns:
            self._rekey(account, new_priority_ns, account.turn)
        return account.moves

    def has_ready(self, account: GroupAccount) -> bool:
        """Return whether the group has a READY job."""
        return bool(account.queues) or self._own_ready(account.name) > 0

    def _returns(self, group: str) -> bool:
        """Return whether the group is to be offered."""
        account = self.accounts.get(group)
        if account is None:
            return self._own_ready(group) > 0 and not _paused(self._queues.by_name[group])
        if account.offered:
            return False
        return self.has_ready(account) and not self.all_paused(account)

    # ---- restoring a snapshot

    def restore(self, account: GroupAccount) -> None:
        """Add an account from a snapshot, whose jobs have been counted and listed already."""
        known = self.accounts.pop(account.name, None)
        if known is not None:
            self.levels.standing[known.level] -= 1
            account.waiting, account.running, account.queues = known.waiting, known.running, known.queues
            account.deferred = known.deferred
        self.accounts[account.name] = account
        account.open = not self.open.gates.shut(account.name)
        self.levels.standing[account.level] += 1
        if account.idle_ms is not None:
            self._idle.add((account.idle_ms, account.name))

    def restore_deferred(self, queue: Queue, group: str, jobs: int) -> None:
        """Count DELAYED jobs in pages whose group does not have the queue's name."""
        account = self._account(group)
        account.waiting += jobs
        account.deferred += jobs
        self.groups_of(queue).foreign_waiting += jobs

    def restore_ready(self, queue: Queue) -> None:
        """Count the READY jobs in the queue's lists whose groups do not have the queue's name."""
        counts: dict[str, int] = {}
        if isinstance(queue.ready, GroupedReady):
            counts = {group: jobs.size for group, jobs in queue.ready.groups.items() if group != queue.name}
        withheld = [group for job in queue.blocked or () if (group := group_of(job)) != queue.name]
        if not counts and not withheld:
            return
        groups = self.groups_of(queue)
        for group in withheld:
            groups.withhold(group, 1)
            counts[group] = counts.get(group, 0) + 1
        for group, jobs in counts.items():
            account = self._account(group)
            account.waiting += jobs
            account.queues[queue.name] = None
        groups.foreign_ready += sum(counts.values())
        groups.foreign_waiting += sum(counts.values())
        if isinstance(queue.ready, GroupedReady):
            groups.ready = queue.ready.groups

    def end_restore(self) -> None:
        """List the jobs of all restored accounts, and put offered groups into their levels."""
        self._left.clear()
        offered = [account for account in self.accounts.values() if account.offered]
        for account in offered:
            account.offered = False
        for queue in self._queues.by_name.values():
            if queue.ready_count:
                groups = self.groups_of(queue)
                self._firsts.restore(groups)
        for account in offered:
            self._stand(account)
        self._firsts.rank_moved()
        self.open.report(Effects())

    # ---- batches that may be undone

    def save(self) -> None:
        """Start recording what `undo` needs."""
        self._saved = {}
        levels = self.levels
        self._saved_levels = (
            replace(
                levels, time_ns=[*levels.time_ns], least_ns=[*levels.least_ns], selected=[*levels.selected],
                standing=[*levels.standing],
            ), self.next_turn,
        )

    def commit(self) -> None:
        """Keep the changes: nothing needs to be undone."""
        self._saved = self._saved_levels = None

    def undo(self) -> None:
        """Restore the times, priorities and turns as of the last `save`; the jobs have been moved back already."""
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
            account = self.accounts.setdefault(
                name, GroupAccount(name, open=not self.open.gates.shut(name)),
            )
            account.used_us, account.level, account.idle_ms = before.used_us, before.level, before.idle_ms
            account.priority_ns, account.turn = before.priority_ns, before.turn
            if account.idle_ms is not None:
                self._idle.add((account.idle_ms, name))
            if before.offered:
                self._stand(account)

    def _save(self, group: str) -> None:
        if self._saved is not None and group not in self._saved:
            account = self.accounts.get(group)
            self._saved[group] = None if account is None else Scalars(
                account.used_us, account.level, account.priority_ns, account.turn, account.offered, account.idle_ms,
            )


def _paused(queue: Queue) -> bool:
    return queue.settings is not None and queue.settings.paused_out
