"""Which group is next: the choice by FAIR among those offered that have a job for a command (spec/fair 4)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from sockpqd.core.fair.book import FairBook
from sockpqd.core.fair.levels import Account
from sockpqd.core.fair.shelves import Key, Place, group_of
from sockpqd.core.limits import PORTION_MAX
from sockpqd.core.store.job import Job
from sockpqd.core.store.queues import Queue


class Found(Struct, gc=False, frozen=True):
    """The next job by FAIR. Nothing has changed yet: see `take`."""

    account: Account
    queue: Queue
    job: Job


KEPT_MAX = 100          # groups kept back by a LIMIT that a choice looks at while there are paused ones

# The key of a group, and the place of its first job that the command may have.
_Place = tuple[Key, Place]


def find(book: FairBook, queues: Iterable[Queue] | None) -> Found | None:
    """The next job of these queues, which can hand out a job (None: of all that can); None: there is none."""
    book.rank_moved()
    if queues is None:
        firsts = {level: first for level in book.pool if (first := book.first_of(level)) is not None}
    else:
        firsts = _of_queues(book, queues)
    place = _choose(book, firsts)
    if place is None:
        return None
    (_, _, group), (_, _, name) = place
    shelf = book.shelves[name]
    job = shelf.first(group)
    assert job is not None
    return Found(book.accounts[group], shelf.queue, job)


def _of_queues(book: FairBook, queues: Iterable[Queue]) -> dict[int, _Place]:
    """The first place of each level."""
    firsts: dict[int, _Place] = {}
    for queue in queues:
        shelf = book.shelves.get(queue.name)
        for account, first in () if shelf is None else shelf.firsts(book.accounts):
            place = account.key, first
            if account.level not in firsts or place < firsts[account.level]:
                firsts[account.level] = place
    return firsts


def find_of_jobs(book: FairBook, jobs: Iterable[tuple[Queue, Job]]) -> Found | None:
    """The next one of these jobs, in the order of which each queue would hand them out."""
    firsts: dict[int, _Place] = {}
    places: dict[tuple[str, str], tuple[Queue, Job]] = {}
    for queue, job in jobs:
        account = book.accounts.get(group_of(job))
        if account is None or not account.offered or (account.name, queue.name) in places:
            continue
        places[account.name, queue.name] = queue, job
        place = account.key, (job.rank, job.seq, queue.name)
        if account.level not in firsts or place < firsts[account.level]:
            firsts[account.level] = place
    chosen = _choose(book, firsts)
    if chosen is None:
        return None
    (_, _, group), (_, _, name) = chosen
    return Found(book.accounts[group], *places[group, name])


def _choose(book: FairBook, firsts: dict[int, _Place]) -> _Place | None:
    """The place in the level that lags most. Groups that stand before it and are paused leave on the way."""
    levels = book.levels
    left = book.offered_levels()
    level0_us = levels.level0_us() if len(left) > 1 else 0
    while left:
        best = left[0]
        for level in left[1:]:
            if levels.before(level, best, level0_us):
                best = level
        left.remove(best)
        _pass_paused(book, best, firsts.get(best))
        if best in firsts:
            return firsts[best]
    return None


def _pass_paused(book: FairBook, level: int, first: _Place | None) -> None:
    """Groups of the level before `first` whose jobs are all paused leave it, those among the first few.

    The others before it are kept back by a LIMIT: not all of any number of these are looked at each time.
    """
    if not book.any_paused:
        return
    kept = 0
    for _ in range(PORTION_MAX):
        aside = book.aside.get(level, ())
        if kept == len(aside) or kept == KEPT_MAX or (first is not None and aside[kept] >= first[0]):
            return
        book.looked += 1
        account = book.accounts[aside[kept][2]]
        if book.all_paused(account):
            book.withdraw(account)
        else:
            kept += 1


def take(book: FairBook, found: Found) -> None:
    """The job is handed out by this choice: its group goes behind its equals."""
    book.renew(found.account)
