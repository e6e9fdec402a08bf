"""The work of an operation beyond its declared cost (cost.py), which only the state determines.

The leader asks when the operation is proposed, so that it closes entries and charges clients by the real
work. It may be outdated when the operation is executed; what matters then is State.spent.
"""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BOUND, DROP, FAIR
from sockpqd.core.ops.entry import Operation
from sockpqd.core.ops.jobs import Batch, CancelItem, End, PutWith, ToTopic
from sockpqd.core.ops.queues import Overflow
from sockpqd.core.ops.sessions import Request
from sockpqd.core.rules.items.cancel import cancel_work
from sockpqd.core.state import State


def known_work(state: State, operation: Operation) -> int:
    """Return the work beyond `cost(operation)`.

    Queues bound to a topic, a job that makes room, groups that are ranked again.

    Nobody asks about a Put without options.
    """
    if type(operation) is Request:
        return known_work(state, operation.operation)
    if type(operation) is Batch:
        work = sum([known_work(state, part) for part in operation.operations if type(part) is PutWith])
        return min(work, (BOUND + FAIR) * limits.SPREAD_JOBS_MAX)       # it puts no more jobs than that
    if type(operation) is PutWith:
        targets = operation.targets
        if type(targets) is ToTopic:
            bound = len(state.topics.by_name.get(targets.topic, ()))
            return (BOUND if state.fair is None else BOUND + FAIR) * bound
        settings = state.queues.settings.get(operation.put.queue)
        if settings is not None and settings.overflow is Overflow.DROPOLDEST:
            return DROP
    elif type(operation) is CancelItem:
        return cancel_work(state, operation.item)
    elif type(operation) is End and state.fair is not None:
        return FAIR if isinstance(operation.ids, int) else FAIR * len(operation.ids)
    return 0
