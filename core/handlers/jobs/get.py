"""Get, plain and with options: several jobs, another choice of the queue, attempt counts (spec/state-machine 4)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, ID_BYTES, JOB, JOB_WITH_EXTRAS, NAME_BYTES, Cost, of_names
from sockpqd.core.ops.jobs import Allowance, Get, GetWith, Policy, Until
from sockpqd.core.ops.replies import (
    EMPTY,
    EMPTY_UNFINISHED,
    JOB_RUNNING,
    NOT_FOUND,
    SESSION_NOT_FOUND,
    Handed,
    HandedMany,
    Meta,
    Reply,
)
from sockpqd.core.rules.complete import now_due, unburied
from sockpqd.core.rules.expire import by_number
from sockpqd.core.rules.hand_out import hand_out, lease, unfinished
from sockpqd.core.rules.items.cancel import refused
from sockpqd.core.rules.life import life_of
from sockpqd.core.rules.select import Way, chosen, next_job, offers
from sockpqd.core.state import State
from sockpqd.core.store.body import Body
from sockpqd.core.store.job import BuriedJob, DelayedJob, Job, RunningJob, expiring, number_of
from sockpqd.core.store.queues import Queue

GOLDEN = 0x9E3779B97F4A7C15         # the seed of the n-th job of a GetWith is the random bits plus n times this

# All jobs of one GetWith together may have no more data than what is left of HANDED_BYTES_MAX, and be no more work than
# OPERATION_WORK_MAX; the first job is handed out in any case. The work for one job, as measured: for one without item
# and extras, and for any other; twice as much where its queue must be chosen first, and more where groups are counted.
PLAIN = JOB * 3 // 8
OTHER = JOB * 3 // 2
NAMED, NAMED_OF_ITEM = 1, 4     # of each queue that is named, where FAIR chooses among them
RANKED = 5 * JOB                # in addition, where groups are in use: the job's group is re-ranked
LISTED = 4                      # a named queue with a rate is listed for its grants, and taken off the list again


def get(state: State, operation: Get, seed: int) -> Reply:
    """Hand out the first job of one of the named queues that have a job, chosen uniformly unless a policy is set."""
    session = None
    if operation.session is not None:
        session = state.sessions.use(operation.session, state.clock_ms)
        if session is None:
            return SESSION_NOT_FOUND
    item = operation.item
    if operation.item_of_put:
        item = state.put_item
        if item is None:
            return EMPTY
    queues = operation.queues
    if item is None and queues is not None and len(queues) == 1 and state.fair is None:
        queue = state.queues.by_name.get(queues[0])
        if queue is None:
            if state.queues.expiring:
                _asked(state, queues)
            return EMPTY
        if queue.front is None:
            queue.used_ms = state.clock_ms
            return EMPTY_UNFINISHED
        taken = state.take(queue, None)
        job = state.hand_out(queue, taken, *lease(state, queue, operation, taken))
    else:
        if queues is not None and state.queues.expiring:
            _asked(state, queues)
        policy = state.settings.policy
        if operation.item_of_put and policy is Policy.FAIR:     # the output of PUT .. WAIT is the first job
            policy = Policy.RANDOM
        offered = offers(state, queues, item, Way(policy))
        queue, found = chosen(state, offered, item, seed, by_group=not operation.item_of_put)
        if queue is None:
            offered.end()
            return EMPTY_UNFINISHED if unfinished(state, queues, item) else EMPTY
        job = hand_out(state, queue, item, operation, found)
        offered.end()
        if state.fair is not None:
            state.fair.open.settle()
    if session is not None:
        session.bind(job)
    data = job.data
    if type(data) is Body:
        data = data.read()
    if job.extras is not None and job.extras.head:
        data = data[job.extras.head:]
    return Handed(job.id, job.queue, job.priority, data, job.item)


def _asked(state: State, names: tuple[str, ...]) -> None:
    """Record that a client has used these queues, which restarts the time of queues with IDLE."""
    for name in names:
        queue = state.queues.expiring.get(name)
        if queue is not None:
            queue.used_ms = state.clock_ms


def get_cost(operation: Get) -> Cost:
    """Return the bytes and work of a Get: each named queue is looked up."""
    queues = operation.queues
    size = BASE_BYTES if operation.item is None else BASE_BYTES + len(operation.item)
    if queues is None:
        return size, JOB
    if len(queues) == 1:
        return size + NAME_BYTES + len(queues[0]), JOB
    return size + NAME_BYTES * len(queues) + sum(map(len, queues)), JOB + len(queues)


def get_with(state: State, operation: GetWith, seed: int) -> Reply:
    """Hand out up to `count` jobs, choosing the queue for each of them, or the job with a given number."""
    if operation.number is not None:
        return _get_number(state, operation, operation.number)
    if operation.free is None:
        return _get_with(state, operation, seed)
    _allow(state, operation.get.queues, operation.free, seed)
    reply = _get_with(state, operation, seed)
    for name in list(state.allowed):
        state.disallow(name)
    state.allowed.clear()
    return reply


def _get_with(state: State, operation: GetWith, seed: int) -> Reply:
    turn = operation.turn
    policy = state.settings.policy if operation.policy is None else operation.policy
    if turn is not None:
        return _get_some(state, operation, Way(policy, in_turn=True, after=turn.after), seed)
    taking = operation.get
    shown = operation.meta or operation.head
    if operation.policy is None and operation.count is None and not shown:      # a Get that may use grants
        return get(state, taking, seed)
    queues = taking.queues
    if (
        queues is not None and operation.count is None and taking.item is None and not taking.item_of_put
        and state.fair is None
    ):
        if policy is Policy.PLACE:
            return _get_by_place(state, operation, queues)
        if len(queues) == 1 and policy not in (Policy.RR, Policy.FAIR) and not shown:
            return get(state, taking, seed)
    return _get_some(state, operation, Way(policy), seed)


def _get_by_place(state: State, operation: GetWith, names: tuple[str, ...]) -> Reply:
    """Hand out one job of these queues by PLACE. A fast path of the most frequent case: it takes half the time."""
    get = operation.get
    session = None
    if get.session is not None:
        session = state.sessions.use(get.session, state.clock_ms)
        if session is None:
            return SESSION_NOT_FOUND
    if state.queues.expiring:
        _asked(state, names)
    by_name = state.queues.by_name
    first: Queue | None = None
    place = (0, 0)
    for name in names:
        queue = by_name.get(name)
        if queue is not None and queue.front is not None:
            ready = queue.ready.first
            if first is None or (ready.rank, ready.seq) < place:
                first, place = queue, (ready.rank, ready.seq)
    if first is None:
        return EMPTY_UNFINISHED if unfinished(state, names, None) else EMPTY
    taken = state.take(first, None)
    job = state.hand_out(first, taken, *lease(state, first, get, taken))
    if session is not None:
        session.bind(job)
    return handed(state, job, operation)


def _get_some(state: State, operation: GetWith, way: Way, seed: int) -> Reply:
    get = operation.get
    session = None
    if get.session is not None:
        session = state.sessions.use(get.session, state.clock_ms)
        if session is None:
            return SESSION_NOT_FOUND
    item = state.put_item if get.item_of_put else get.item
    if get.item_of_put and item is None:
        return EMPTY
    count = 1 if operation.count is None else min(operation.count, limits.COUNT_MAX)
    if get.queues is not None and state.queues.expiring:
        _asked(state, get.queues)
    turned: dict[int, None] = {}
    if item is None and get.queues is not None and len(get.queues) == 1 and not _by_group(state, get.queues[0], way):
        jobs = _of_one_queue(state, get, get.queues[0], count)
        if way.policy is Policy.RR:
            turned = dict.fromkeys([job.id for job in jobs])
    else:
        jobs, turned = _of_many_queues(state, get, item, way, count, seed)
    if not jobs:
        return EMPTY_UNFINISHED if unfinished(state, get.queues, item) else EMPTY
    if session is not None:
        for job in jobs:
            session.bind(job)
    if operation.count is None:
        return handed(state, jobs[0], operation, turned=True if turned else UNSET)
    return HandedMany(tuple([
        handed(state, job, operation, turned=True if job.id in turned else UNSET) for job in jobs
    ]))


def _get_number(state: State, operation: GetWith, number: int) -> Reply:
    get = operation.get
    session = None
    if get.session is not None:
        session = state.sessions.use(get.session, state.clock_ms)
        if session is None:
            return SESSION_NOT_FOUND
    job = by_number(state, number)
    if job is None:
        return NOT_FOUND
    if isinstance(job, RunningJob):
        return JOB_RUNNING
    refusal = refused(state, job.item)
    if refusal is not None:
        return refusal
    taken = _taken_out(state, job)
    queue = state.queues.get_or_create(job.queue)
    running = state.hand_out(queue, taken, *lease(state, queue, get, taken))
    if session is not None:
        session.bind(running)
    return handed(state, running, operation)


def _taken_out(state: State, job: Job | DelayedJob | BuriedJob) -> Job:
    """Remove a READY, DELAYED or BURIED job from its list, and return it as a READY one."""
    if isinstance(job, BuriedJob):
        state.unbury(job)
        taken = job.ready(job.seq, job.attempts, job.at_ms, unburied(state, job.queue, job.extras))
    elif isinstance(job, DelayedJob):
        extras = job.extras
        if extras is not None and extras.after:
            state.spent += limits.STEP * len(extras.after)
            extras = replace(extras, after=(), until=Until.DONE)
        state.undefer(state.queues.by_name[job.queue], job)
        taken = replace(job.ready(job.seq), extras=extras)
    else:
        return state.remove_exact(state.queues.by_name[job.queue], job)
    # As it was not READY its TTL was not running. Its TTL starts over now, in case the hand-out is undone.
    return replace(now_due(state, taken), extras=expiring(taken.extras, state.clock_ms))


def _allow(state: State, names: tuple[str, ...] | None, free: tuple[Allowance, ...], seed: int) -> None:
    """Open the rate-limited queues that may use the free grants."""
    by_pulse = None if names is None else _by_pulse(state, names)
    for one in free:
        name, count = one.pulse, one.count
        pulse = state.pulses.by_name.get(name)
        if pulse is None or pulse.deny or count <= 0 or state.clock_ms < pulse.sleep_until_ms:
            continue
        if by_pulse is None:
            asked = state.queues.some_of_pulse(name, seed, limits.GRANTED_QUEUES_MAX)
        else:
            asked = by_pulse.get(name, [])
        steps = 2 if state.fair is None else 6              # each is listed, and taken off the list again
        state.spent += steps * limits.STEP * len(asked)
        by_name = state.queues.by_name
        state.allow(name, count, [by_name[queue] for queue in asked if queue in by_name])


def _by_pulse(state: State, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the queues that have a rate, grouped by their pulse.

    Each is looked at once, however many pulses there are.
    """
    found: dict[str, list[str]] = {}
    for queue in dict.fromkeys(names):
        settings = state.queues.settings.get(queue)
        if settings is not None and settings.pulse is not None:
            found.setdefault(settings.pulse, []).append(queue)
    return found


def get_with_cost(operation: GetWith) -> Cost:
    """Return the bytes and work of a GetWith."""
    size, work = get_cost(operation.get)
    count, turn, free = operation.count, operation.turn, operation.free
    if operation.number is not None:
        work = JOB_WITH_EXTRAS
    else:
        size += ID_BYTES
        if count is not None:
            work += max(0, min(JOB * count, limits.OPERATION_WORK_MAX))
    if turn is not None:
        size += of_names(turn.after)
    if free is not None:
        pulses = [one.pulse for one in free]
        size += BASE_BYTES + of_names(*pulses) + ID_BYTES * len(pulses)
        work += JOB * len(pulses) + LISTED * len(operation.get.queues or ())
    return size, work


def _by_group(state: State, name: str, way: Way) -> bool:
    """Return whether the job is chosen by its group (FAIR or GROUPS)."""
    if way.policy is Policy.FAIR:
        return True
    settings = state.queues.settings.get(name)
    return state.fair is not None and settings is not None and settings.by_groups


def _of_one_queue(state: State, get: Get, name: str, count: int) -> list[RunningJob]:
    """Do the same as _of_many_queues for a single queue, in a fifth less time."""
    jobs: list[RunningJob] = []
    queue = state.queues.by_name.get(name)
    if queue is None:
        return jobs
    if queue.settings is not None and queue.settings.batch:
        count = min(count, queue.settings.batch)
    room, work = limits.HANDED_BYTES_MAX - state.spent, limits.OPERATION_WORK_MAX
    while len(jobs) < count and queue.ready.size and not queue.closed:
        job = queue.ready.first
        room -= len(job.data)
        work -= PLAIN if job.item is None and job.extras is None else OTHER
        if (room < 0 or work < 0) and jobs:
            break
        jobs.append(state.hand_out(queue, state.take(queue, None), *lease(state, queue, get, job)))
        if state.events.endings:
            state.end_operation()
    return jobs


def _of_many_queues(
    state: State, get: Get, item: str | None, way: Way, count: int, seed: int,
) -> tuple[list[RunningJob], dict[int, None]]:
    """Hand out up to `count` jobs; returns them and the ids of those whose queues were chosen in turn."""
    jobs: list[RunningJob] = []
    turned: dict[int, None] = {}
    offered = offers(state, get.queues, item, way)
    left: dict[str, int] = {}       # how many jobs each queue with a BATCH may still hand out
    work = limits.OPERATION_WORK_MAX
    counted = (0 if state.fair is None else RANKED) + (PLAIN if state.allowed else 0)      # in addition to the hand-out
    if way.policy is Policy.FAIR:               # it looks at all of the queues for each job
        counted += (NAMED if item is None else NAMED_OF_ITEM) * len(get.queues or ())
    while len(jobs) < count:
        queue, found = chosen(state, offered, item, seed + len(jobs) * GOLDEN, first=not jobs)
        if queue is None:
            break
        if state.allowed and queue.closed:      # another queue has used the last grant of their pulse
            offered.gave(exhausted=True)
            continue
        job = next_job(state, queue, item) if found is None else found.job
        work -= 2 * (PLAIN if job.item is None and job.extras is None else OTHER) + counted
        if found is not None:
            work -= 2 * PLAIN * found.account.moves   # the number of queues in which its group is re-ranked
        if (state.spent + len(job.data) > limits.HANDED_BYTES_MAX or work < 0) and jobs:
            break
        exhausted = False
        if queue.settings is not None and queue.settings.batch:
            left[queue.name] = left.get(queue.name, queue.settings.batch) - 1
            exhausted = not left[queue.name]
        jobs.append(hand_out(state, queue, item, get, found))
        if state.events.endings:
            state.end_operation()
        if offered.turned:
            turned[jobs[-1].id] = None
        if len(jobs) < count:
            offered.gave(exhausted=exhausted)
    offered.end()
    if state.fair is not None:
        state.fair.open.settle()
    return jobs, turned


def handed(state: State, job: RunningJob, operation: object, turned: bool | UnsetType = UNSET) -> Handed:
    """Return the reply to `operation` that hands out this job. `turned`: see Handed."""
    data = job.data
    if type(data) is Body:
        data = data.read()
    extras = job.extras
    asked = operation if type(operation) is GetWith else None
    head: int | UnsetType = UNSET
    if asked is not None and asked.head:
        head = 0 if extras is None else extras.head
    elif extras is not None and extras.head:
        data = data[extras.head:]
    if asked is None or not asked.meta:
        return Handed(job.id, job.queue, job.priority, data, job.item, UNSET, turned, head)
    key, reason, group = (None, None, None) if extras is None else (extras.key, extras.reason, extras.group)
    attempt_data = Meta(key, job.attempts, job.at_ms, job.deadline_ms, reason, group, number_of(job))
    life = (life_of(state, job) if asked.life else None) or UNSET
    return Handed(job.id, job.queue, job.priority, data, job.item, attempt_data, turned, head, life)
