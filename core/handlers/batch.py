"""Several operations in a row, as one (spec/state-machine 9); basic.py says what a handler is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.handlers.basic import done, later, put
from core.handlers.edit import bury_, change, delete, done_last, later_with, move, touch
from core.handlers.put import put_with
from core.ops.jobs import (
    Atomic,
    Batch,
    Bury,
    Change,
    Delete,
    Done,
    DoneLast,
    Later,
    LaterWith,
    Move,
    Put,
    PutWith,
    Touch,
)
from core.ops.replies import (
    Aborted,
    Accepted,
    Finished,
    JobIgnored,
    JobReplaced,
    Leased,
    Rearmed,
    Reply,
    Results,
    Stored,
)
from core.state import State
from core.undo import Undo

ATOMIC: dict[type[Atomic], Callable[[State, Any, int], Reply]] = {
    Put: put,
    PutWith: put_with,
    Done: done,
    DoneLast: done_last,
    Later: later,
    LaterWith: later_with,
    Move: move,
    Change: change,
    Delete: delete,
    Touch: touch,
    Bury: bury_,
}

_EXECUTED = (Stored, JobIgnored, JobReplaced, Finished, Rearmed, Accepted, Leased)


def batch(state: State, operation: Batch, seed: int) -> Reply:
    """Execute them in order; if `atomic` all or, when one is refused, none."""
    put_item = state.put_item
    undo = Undo(state) if operation.atomic else None
    replies: list[Reply] = []
    for part in operation.operations:
        reply = ATOMIC[type(part)](state, part, seed)
        replies.append(reply)
        if undo is not None and type(reply) not in _EXECUTED:
            break
    state.put_item = put_item
    if undo is None:
        return Results(tuple(replies))
    if replies and type(replies[-1]) not in _EXECUTED:
        undo.back()
        return Aborted(len(replies), replies[-1])
    undo.commit()
    return Results(tuple(replies))
