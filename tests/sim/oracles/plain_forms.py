"""What an operation does to jobs, said with less: without what decides nothing but shares of time, rates or reasons."""

from __future__ import annotations

from core import (
    Bury,
    BuryWithReason,
    Done,
    DoneLast,
    DoneRan,
    EndWith,
    GetAllowed,
    GetInTurn,
    GetWith,
    LaterRan,
    LaterWith,
    LaterWithReason,
    Operation,
    PutGrouped,
    PutWith,
    TouchRan,
)


def unmeasured(operation: Operation) -> Operation:
    """The same without the time that a group used and without a pulse.

    That decides nothing while no queue is FAIR and none has a rate, as in all runs.
    """
    match operation:
        case DoneRan():
            return DoneLast(operation.id) if operation.last else Done(operation.id)
        case LaterRan():
            return operation.later
        case TouchRan():
            return operation.touch
        case EndWith():
            return unmeasured(operation.end)
        case GetAllowed():
            return operation.taking
    return operation


def plain(operation: Operation) -> Operation:
    """The same also without its group, reason or turn: it may take another job, but does the same to the one it takes.
    """
    bare = unmeasured(operation)
    match bare:
        case PutGrouped():
            return PutWith(
                bare.put, bare.when, bare.ttl_ms, bare.every_ms, bare.after, bare.key, bare.on_dup, bare.tries,
            )
        case LaterWithReason():
            return LaterWith(bare.id, bare.when, bare.priority, bare.first, bare.yielded)
        case BuryWithReason():
            return Bury(bare.id)
        case GetInTurn():
            return GetWith(bare.get, bare.count, bare.policy, bare.meta)
    return bare
