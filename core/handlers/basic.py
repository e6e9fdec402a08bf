"""What each operation of the original protocol does, and what a Lead does. One function per operation; table.py has
the table.

A handler gets the state, the operation and the random bits of its place in the entry; it returns the reply. It is
total: whatever a client can cause is a reply, never an exception. It looks first and changes after.
"""

from __future__ import annotations

from msgspec.structs import replace

from core.handlers.members import follow
from core.ops.cluster import CloneBegin, CloneChunk, CloneEnd, Lead, Resume, Tick
from core.ops.jobs import Done, Get, Later, Put, Return, Then
from core.ops.replies import Handed, Reply, Stored
from core.rules.admit import (
    ACCEPTED,
    EMPTY,
    EMPTY_UNFINISHED,
    INVALID_SNAPSHOT,
    NOT_FOUND,
    SESSION_NOT_FOUND,
    STORED,
    full,
    shut,
)
from core.rules.complete import finish, put_back, undo_hand_out
from core.rules.hand_out import hand_out, unfinished
from core.rules.select import choice
from core.snapshot.frames import SnapshotError
from core.snapshot.upload import PendingClone
from core.snapshot.upload import adopt as adopt_clone
from core.state import State
from core.store.queues import PUT


def put(state: State, operation: Put, seed: int) -> Reply:
    """A new job at the tail of its priority."""
    name = operation.queue
    queue = state.queues.by_name.get(name)
    if queue is None or queue.settings is not None:
        refusal = shut(state, name, len(operation.data)) or full(state, name)
        if refusal is not None:
            state.put_item = None
            return refusal
        queue = state.queues.open(name)
    item = state.items.new_name(seed) if operation.new_item else operation.item
    state.put_item = item
    state.wait(queue, -operation.priority, state.new_seq(), operation.data, item)
    queue.counters[PUT] += 1
    return Stored(item) if operation.new_item else STORED


def get(state: State, operation: Get, seed: int) -> Reply:
    """Hand out the first job of one of the queues asked for that have one; each of these queues is equally likely.

    With another policy of the cluster another one is chosen.
    """
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
        if not queue.ready.size or queue.closed:
            return EMPTY_UNFINISHED
    else:
        queue = choice(state, queues, item, state.settings.policy, seed)
        if queue is None:
            return EMPTY_UNFINISHED if unfinished(state, queues, item) else EMPTY
    job = hand_out(state, queue, item, operation)
    if session is not None:
        session.bind(job)
    return Handed(job.id, job.queue, job.priority, job.data, job.item)


def done(state: State, operation: Done, seed: int) -> Reply:
    """The job is finished."""
    job = state.stop(operation.id)
    return NOT_FOUND if job is None else finish(state, job)


def later(state: State, operation: Later, seed: int) -> Reply:
    """The job goes to the tail of its priority."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    put_back(state, job)
    return ACCEPTED


def return_(state: State, operation: Return, seed: int) -> Reply:
    """The job goes back to where it was."""
    job = state.stop(operation.id)
    if job is None:
        return NOT_FOUND
    undo_hand_out(state, job)
    return ACCEPTED


def tick(state: State, operation: Tick, seed: int) -> Reply:
    """The entry itself has carried the clock forward."""
    return ACCEPTED


def lead(state: State, operation: Lead, seed: int) -> Reply:
    """A new leadership: members and server ids, failover grace, the end of an unfinished CLONE."""
    if state.cluster_id is None:
        state.cluster_id = operation.cluster_id
        then = Then.DONE if operation.expire_default is Then.DONE else Then.LATER
        state.settings = replace(state.settings, expire_default=then)
    state.term = operation.term
    state.leader = operation.node
    follow(state, operation)
    grace_ms = state.settings.grace_ms
    state.grant_grace(operation.grace_ms if grace_ms is None else grace_ms)
    state.clone = None
    return ACCEPTED


def resume(state: State, operation: Resume, seed: int) -> Reply:
    """Entries can be logged again."""
    grace_ms = state.settings.grace_ms
    state.grant_grace(operation.grace_ms if grace_ms is None else grace_ms, once=False)
    return ACCEPTED


def clone_begin(state: State, operation: CloneBegin, seed: int) -> Reply:
    """A snapshot follows; an unfinished one is dropped."""
    state.clone = PendingClone(operation.clone, operation.total_bytes)
    return ACCEPTED


def clone_chunk(state: State, operation: CloneChunk, seed: int) -> Reply:
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


def clone_end(state: State, operation: CloneEnd, seed: int) -> Reply:
    """Replace the jobs by those of the snapshot."""
    clone = state.clone
    if clone is None or clone.clone != operation.clone:
        return INVALID_SNAPSHOT
    state.clone = None
    try:
        adopt_clone(state, clone.finish())
    except SnapshotError:
        return INVALID_SNAPSHOT
    state.effects.restored = True
    return ACCEPTED
