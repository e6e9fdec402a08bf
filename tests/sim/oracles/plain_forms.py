"""What an operation does to jobs, said with less: without rates, shares of time or reasons."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import (
    End,
    GetWith,
    Operation,
    PutWith,
    Touch,
)


def unrated(operation: Operation) -> Operation:
    """The same without a pulse. That decides nothing while no queue has a rate, as in all runs."""
    match operation:
        case End():
            return replace(operation, feedback=None, sleep_ms=0)
        case GetWith():
            return replace(operation, free=None)
    return operation


def unmeasured(operation: Operation) -> Operation:
    """The same also without the time that a group used: it decides which job comes next, not what is done to one."""
    bare = unrated(operation)
    match bare:
        case End() | Touch():
            return replace(bare, ran_ms=None)
    return bare


def plain(operation: Operation) -> Operation:
    """The same also without its group, reason or turn: it may take another job, but does the same to the one it takes.
    """
    bare = unmeasured(operation)
    match bare:
        case PutWith():
            return replace(bare, group=None)
        case End():
            return replace(bare, reason=None)
        case GetWith():
            return replace(bare, turn=None)
    return bare
