"""Hand-outs by FAIR: the queue and the job of the next group (spec/fair 4, 5)."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.core import limits
from sockpqd.core.fair.choice import FairChoice, find, find_first, find_first_of_jobs, find_of_jobs
from sockpqd.core.fair.scheduler import FairScheduler
from sockpqd.core.ops.queues import Sched
from sockpqd.core.rules.hand_out import can_hand_out
from sockpqd.core.state import State
from sockpqd.core.store.items.item import LOOKED_AT
from sockpqd.core.store.job import Job, group_of
from sockpqd.core.store.queues import Queue

RELISTED_STEPS = 8      # of listing a group in a queue again
LOOKS_PER_STEP = 2      # looks at a job of an item, and its group, that count as one step
LOOKS = 8               # such looks that take as long as one at a closed queue


def by_groups(state: State, queue: Queue) -> bool:
    """Return whether the queue chooses its jobs by their groups."""
    return state.fair is not None and queue.settings is not None and queue.settings.by_groups


def available(state: State, queue: Queue) -> int:
    """Return the number of jobs that the queue could hand out now; with many groups it may be an overestimate."""
    jobs = queue.available()
    return state.fair.room(queue, jobs) if jobs and state.fair is not None and by_groups(state, queue) else jobs


def has_open(state: State, queue: Queue, item: str | None) -> bool:
    """Return whether a group of the queue is open, if it chooses by groups, and has a job to hand out (of the item)."""
    return not by_groups(state, queue) or open_to_fair(state, queue, item)


def open_to_fair(state: State, queue: Queue, item: str | None) -> bool:
    """Return whether an open group has a job in the queue (of the item), as BY FAIR requires."""
    if state.fair is None:
        return True
    if item is None:
        return not state.fair.all_closed(queue) and state.fair.room(queue, 1) > 0
    return any(_looks(state, state.fair, queue, item))


def looks_for_open(state: State, queue: Queue, item: str) -> Iterator[bool]:
    """Search a queue that has a job of the item for an open group, in steps: yields True at last if there is one.

    Each step before it yields False, and looks at LOOKS jobs of closed groups at most.
    """
    if state.fair is None or not by_groups(state, queue):
        yield True
        return
    looked = 0
    for opened in _looks(state, state.fair, queue, item):
        if opened:
            yield True
            return
        looked += 1
        if looked % LOOKS == 0:
            yield False
    if looked % LOOKS:
        yield False


def _looks(state: State, scheduler: FairScheduler, queue: Queue, item: str) -> Iterator[bool]:
    """Yield, for jobs of the item with the first one of each group, whether their groups are open."""
    gates = scheduler.open.gates
    for _, job in _jobs_of_item(state, [queue], item):
        yield not gates.shut(group_of(job)) and not scheduler.is_shut_in(queue, job)


def without_closed(state: State, scheduler: FairScheduler, asked: tuple[str, ...]) -> list[str]:
    """Return the queues among these, each once, that have a job and do not choose by groups, or have an open group."""
    scheduler.rank_moved()
    names, closed = scheduler.open_among(asked)
    state.spent += limits.STEP * closed
    return names


def next_queue(state: State) -> Queue | None:
    """Return the queue of the next group, or the first queue that does not choose by groups.

    None: no queue can hand out a job, provided that all groups are offered.
    """
    found = find(state.use_fair(), None, chooses=False)
    if found is not None:
        return found.queue
    name = state.queues.first_without_groups()
    return None if name is None else state.queues.by_name[name]


def nothing_open(state: State) -> bool:
    """Return whether certainly no queue can hand out a job by its policy or by FAIR."""
    return not state.use_fair().offers.tasks and next_queue(state) is None


def first_open_job(state: State, queue: Queue, item: str | None) -> Job | None:
    """Return the first job (of the item) of an open group of a queue that chooses by groups; None: all are closed."""
    scheduler = state.use_fair()
    if item is None:
        state.spent += limits.STEP * _wide_looked(scheduler, queue)
        return scheduler.groups_of(queue).first_open_job()
    gates = scheduler.open.gates
    return next((
        job for _, job in _jobs_of_item(state, [queue], item)
        if not gates.shut(group_of(job)) and not scheduler.is_shut_in(queue, job)
    ), None)


def _wide_looked(scheduler: FairScheduler, queue: Queue) -> int:
    """Return the number of steps to compare those groups of the queue that it does not keep in order."""
    return len(scheduler.groups_of(queue).wide) // 2


def found_in(state: State, queue: Queue, item: str | None) -> FairChoice | None:
    """Return the next job of a queue that chooses by groups and is not closed; None if all its groups are."""
    assert queue.settings is not None
    if queue.settings.sched is Sched.FAIR:
        return _found(state, [queue], item)
    scheduler = state.use_fair()
    charge_relisted(state, scheduler)
    scheduler.rank_moved()
    if item is None:
        state.spent += limits.STEP * _wide_looked(scheduler, queue)
        return find_first(scheduler, queue)
    return find_first_of_jobs(scheduler, queue, (job for _, job in _jobs_of_item(state, [queue], item)))


def charge_relisted(state: State, scheduler: FairScheduler) -> None:
    """Count the work of listing the groups of queues again that have been opened or closed."""
    relisted = scheduler.take_relisted()
    if relisted:
        state.spent += RELISTED_STEPS * limits.STEP * relisted


def settle_spent(state: State) -> int:
    """Charge all that has been listed again, and return what the entry has spent by then (State.spent)."""
    if state.fair is not None:
        charge_relisted(state, state.fair)
    return state.spent


def _found(state: State, queues: list[Queue] | None, item: str | None) -> FairChoice | None:
    """Return the next job of these queues (None: any) that can be handed out; None if there is none."""
    scheduler = state.use_fair()
    charge_relisted(state, scheduler)
    looked_before = scheduler.looked
    found = _chosen(state, queues, item)
    state.spent += 2 * limits.STEP * (scheduler.looked - looked_before)
    return found


def _chosen(state: State, queues: list[Queue] | None, item: str | None) -> FairChoice | None:
    scheduler = state.use_fair()
    if item is None:
        open_queues = None if queues is None else [queue for queue in queues if queue.front is not None]
        found = find(scheduler, open_queues)
        if found is not None:
            return found
        if open_queues is not None:
            state.spent += limits.STEP * len(open_queues)
        if scheduler.offers.tasks:
            # Some groups still wait to be offered: until then no client may be answered that there is no job.
            names = state.queues.nonempty[:1] if open_queues is None else [queue.name for queue in open_queues]
            for name in names:
                _offer(state, state.queues.by_name[name].ready.first)
            found = find(scheduler, open_queues)
        return found
    jobs = list(_jobs_of_item(state, queues, item))
    state.spent += limits.STEP // LOOKS_PER_STEP * len(jobs)
    found = find_of_jobs(scheduler, jobs)
    if found is None and jobs:
        _offer(state, jobs[0][1])
        found = find_of_jobs(scheduler, jobs)
    return found


def _offer(state: State, job: Job) -> None:
    scheduler = state.use_fair()
    account = scheduler.accounts.get(group_of(job))
    if account is None or not account.offered:
        scheduler.offer_now(group_of(job))


def _jobs_of_item(state: State, queues: list[Queue] | None, item_name: str) -> Iterator[tuple[Queue, Job]]:
    """Yield jobs of the item that these queues could hand out, in order, among them the first one of each group.

    They are charged in portions, before they are looked at.
    """
    item = state.items.by_name.get(item_name)
    if item is None:
        return
    by_name, scheduler = state.queues.by_name, state.use_fair()
    names = item.nonempty if queues is None else [queue.name for queue in queues if queue.name in item.by_queue]
    if queues is None:
        state.spent += limits.STEP * len(names)
    for name in names:
        queue, item_queue = by_name[name], item.by_queue[name]
        if not can_hand_out(queue, item_queue):
            continue
        groups = scheduler.queue_groups.get(name)
        if groups is None or not groups.foreign_ready:
            yield queue, item_queue.ready.first
            continue
        ready, firsts = item_queue.ready, item_queue.firsts()
        limited = queue.settings is not None and queue.settings.item_limit
        eligible = item_queue.eligible if limited else ready.size
        last = ready[eligible - 1] if eligible < ready.size else None
        looks = min(firsts.size, eligible)
        for number, job in enumerate(firsts):
            if last is not None and job > last:
                break
            if number % LOOKED_AT == 0:
                state.spent += limits.STEP // LOOKS_PER_STEP * min(looks - number, LOOKED_AT)
            yield queue, job


class FairOffers:
    """Offers of FAIR: jobs of some queues, of any queue, or of an item."""

    turned = ranks = False

    def __init__(self, state: State, asked: tuple[str, ...] | None, item: str | None) -> None:
        self._state = state
        self._item = item
        by_name = state.queues.by_name
        self._queues = None if asked is None else {name: by_name[name] for name in asked if name in by_name}
        self._exhausted: dict[str, Queue] = {}
        self.found: FairChoice | None = None
        state.use_fair()

    def choose(self, bits: int) -> Queue | None:
        queues = self._queues
        if queues is None and self._item is not None and self._exhausted:
            item = self._state.items.by_name.get(self._item)
            names = () if item is None else tuple(item.nonempty)
            queues = {name: self._state.queues.by_name[name] for name in names if name not in self._exhausted}
        self.found = _found(self._state, None if queues is None else list(queues.values()), self._item)
        return None if self.found is None else self.found.queue

    def gave(self, *, exhausted: bool) -> None:
        assert self.found is not None
        queue = self.found.queue
        by_name = self._state.queues.by_name
        if exhausted:
            self._exhausted[queue.name] = queue
            if self._queues is not None:
                del self._queues[queue.name]
            elif self._item is None and queue.front is not None:
                self._state.queues.hide(queue)
        elif self._queues is not None and queue.name not in by_name:
            del self._queues[queue.name]

    def leave_out(self) -> None:
        self.gave(exhausted=True)

    def leave_out_closed(self) -> None:
        pass        # it is never offered

    def move_behind(self, job: Job) -> bool:
        return False

    def end(self) -> None:
        for queue in self._exhausted.values():
            self._state.queues.reindex(queue)
