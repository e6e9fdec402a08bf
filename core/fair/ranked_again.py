"""Counts the places at which groups are ranked or listed again when hand-outs end or are charged."""

from __future__ import annotations

from collections.abc import Iterable

from sockpqd.core.fair.scheduler import FairScheduler
from sockpqd.core.store.job import RunningJob, group_of

RANKED_STEPS = 2        # of ranking a group again in a queue, as an entry counts them (State.spent)


def ranked_again(scheduler: FairScheduler, jobs: Iterable[RunningJob]) -> int:
    """Return the number of places that follow when these running jobs end or are charged, at most.

    Each group has one in each queue that ranks it; however many of its jobs there are, it moves once at the end of the
    operation. A queue that opens because a job of it ends (LIMIT) lists its wide groups.
    """
    groups, queues = set(), set()
    for job in jobs:
        groups.add(group_of(job))
        queues.add(job.queue)
    places = 0
    for group in groups:
        account = scheduler.accounts.get(group)
        if account is not None:
            places += account.moves
    for name in queues:
        found = scheduler.queue_groups.get(name)
        if found is not None and not found.shown:
            places += len(found.wide)
    return places
