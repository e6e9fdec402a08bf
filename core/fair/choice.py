"""Chooses the next group by FAIR, among the offered groups that have a job for a command (spec/fair 4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain

from msgspec import Struct

from sockpqd.core.fair.levels import GroupAccount
from sockpqd.core.fair.queue_groups import WIDE_LOOKED, Key, Place
from sockpqd.core.fair.scheduler import FairScheduler
from sockpqd.core.limits import PORTION_MAX
from sockpqd.core.store.job import Job, group_of
from sockpqd.core.store.queues import Queue


class FairChoice(Struct, gc=False, frozen=True):
    """The next job by FAIR or GROUPS, which `take` then hands out. `in_turn`: chosen by FAIR."""

    account: GroupAccount
    queue: Queue
    job: Job
    in_turn: bool = True


MANY_QUEUES = 16        # in one command: from this many on, iterating over the groups may be cheaper
KEPT_MAX = 100          # groups at their LIMIT that one choice inspects while some groups are paused

# The key of a group, and the place of its first job that the command may have.
_Place = tuple[Key, Place]


def find(
    scheduler: FairScheduler, queues: Collection[Queue] | None, *, chooses: bool = True,
) -> FairChoice | None:
    """Return the next job of these queues (None: of all), each of which can hand out a job; None if there is none.

    `chooses`: paused groups before it leave their level. A look on behalf of another policy changes nothing.
    """
    scheduler.rank_moved()
    for groups, group in scheduler.open.giving():
        if groups.queue.front is not None and (queues is None or any(groups.queue is queue for queue in queues)):
            account, job = scheduler.account(group), groups.first(group)
            if account.offered and job is not None:
                return FairChoice(account, groups.queue, job)
    if queues is None:
        levels = scheduler.offered.runnable
        firsts = {level: first for level in levels if (first := scheduler.first_of(level)) is not None}
    else:
        firsts = _of_queues(scheduler, queues)
    place = _choose(scheduler, firsts, chooses=chooses)
    if place is None:
        return None
    (_, _, group), (_, _, name) = place
    groups = scheduler.queue_groups[name]
    job = groups.first(group)
    assert job is not None
    return FairChoice(scheduler.accounts[group], groups.queue, job)


def _of_queues(scheduler: FairScheduler, queues: Collection[Queue]) -> dict[int, _Place]:
    """Return the first place of each level. As these queues can hand out jobs, their groups' places are listed."""
    if len(queues) >= MANY_QUEUES and scheduler.has_few_places(len(queues) // 2):
        return places_by_group(scheduler, queues)
    return places_by_queue(scheduler, queues)


def places_by_group(scheduler: FairScheduler, queues: Iterable[Queue]) -> dict[int, _Place]:
    """Return the first place of each level in these queues, looking at all groups that can give a job somewhere."""
    names = {queue.name for queue in queues}
    firsts: dict[int, _Place] = {}
    for level, keys in scheduler.offered.runnable.items():
        for key in keys:
            first = next((place for place in scheduler.places(key[2]) if place[2] in names), None)
            if first is not None:
                firsts[level] = key, first
                break
    return firsts


def places_by_queue(scheduler: FairScheduler, queues: Iterable[Queue]) -> dict[int, _Place]:
    """Return the same, looking at all groups of these queues."""
    firsts: dict[int, _Place] = {}
    accounts = scheduler.accounts
    for queue in queues:
        groups = scheduler.queue_groups.get(queue.name)
        if groups is None:
            continue
        scheduler.looked += len(groups.wide) // WIDE_LOOKED
        for name, first in chain(groups.listed.items(), groups.wide.items()):
            account = accounts.get(name)
            if account is None or first is None or not account.offered or not account.open:
                continue
            place = account.key, first
            best = firsts.get(account.level)
            if best is None or place < best:
                firsts[account.level] = place
    return firsts


def find_of_jobs(scheduler: FairScheduler, jobs: Iterable[tuple[Queue, Job]]) -> FairChoice | None:
    """Return the next one of these jobs, which are in the order in which each queue would hand them out."""
    firsts: dict[int, _Place] = {}
    places: dict[tuple[str, str], tuple[Queue, Job]] = {}
    for queue, job in jobs:
        account = scheduler.accounts.get(group_of(job))
        if account is None or not account.offered or (account.name, queue.name) in places:
            continue
        if not account.open or scheduler.is_shut_in(queue, job):
            continue
        places[account.name, queue.name] = queue, job
        place = account.key, (job.rank, job.seq, queue.name)
        if account.level not in firsts or place < firsts[account.level]:
            firsts[account.level] = place
    for groups, group in scheduler.open.giving():
        if (group, groups.queue.name) in places:
            return FairChoice(scheduler.accounts[group], *places[group, groups.queue.name])
    chosen = _choose(scheduler, firsts, chooses=True)
    if chosen is None:
        return None
    (_, _, group), (_, _, name) = chosen
    return FairChoice(scheduler.accounts[group], *places[group, name])


def _choose(scheduler: FairScheduler, firsts: dict[int, _Place], *, chooses: bool) -> _Place | None:
    """Return the place in the level that lags most behind its target. See find() for `chooses`."""
    levels = scheduler.levels
    left = scheduler.offered.levels()
    level0_ns = levels.level0_ns() if len(left) > 1 else 0
    while left:
        best = left[0]
        for level in left[1:]:
            if levels.before(level, best, level0_ns):
                best = level
        left.remove(best)
        if chooses:
            _pass_paused(scheduler, best, firsts.get(best))
        if best in firsts:
            return firsts[best]
    return None


def _pass_paused(scheduler: FairScheduler, level: int, first: _Place | None) -> None:
    """Remove the first groups of the level, up to `first`, whose jobs are all paused.

    The other groups before it are at a LIMIT; as there may be many, only some are inspected each time.
    """
    if not scheduler.any_paused:
        return
    kept = 0
    for _ in range(PORTION_MAX):
        blocked = scheduler.offered.blocked.get(level, ())
        if kept == len(blocked) or kept == KEPT_MAX or (first is not None and blocked[kept] >= first[0]):
            return
        scheduler.looked += 1
        account = scheduler.accounts[blocked[kept][2]]
        if scheduler.all_paused(account):
            scheduler.withdraw(account)
        else:
            kept += 1


def find_first(scheduler: FairScheduler, queue: Queue) -> FairChoice | None:
    """Return the first job of all groups of the queue that are open, for SCHED GROUPS; None: all are closed."""
    groups = scheduler.groups_of(queue)
    name = groups.next_in_order() or groups.first_open()
    if name is None:
        return None
    job = groups.first(name)
    assert job is not None
    return FairChoice(scheduler.account(name), queue, job, in_turn=False)


def find_first_of_jobs(scheduler: FairScheduler, queue: Queue, jobs: Iterable[Job]) -> FairChoice | None:
    """Return the first of these jobs of the queue, in its order, whose group is open; None: there is none."""
    gates, preferred = scheduler.open.gates, scheduler.groups_of(queue).next_in_order()
    first: Job | None = None
    for job in jobs:
        group = group_of(job)
        if gates.shut(group) or scheduler.is_shut_in(queue, job):
            continue
        if first is None or group == preferred:
            first = job
        if preferred is None or group == preferred:
            break
    return None if first is None else FairChoice(scheduler.account(group_of(first)), queue, first, in_turn=False)


def take(scheduler: FairScheduler, found: FairChoice) -> None:
    """Count that the chosen job is handed out. With FAIR its group moves behind groups of equal priority."""
    if found.in_turn:
        scheduler.renew(found.account)
    opened, queue, settings = scheduler.open, found.queue, found.queue.settings
    if settings is not None and settings.group_order:
        opened.choose(queue, found.account.name)
    if opened.gates.table.by_name or (settings is not None and settings.group_rate):
        opened.gave(queue, found.account.name, scheduler.now_ms)
