"""A Get with options: several jobs, another choice of the queue, attempt data (spec/state-machine 4)."""

from __future__ import annotations

from core import limits
from core.ops.cost import JOB
from core.ops.jobs import Get, Pick, Policy
from core.ops.replies import Handed, HandedMany, Meta, Reply
from core.rules.admit import EMPTY, EMPTY_UNFINISHED, SESSION_NOT_FOUND
from core.rules.hand_out import hand_out, lease, unfinished
from core.rules.select import choice, next_job, offers
from core.state import State
from core.store.job import RunningJob

GOLDEN = 0x9E3779B97F4A7C15         # the n-th job of a Pick is chosen by the random bits plus n times this


def pick(state: State, operation: Pick, seed: int) -> Reply:
    """Hand out one job, or as many as there are up to `count`, with a new choice of the queue for each."""
    get = operation.get
    session = None
    if get.session is not None:
        session = state.sessions.use(get.session, state.clock_ms)
        if session is None:
            return SESSION_NOT_FOUND
    item = state.put_item if get.item_of_put else get.item
    if get.item_of_put and item is None:
        return EMPTY
    policy = state.settings.policy if operation.policy is None else operation.policy
    count = 1 if operation.count is None else min(operation.count, limits.COUNT_MAX)
    if item is None and get.queues is not None and len(get.queues) == 1:
        jobs = _of_one(state, get, get.queues[0], count)
    elif count == 1:
        queue = choice(state, get.queues, item, policy, seed)
        jobs = [] if queue is None else [hand_out(state, queue, item, get)]
    else:
        jobs = _jobs(state, get, item, policy, count, seed)
    if not jobs:
        return EMPTY_UNFINISHED if unfinished(state, get.queues, item) else EMPTY
    if session is not None:
        for job in jobs:
            session.bind(job)
    if operation.count is None:
        return handed(jobs[0], operation.meta)
    return HandedMany(tuple([handed(job, operation.meta) for job in jobs]))


# Of all jobs of one Pick together neither the data may be more than what is left of HANDED_BYTES_MAX, nor the work more
# than OPERATION_WORK_MAX; the first job is given in any case. The work for a job, as measured: one that has neither an
# item nor anything else that few jobs have, and another one; with a choice before it twice as much.
PLAIN = JOB * 3 // 8
OTHER = JOB * 3 // 2


def _of_one(state: State, get: Get, name: str, count: int) -> list[RunningJob]:
    """The same as below where there is nothing to choose, in a fifth less time."""
    jobs: list[RunningJob] = []
    queue = state.queues.by_name.get(name)
    if queue is None:
        return jobs
    if queue.settings is not None and queue.settings.batch:
        count = min(count, queue.settings.batch)
    lease_ms, then = lease(state, queue, get)
    room, work = limits.HANDED_BYTES_MAX - state.spent, limits.OPERATION_WORK_MAX
    while len(jobs) < count and queue.ready.size and not queue.closed:
        job = queue.ready.first
        room -= len(job.data)
        work -= PLAIN if job.item is None and job.more is None else OTHER
        if (room < 0 or work < 0) and jobs:
            break
        jobs.append(state.hand_out(queue, state.take(queue, None), lease_ms, then))
    return jobs


def _jobs(state: State, get: Get, item: str | None, policy: Policy, count: int, seed: int) -> list[RunningJob]:
    jobs: list[RunningJob] = []
    offered = offers(state, get.queues, item, policy)
    left: dict[str, int] = {}       # how many each queue with a BATCH may still give
    room, work = limits.HANDED_BYTES_MAX - state.spent, limits.OPERATION_WORK_MAX
    while len(jobs) < count:
        queue = offered.choose(seed + len(jobs) * GOLDEN)
        if queue is None:
            break
        job = next_job(state, queue, item)
        room -= len(job.data)
        work -= 2 * (PLAIN if job.item is None and job.more is None else OTHER)
        if (room < 0 or work < 0) and jobs:
            break
        exhausted = False
        if queue.settings is not None and queue.settings.batch:
            left[queue.name] = left.get(queue.name, queue.settings.batch) - 1
            exhausted = not left[queue.name]
        jobs.append(hand_out(state, queue, item, get))
        offered.gave(exhausted=exhausted)
    offered.end()
    return jobs


def handed(job: RunningJob, meta: bool) -> Handed:
    """The reply that hands out this job."""
    if not meta:
        return Handed(job.id, job.queue, job.priority, job.data, job.item)
    key = None if job.more is None else job.more.key
    told = Meta(key, job.attempts, job.at_ms, job.deadline_ms)
    return Handed(job.id, job.queue, job.priority, job.data, job.item, told)
