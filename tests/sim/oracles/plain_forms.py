"""What an operation does to jobs, said with less: without rates, shares of time or reasons."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import (
    Bury,
    BuryWithReason,
    Done,
    DoneLast,
    DoneRan,
    EndWith,
    Get,
    GetAllowed,
    GetInTurn,
    GetNumber,
    GetWith,
    LaterRan,
    LaterWith,
    LaterWithReason,
    Operation,
    PutGrouped,
    PutWith,
    Touch,
)


def unrated(operation: Operation) -> Operation:
    """The same without a pulse. That decides nothing while no queue has a rate, as in all runs."""
    match operation:
        case EndWith():
            return operation.end
        case GetAllowed():
            return operation.taking
    return operation


def unmeasured(operation: Operation) -> Operation:
    """The same also without the time that a group used: it decides which job comes next, not what is done to one."""
    bare = unrated(operation)
    match bare:
        case DoneRan():
            return DoneLast(bare.id) if bare.last else Done(bare.id)
        case LaterRan():
            return bare.later
        case Touch():
            return replace(bare, ran_ms=None)
    return bare


def with_options(operation: GetNumber) -> GetWith:
    """The hand-out of one job, as far as it decides its lease and what is told of it."""
    return GetWith(Get(None, operation.expire_ms, operation.then, session=operation.session), meta=operation.meta)


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
