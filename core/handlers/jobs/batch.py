"""Executes a sequence of operations as one (spec/state-machine 9)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, JOB, NAMED, Cost, of_names
from sockpqd.core.handlers.dispatch import ATOMIC, OWNED, cost
from sockpqd.core.ops import replies
from sockpqd.core.ops.jobs import Atomic, Batch, Put, PutWith, put_by
from sockpqd.core.ops.replies import Reply
from sockpqd.core.state import State
from sockpqd.core.undo import Undo

_EXECUTED = (
    replies.Stored, replies.StoredNumber, replies.JobIgnored, replies.IgnoredNumber, replies.JobReplaced,
    replies.Finished, replies.Rearmed, replies.Accepted, replies.DataDropped, replies.Leased, replies.Spread,
    replies.Removed, replies.JobDropped,
)


def batch(state: State, operation: Batch, seed: int) -> Reply:
    """Execute the operations in order; with `atomic` none takes effect if one is refused."""
    put_item = state.put_item
    undo = Undo(state) if operation.atomic else None
    state.spread_left, state.route_steps_left = limits.SPREAD_JOBS_MAX, limits.ROUTE_STEPS_BATCH
    answers: list[Reply] = []
    execute = ATOMIC if state.cluster_map is None else OWNED
    for part in operation.operations:
        if operation.user is not None:
            part = put_by(part, operation.user)
        reply = execute[type(part)](state, part, seed)
        answers.append(reply)
        if state.events.endings:
            state.end_operation()
        if undo is not None and type(reply) not in _EXECUTED:
            break
    state.put_item = put_item
    state.spread_left = state.route_steps_left = None
    if undo is None:
        return replies.Results(tuple(answers))
    if answers and type(answers[-1]) not in _EXECUTED:
        undo.back()
        return replies.Aborted(len(answers), answers[-1])
    undo.commit()
    return replies.Results(tuple(answers))


def batch_cost(operation: Batch) -> Cost:
    """Return the bytes and work of a Batch.

    It is the sum of its operations, plus an amount for each queue and group that they name.
    """
    size, work = BASE_BYTES + of_names(operation.user), JOB
    names = BatchNames()
    for part in operation.operations:
        its_size, its_work = cost(part)
        size += its_size
        work += its_work + names.work(part)
    return size, work


class BatchNames:
    """The queues and groups of the Puts of a Batch: the cost of the first Put into each includes it."""

    def __init__(self) -> None:
        self._queues: set[str] = set()
        self._groups: set[str] = set()

    def work(self, part: Atomic) -> int:
        """Return the work that the next operation adds beyond its own."""
        work = 0
        group = None
        if type(part) is PutWith:
            group, part = part.group, part.put
        if type(part) is Put:
            queues = self._queues
            if part.queue not in queues:
                work = NAMED if queues else 0
                queues.add(part.queue)
            if group is not None and group not in self._groups:
                work += NAMED if self._groups else 0
                self._groups.add(group)
        return work
