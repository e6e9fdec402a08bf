"""A Get with options: several jobs, another choice of the queue, attempt data (EXTENSIONS.md 1, 3 and 13)."""

from __future__ import annotations

from core.choice import choose
from core.giving import candidates, first_job, first_of, hand_out, lease, unfinished
from core.job import RunningJob
from core.job_operations import Get, Pick, Policy
from core.queues import Queue
from core.refusals import EMPTY, EMPTY_UNFINISHED, SESSION_NOT_FOUND
from core.replies import Handed, HandedMany, Meta, Reply
from core.state import State

COUNT_MAX = 10_000
DATA_BYTES_MAX = 16 << 20           # of all jobs of one Pick together; the first one is given in any case
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
    count = 1 if operation.count is None else min(operation.count, COUNT_MAX)
    if item is None and get.queues is not None and len(get.queues) == 1:
        jobs = _of_one(state, get, get.queues[0], count)
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


def _of_one(state: State, get: Get, name: str, count: int) -> list[RunningJob]:
    """The same as below where there is nothing to choose, in a fifth less time."""
    jobs: list[RunningJob] = []
    queue = state.queues.by_name.get(name)
    if queue is None:
        return jobs
    if queue.settings is not None and queue.settings.batch:
        count = min(count, queue.settings.batch)
    lease_ms, then = lease(state, queue, get)
    data_bytes = 0
    while len(jobs) < count and queue.ready.size and not queue.closed:
        data_bytes += len(queue.ready.first.data)
        if data_bytes > DATA_BYTES_MAX and jobs:
            break
        jobs.append(state.hand_out(queue, state.take(queue, None), lease_ms, then))
    return jobs


def _jobs(state: State, get: Get, item: str | None, policy: Policy, count: int, seed: int) -> list[RunningJob]:
    jobs: list[RunningJob] = []
    left: dict[str, int] = {}       # how many each queue with a BATCH may still give
    data_bytes = 0
    for number in range(count):
        queue = _queue(state, get.queues, item, policy, seed + number * GOLDEN, left)
        if queue is None:
            break
        data_bytes += len(first_job(state, queue.name, item).data)
        if data_bytes > DATA_BYTES_MAX and jobs:
            break
        if queue.settings is not None and queue.settings.batch:
            left[queue.name] = left.get(queue.name, queue.settings.batch) - 1
        jobs.append(hand_out(state, queue, item, get))
    return jobs


def _queue(
    state: State, queues: tuple[str, ...] | None, item: str | None, policy: Policy, bits: int, left: dict[str, int],
) -> Queue | None:
    """The queue that gives the next job; None: there is none."""
    names = candidates(state, queues, item)
    if left and not all(left.values()):
        names = [name for name in names if left.get(name) != 0]
    if not names:
        return None
    if policy is Policy.PRIORITY:
        names = first_of(state, names, queues, item)
    return state.queues.by_name[choose(names, bits)]


def handed(job: RunningJob, meta: bool) -> Handed:
    """The reply that hands out this job."""
    if not meta:
        return Handed(job.id, job.queue, job.priority, job.data, job.item)
    key = None if job.more is None else job.more.key
    told = Meta(key, job.attempts, job.at_ms, job.deadline_ms)
    return Handed(job.id, job.queue, job.priority, job.data, job.item, told)
