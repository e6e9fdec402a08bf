"""Bounds the time at which a command took effect, from its record.

A command is executed at one instant. It lies between the start and the end of a record that is OK; there is none for
one that was not executed; and of an unknown one it is known only that it is not before the start.
"""

from __future__ import annotations

from tests.chaos.workload.history import Outcome, Record

MS = 1_000_000              # nanoseconds
SECOND = 1_000_000_000
NEVER = 1 << 62             # later than anything


def is_ok(record: Record) -> bool:
    """Return whether the command was executed and the client knows it."""
    return record.outcome is Outcome.OK


def may_have_acted(record: Record) -> bool:
    """Return whether it may have changed something: it was not refused, and a DONE or LATER found its job."""
    return record.outcome is not Outcome.NOT_EXECUTED and not record.missing


def acted(record: Record) -> bool:
    """Return whether it certainly changed something."""
    return record.outcome is Outcome.OK and not record.missing


def latest(record: Record) -> int:
    """Return the time by which the command took effect, if it did."""
    if record.outcome is Outcome.OK and record.end_ns is not None:
        return record.end_ns
    return NEVER
