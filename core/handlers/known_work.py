"""The work of an operation beyond its declared cost (cost.py), which only the state determines.

The leader asks when the operation is proposed, so that it closes entries and charges clients by the real
work. It may be outdated when the operation is executed; what matters then is State.spent.
"""

from __future__ import annotations

from collections.abc import Iterable

from sockpqd.core import limits
from sockpqd.core.fair.ranked_again import ranked_again
from sockpqd.core.handlers.cost import BOUND, DROP, FAIR, RANKED, RELISTED, ROUTE_STEPS
from sockpqd.core.handlers.groups import ranked_in
from sockpqd.core.handlers.queues import regroups
from sockpqd.core.ops.entry import Operation
from sockpqd.core.ops.jobs import Await, Batch, CancelItem, Done, End, How, Later, Move, Number, PutWith, ToTopic, Touch
from sockpqd.core.ops.queues import ConfigureGroup, ConfigureQueue, DeleteGroup, Overflow
from sockpqd.core.ops.sessions import Request
from sockpqd.core.rules.items.cancel import cancel_work
from sockpqd.core.state import State

# What a transaction is charged for, which cannot be divided: work also counts as memory, which ranking does not take.
RANKING_OF_BATCH_MAX = 10 * limits.OPERATION_WORK_MAX


def known_work(state: State, operation: Operation) -> int:
    """Return the work beyond `cost(operation)`: for queues bound to a topic, jobs that make room, and groups that are
    ranked or listed again.

    It is 0 for a Put, Done or Later without options, which the leader does not ask about, except in a Batch.
    """
    if type(operation) is Request:
        return known_work(state, operation.operation)
    if type(operation) is Batch:
        puts = [part for part in operation.operations if type(part) is PutWith]
        work = sum([_put_work(state, put) for put in puts])
        steps = sum([_route_steps(state, put) for put in puts])
        # It puts no more jobs than that, and compares no more words.
        return (
            min(work, (BOUND + FAIR) * limits.SPREAD_JOBS_MAX) + min(steps, limits.ROUTE_STEPS_BATCH) // ROUTE_STEPS
            + min(_ranking_work(state, operation.operations), RANKING_OF_BATCH_MAX)
        )
    if type(operation) is PutWith:
        return _put_work(state, operation) + _route_steps(state, operation) // ROUTE_STEPS
    if type(operation) is CancelItem:
        return cancel_work(state, operation.item)
    if type(operation) is ConfigureQueue:
        return _listing_work(state, operation)
    if isinstance(operation, ConfigureGroup | DeleteGroup):
        return RELISTED * ranked_in(state, operation.group)
    if type(operation) is Await:
        selector = operation.selector
        return state.records.work_of(selector.number) if isinstance(selector, Number) else 0
    return _ranking_work(state, (operation,)) if isinstance(operation, End | Move | Touch) else 0


def _listing_work(state: State, operation: ConfigureQueue) -> int:
    """Return the work of listing the groups of a queue again, whose settings of groups may change."""
    if state.fair is None or not regroups(operation.change):
        return 0
    queue = state.queues.by_name.get(operation.queue)
    running = 0 if queue is None else len(queue.taken)
    return RELISTED * (state.fair.relisted(operation.queue) + min(running, limits.GROUPS_RELISTED_MAX))


def _ranking_work(state: State, operations: Iterable[Operation]) -> int:
    """Return the work of ranking groups again after the hand-outs that these operations end or charge.

    LATER, BURY and MOVE put a job as well, into the same queue or another.
    """
    if state.fair is None:
        return 0
    work = 0
    numbers: list[int] = []
    for operation in operations:
        if isinstance(operation, Done):
            work += FAIR
            numbers.append(operation.id)
        elif isinstance(operation, Later | Move):
            work += 2 * FAIR
            numbers.append(operation.id)
        elif isinstance(operation, End | Touch):
            ids = (operation.ids,) if isinstance(operation.ids, int) else operation.ids
            puts = isinstance(operation, End) and operation.how is not How.DONE
            work += (2 * FAIR if puts else FAIR) * len(ids)
            numbers += ids
    running = state.running
    jobs = [job for number in numbers if (job := running.get(number)) is not None]
    return work + RANKED * ranked_again(state.fair, jobs)


def _put_work(state: State, operation: PutWith) -> int:
    """Return the work of its jobs beyond the cost: those of queues bound to a topic, and one that makes room."""
    targets = operation.targets
    if type(targets) is ToTopic:
        bound = len(state.topics.by_name.get(targets.topic, ()))
        return (BOUND if state.fair is None else BOUND + FAIR) * bound
    settings = state.queues.settings.get(operation.put.queue)
    return DROP if settings is not None and settings.overflow is Overflow.DROPOLDEST else 0


def _route_steps(state: State, operation: PutWith) -> int:
    """Return how many words of its key are compared with patterns, at most: above ROUTE_STEPS_MAX it is refused."""
    targets = operation.targets
    if type(targets) is not ToTopic:
        return 0
    steps = state.topics.route_steps(targets.topic, targets.route)
    return steps if steps <= limits.ROUTE_STEPS_MAX else 0
