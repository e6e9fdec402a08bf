"""Puts into several queues, named or bound to a topic: into all of them or none (spec/state-machine 12)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.handlers.cluster.elsewhere import elsewhere
from sockpqd.core.handlers.cost import JOB, JOB_WITH_EXTRAS, Cost, of_names
from sockpqd.core.handlers.jobs.place import place
from sockpqd.core.ops import replies
from sockpqd.core.ops.jobs import Put, PutWith, ToQueues, ToTopic
from sockpqd.core.ops.replies import Reply
from sockpqd.core.rules import activate
from sockpqd.core.rules.activate import awaited_items
from sockpqd.core.rules.admit import (
    admitted,
    at_capacity,
    cannot_remember,
    displaced,
    key_taken,
    rejects_puts,
    remember,
)
from sockpqd.core.rules.items.cancel import refused_put
from sockpqd.core.state import State
from sockpqd.core.store.job import NO_EXTRAS, Job, is_plain
from sockpqd.core.store.queues import PUT


def spread(state: State, operation: PutWith, targets: ToQueues | ToTopic) -> Reply:
    """Put the same job into each of the queues, or into each queue that the routing key reaches."""
    if operation.number or operation.lease_ms is not None:
        operation = replace(operation, number=False, lease_ms=None)
    if isinstance(targets, ToQueues):
        return _spread(state, tuple(dict.fromkeys(targets.queues)), operation)
    bindings = state.topics.by_name.get(targets.topic)
    if bindings is not None:
        steps = state.topics.route_steps(targets.topic, targets.route)
        if steps > limits.ROUTE_STEPS_MAX:
            return replies.DATA_TOO_LARGE
        if state.route_steps_left is not None:
            if steps > state.route_steps_left:
                return replies.DATA_TOO_LARGE
            state.route_steps_left -= steps
        state.spent += limits.STEP // 7 * max(steps, len(bindings))
    names = state.topics.reached(targets.topic, targets.route)
    return elsewhere(state, names) or _spread(state, names, operation)


def targets_cost(operation: PutWith, targets: ToQueues | ToTopic) -> Cost:
    """Return the bytes and work that the targets add: the body is stored once.

    A topic's queues are counted at execution.
    """
    if isinstance(targets, ToTopic):
        return of_names(targets.topic, targets.route), 0
    queues = targets.queues
    return of_names(*queues), max(0, len(queues) - 1) * (JOB if _plain(operation) else JOB_WITH_EXTRAS)


def _plain(job: PutWith) -> bool:
    return job.key is None and job.dedup is None and job.when is None and not job.after and job.every_ms is None


def _unmarked(job: PutWith) -> bool:
    put = job.put
    return job == PutWith(Put(put.queue, put.priority, put.data), targets=job.targets, head=job.head, user=job.user)


def _spread(state: State, names: Sequence[str], operation: PutWith) -> Reply:
    state.put_item = None
    settings = state.queues.settings
    many = len(names) > limits.SPREAD_MARKED_MAX
    if many and (not _unmarked(operation) or any(name in settings for name in names)):
        return replies.DATA_TOO_LARGE
    if state.spread_left is not None:
        if len(names) > state.spread_left:
            return replies.DATA_TOO_LARGE
        state.spread_left -= len(names)
    if operation.dedup is not None:
        key = operation.dedup.key
        names = [name for name in names if state.remembered_keys.find(name, key, state.clock_ms) is None]
    if not many or not state.settings.autocreate:       # otherwise nothing can refuse it
        for name in names:
            refusal = _refusal(state, name, operation)
            if refusal is not None:
                return refusal
    state.spent += 6 * limits.STEP * len(names)         # some 3,000 of these jobs are all that an entry may do
    _put_into(state, names, operation)
    return replies.Spread(len(names))


def _refusal(state: State, name: str, operation: PutWith) -> Reply | None:
    """Return the reply of a queue that refuses the job; None if it accepts it."""
    plain = name not in state.queues.settings and state.settings.autocreate     # then only the key can refuse
    refusal = None if plain else rejects_puts(state, name, len(operation.put.data))
    if refusal is None and operation.put.item is not None:
        refusal = refused_put(state, operation.put)
    if refusal is None and operation.key is not None and key_taken(state, name, operation.key):
        refusal = replies.JOB_EXISTS
    if not plain:
        refusal = refusal or at_capacity(state, name)
    return refusal or cannot_remember(state, operation, name)


def _put_into(state: State, names: Sequence[str], operation: PutWith) -> None:
    """Put the job into each of the queues, all of which have room for it."""
    put = operation.put
    shared = len(names) > 1 and len(put.data) >= limits.SHARED_BYTES_MIN
    body = state.next_seq if shared else None
    # Jobs may have one Body only if snapshots know that they share it.
    data = state.held(put.data) if shared or len(names) == 1 else put.data
    events = state.events
    like: Job | None = None         # what the jobs of all queues without settings are like,
    plain = False                   # and whether they are READY and nothing need be noted but them
    for name in names:
        queue = state.queues.get_or_create(name)
        leaving = None if queue.settings is None else displaced(queue)
        if like is not None and queue.settings is None:
            job = replace(like, seq=state.new_seq(), queue=queue.name)
            if plain:
                state.add_plain(queue, job)
            else:
                activate.place(state, queue, job, active_ms=job.at_ms)
        else:
            after = awaited_items(state, operation)
            job = place(state, operation, queue, put.item, state.new_seq(), body=body, data=data, after=after)
            if queue.settings is None and not operation.after:
                extras = job.extras if job.extras is None else replace(job.extras, body=None)
                like, plain = job, job.item is None and job.at_ms is None and (extras == NO_EXTRAS or is_plain(extras))
        if operation.dedup is not None:
            remember(state, operation, job)
        queue.counters[PUT] += 1
        events.seq += 1
        if events.recorded:
            events.record("PUT", queue.name, put.priority)
        if queue.settings is not None:
            admitted(state, queue, leaving)
