"""Handlers of the operations on workers (spec/state-machine 11)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, JOB, Cost, of_names
from sockpqd.core.ops import replies
from sockpqd.core.ops import workers as ops
from sockpqd.core.ops.replies import Reply
from sockpqd.core.sessions.workers import WorkerPool
from sockpqd.core.state import State


def heartbeat(state: State, operation: ops.BeatWorker, seed: int) -> Reply:
    """Record that the worker is alive; replies with the operator's settings. Its first session owns it."""
    session = state.sessions.use(operation.session, state.clock_ms)
    if session is None:
        return replies.SESSION_NOT_FOUND
    workers = state.workers
    worker = workers.by_name.get(operation.name)
    if worker is None:
        if not workers.room(session.user):
            return replies.TooManyWorkers()
        worker = workers.find(operation.name, state.clock_ms) or WorkerPool(operation.name, 0, "", 0, 0, 0)
        worker.session = session.number
        workers.add(worker)
    elif worker.session != session.number:
        owner = state.sessions.by_number[worker.session]
        if state.clock_ms - owner.used_ms < limits.WORKER_SILENT_MS:
            return replies.WorkerExists()
        if owner.user != session.user and not workers.room(session.user):
            return replies.TooManyWorkers()
        workers.claim(worker, session.number)
    worker.unheard = False
    worker.address = operation.address
    worker.slots, worker.busy = _bounded(operation.slots), _bounded(operation.busy)
    worker.beat_ms = state.clock_ms
    return replies.WorkerBounds(worker.most, worker.least, worker.state)


def _bounded(number: int) -> int:
    return min(max(number, 0), limits.NUMBER_MAX)


def heartbeat_cost(operation: ops.BeatWorker) -> Cost:
    """Return the bytes and work of a BeatWorker."""
    return BASE_BYTES + of_names(operation.name, operation.address), JOB


def set_worker(state: State, operation: ops.SetWorker, seed: int) -> Reply:
    """Set the operator's settings for the worker, which receives them at its next heartbeat, or at once by an event."""
    worker = state.workers.find(operation.name, state.clock_ms)
    if worker is None:
        return replies.WorkerNotFound()
    most = worker.most if operation.most is None else _bounded(operation.most)
    least = worker.least if operation.least is None else _bounded(operation.least)
    if most is not None and least is not None and least > most:
        return replies.BadSetting()
    worker.most, worker.least, worker.unheard = most, least, True
    words: list[int | str] = []
    if operation.most is not None:
        words += ("MAX", _bounded(operation.most))
    if operation.least is not None:
        words += ("MIN", _bounded(operation.least))
    if operation.state is not None:
        worker.state = ops.WorkerState(operation.state)
        words += ("STATE", worker.state.name)
    state.events.tell("WORKER", worker.name, *words)
    return replies.ACCEPTED


def set_cost(operation: ops.SetWorker) -> Cost:
    """Return the bytes and work of a SetWorker."""
    return BASE_BYTES + of_names(operation.name), JOB
