"""What each operation costs: an upper bound of its bytes in an entry, and how much work it may be.

An entry of the log is closed by the sums of both (cluster/leader/proposer.py), so that none is larger than can be sent,
and none keeps everybody waiting. Both are told from the operation alone, before it is proposed, and must cost next to
nothing. What only the state knows is counted while an entry is executed: see State.spent.

Names are plain ASCII (PROTOCOL "Lines, data, values"), so the length of one is its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core import limits
from core.ops.cluster import (
    AddLearner,
    AttachSession,
    CloneBegin,
    CloneChunk,
    CloneEnd,
    CloseSession,
    DeleteUser,
    Lead,
    OpenSession,
    Operation,
    PromoteLearner,
    RemoveMember,
    Request,
    Resume,
    SetUser,
    SwitchService,
    Tick,
    TouchSession,
)
from core.ops.jobs import (
    Batch,
    Bury,
    Change,
    Delete,
    Done,
    DoneAll,
    DoneLast,
    Get,
    Kick,
    Later,
    LaterAll,
    LaterWith,
    Move,
    Pick,
    Put,
    PutWith,
    Return,
    Touch,
)
from core.ops.queues import (
    Configure,
    ConfigureQueue,
    CreateQueue,
    DeleteQueue,
    PauseQueue,
    PurgeQueue,
    ResumeQueue,
)

Cost = tuple[int, int]          # bytes, work

BASE_BYTES = 64                 # of whatever has no length of its own, and of the operation in the leader's memory
OPTIONS_BYTES = 64              # of the options of a Put
CHANGE_BYTES = 128              # of the settings of a queue
NAME_BYTES = 3                  # of a string beside its letters
ID_BYTES = 9

# Work is counted in names: to look whether a queue of this name has something to give.
JOB = 8                         # to put, hand out or end a job
JOB_WITH_MORE = 24              # the same with all that few jobs have: key, TTL, time, attempts
AFTER = 2                       # to note that a job waits for an item
USERS = 160                     # to change a user, for which all are copied

_SIMPLE = (BASE_BYTES, JOB)


def cost(operation: Operation) -> Cost:
    """Bytes and work of the operation, see above."""
    known = COSTS[type(operation)]
    return known if isinstance(known, tuple) else known(operation)


def _put(operation: Put) -> Cost:
    item = operation.item
    if item is None:
        return BASE_BYTES + len(operation.data) + len(operation.queue), JOB
    return BASE_BYTES + len(operation.data) + len(operation.queue) + len(item), JOB


def _put_with(operation: PutWith) -> Cost:
    size, _ = _put(operation.put)
    after = operation.after
    return size + OPTIONS_BYTES + _names(*after) + _names(operation.key), JOB_WITH_MORE + AFTER * len(after)


def _get(operation: Get) -> Cost:
    queues = operation.queues
    size = BASE_BYTES if operation.item is None else BASE_BYTES + len(operation.item)
    if queues is None:
        return size, JOB
    if len(queues) == 1:
        return size + NAME_BYTES + len(queues[0]), JOB
    return size + NAME_BYTES * len(queues) + sum(map(len, queues)), JOB + len(queues)


def _pick(operation: Pick) -> Cost:
    size, work = _get(operation.get)
    count = operation.count
    return size + ID_BYTES, work if count is None else work + max(0, min(JOB * count, limits.OPERATION_WORK_MAX))


def _ids(operation: DoneAll | LaterAll) -> Cost:
    return BASE_BYTES + ID_BYTES * len(operation.ids), JOB * len(operation.ids)


def _change(operation: Change) -> Cost:
    selector, data = operation.selector, operation.data or b""
    return (
        BASE_BYTES + _names(selector.queue, selector.key, operation.item) + len(data),
        JOB_WITH_MORE,
    )


def _move(operation: Move) -> Cost:
    return BASE_BYTES + _names(operation.queue) + len(operation.data or b""), JOB_WITH_MORE


def _batch(operation: Batch) -> Cost:
    size, work = BASE_BYTES, JOB
    for part in operation.operations:
        its_size, its_work = cost(part)
        size += its_size
        work += its_work
    return size, work


def _names(*names: str | None) -> int:
    return sum(NAME_BYTES + len(name) for name in names if name is not None)


def _settings(operation: CreateQueue | ConfigureQueue) -> Cost:
    change = operation.change
    resorts = change.order is not None or change.item_limit is not None
    size = BASE_BYTES + CHANGE_BYTES + _names(operation.queue, change.dead)
    return size, JOB * limits.RESORTED_JOBS_MAX if resorts else JOB


def _on_queue(operation: Any) -> Cost:
    return BASE_BYTES + _names(operation.queue), JOB


def _purge(operation: DeleteQueue | PurgeQueue) -> Cost:
    return BASE_BYTES + _names(operation.queue), JOB * limits.PORTION_MAX


def _kick(operation: Kick) -> Cost:
    return BASE_BYTES + _names(operation.queue), JOB * max(0, min(operation.count, limits.PORTION_MAX))


def _request(operation: Request) -> Cost:
    requested = operation.operation
    size, work = cost(requested)
    return BASE_BYTES + len(operation.digest) + size, work


def _lead(operation: Lead) -> Cost:
    size = 2 * BASE_BYTES + _names(operation.node, *operation.members)
    return size + sum(1 + _names(one.name, one.peer, one.client) for one in operation.addresses), JOB


COSTS: dict[type[Any], Cost | Callable[[Any], Cost]] = {
    **dict.fromkeys((
        Bury, Configure, CloneBegin, Done, DoneLast, Later, LaterWith, Resume, Return, SwitchService, Tick, Touch,
        TouchSession,
    ), _SIMPLE),
    Put: _put,
    PutWith: _put_with,
    Get: _get,
    Pick: _pick,
    DoneAll: _ids,
    LaterAll: _ids,
    Change: _change,
    Delete: lambda operation: (BASE_BYTES + _names(operation.selector.queue, operation.selector.key), JOB_WITH_MORE),
    Move: _move,
    Kick: _kick,
    Batch: _batch,
    CreateQueue: _settings,
    ConfigureQueue: _settings,
    DeleteQueue: _purge,
    PurgeQueue: _purge,
    PauseQueue: _on_queue,
    ResumeQueue: _on_queue,
    Request: _request,
    Lead: _lead,
    AddLearner: lambda operation: (BASE_BYTES + _names(operation.node, operation.peer, operation.client), JOB),
    PromoteLearner: lambda operation: (BASE_BYTES + _names(operation.node), JOB),
    RemoveMember: lambda operation: (BASE_BYTES + _names(operation.node), JOB),
    CloneChunk: lambda operation: (BASE_BYTES + len(operation.data), JOB),
    CloneEnd: lambda operation: (BASE_BYTES, limits.OPERATION_WORK_MAX),
    OpenSession: lambda operation: (BASE_BYTES + _names(operation.user, operation.address), JOB),
    AttachSession: lambda operation: (BASE_BYTES + _names(operation.user), JOB),
    CloseSession: lambda operation: (BASE_BYTES, JOB * limits.PORTION_MAX),   # or UNBOUND_MAX, for less
    SetUser: lambda operation: (BASE_BYTES + _names(operation.name, operation.rights) + len(operation.key), USERS),
    DeleteUser: lambda operation: (BASE_BYTES + _names(operation.name), USERS),
}
