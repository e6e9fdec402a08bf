"""What each operation on jobs does, and what a Lead does. One function per operation; dispatch.py has the table.

A handler gets the state, the operation, the random bits of its place in the entry and the effects to add to; it returns
the reply. It is total: whatever a client can cause is a reply, never an exception. It looks first and changes after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.choice import choose
from core.clone import PendingClone
from core.effects import Effects
from core.frames import SnapshotError
from core.member_handlers import ACCEPTED, follow
from core.job_operations import Done, Get, Later, Put, Return, Then
from core.operations import CloneBegin, CloneChunk, CloneEnd, Lead, Tick
from core.replies import Empty, Finished, Handed, InvalidSnapshot, NotFound, Reply, SessionNotFound, Stored
from core.state import EXPIRE_MS_MAX, State

# Replies without a content of their own are made once.
NOT_FOUND = NotFound()
SESSION_NOT_FOUND = SessionNotFound()
STORED = Stored()
INVALID_SNAPSHOT = InvalidSnapshot()
EMPTY = Empty(unfinished=False)
EMPTY_UNFINISHED = Empty(unfinished=True)
FINISHED = {(queue, item): Finished(queue, item) for queue in (False, True) for item in (False, True)}


def put(state: State, operation: Put, seed: int, effects: Effects) -> Reply:
    """A new job at the tail of its priority."""
    item = state.items.new_name() if operation.new_item else operation.item
    state.put_item = item
    state.wait(operation.queue, -operation.priority, state.new_seq(), operation.data, item)
    effects.ready[operation.queue] = None
    if item is not None:        # not by job_ready, because this is the hottest path: a call would cost a PUT 4 %
        effects.ready_items[operation.queue, item] = None
    return Stored(item) if operation.new_item else STORED


def get(state: State, operation: Get, seed: int, effects: Effects) -> Reply:
    """Hand out the first job of one of the queues asked for that have one; each of these queues is equally likely."""
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
    if item is None and queues is not None and len(queues) == 1:
        queue = state.queues.by_name.get(queues[0])
        if queue is None:
            return EMPTY
        if not queue.ready.size:
            return EMPTY_UNFINISHED
    else:
        names = _candidates(state, queues, item)
        if not names:
            return EMPTY_UNFINISHED if _unfinished(state, queues, item) else EMPTY
        queue = state.queues.by_name[choose(names, seed)]
    expire_ms = operation.expire_ms
    if expire_ms is None or expire_ms <= 0:
        job = state.hand_out(state.take(queue, item), None, Then.LATER)
    else:
        then = state.expire_default if operation.then is Then.DEFAULT else operation.then
        job = state.hand_out(state.take(queue, item), min(expire_ms, EXPIRE_MS_MAX), then)
    if session is not None:
        session.bind(job)
    return Handed(job.id, job.queue, job.priority, job.data, job.item)


def _candidates(state: State, queues: tuple[str, ...] | None, item_name: str | None) -> Sequence[str]:
    """Sorted names of the queues asked for that have a job to give."""
    if item_name is None:
        if queues is None:
            names: Sequence[str] = state.queues.nonempty
            return names
        by_name = state.queues.by_name
        return sorted(name for name in dict.fromkeys(queues) if name in by_name and by_name[name].ready.size)
    item = state.items.by_name.get(item_name)
    if item is None:
        return ()
    if queues is None:
        return item.nonempty
    parts = item.parts
    return sorted(name for name in dict.fromkeys(queues) if name in parts and parts[name].ready.size)


def _unfinished(state: State, queues: tuple[str, ...] | None, item_name: str | None) -> bool:
    """Have the queues asked for an unfinished job (of the item)? A queue or part that has none does not exist."""
    if item_name is None:
        existing: dict[str, Any] = state.queues.by_name
    else:
        item = state.items.by_name.get(item_name)
        existing = {} if item is None else item.parts
    return bool(existing) if queues is None else any(name in existing for name in queues)


def done(state: State, operation: Done, seed: int, effects: Effects) -> Reply:
    """The job is finished."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    effects.ended[job.queue] = None
    return FINISHED[state.end(job)]


def later(state: State, operation: Later, seed: int, effects: Effects) -> Reply:
    """The job goes to the tail of its priority."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    state.requeue(job, state.new_seq())
    effects.job_ready(job.queue, job.item)
    return ACCEPTED


def return_(state: State, operation: Return, seed: int, effects: Effects) -> Reply:
    """The job goes back to where it was."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    state.requeue(job, job.seq)
    effects.job_ready(job.queue, job.item)
    return ACCEPTED


def tick(state: State, operation: Tick, seed: int, effects: Effects) -> Reply:
    """The entry itself has carried the clock forward."""
    return ACCEPTED


def lead(state: State, operation: Lead, seed: int, effects: Effects) -> Reply:
    """A new leadership: members and server ids, failover grace, the end of an unfinished CLONE."""
    if state.cluster_id is None:
        state.cluster_id = operation.cluster_id
        state.expire_default = Then.DONE if operation.expire_default is Then.DONE else Then.LATER
    state.term = operation.term
    state.leader = operation.node
    follow(state, operation)
    state.grant_grace(operation.grace_ms)
    state.clone = None
    return ACCEPTED


def clone_begin(state: State, operation: CloneBegin, seed: int, effects: Effects) -> Reply:
    """A snapshot follows; an unfinished one is dropped."""
    state.clone = PendingClone(operation.clone, operation.total_bytes)
    return ACCEPTED


def clone_chunk(state: State, operation: CloneChunk, seed: int, effects: Effects) -> Reply:
    """The next bytes of the snapshot."""
    clone = state.clone
    if clone is None or clone.clone != operation.clone:
        return INVALID_SNAPSHOT
    try:
        clone.add(operation.data)
    except SnapshotError:
        state.clone = None
        return INVALID_SNAPSHOT
    return ACCEPTED


def clone_end(state: State, operation: CloneEnd, seed: int, effects: Effects) -> Reply:
    """Replace the jobs by those of the snapshot."""
    clone = state.clone
    if clone is None or clone.clone != operation.clone:
        return INVALID_SNAPSHOT
    state.clone = None
    try:
        state.adopt(clone.finish())
    except SnapshotError:
        return INVALID_SNAPSHOT
    effects.restored = True
    return ACCEPTED
