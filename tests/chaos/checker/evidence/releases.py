"""Bounds the time at which a hand-out ended and its job waited again, from the records."""

from __future__ import annotations

from msgspec import Struct

from tests.chaos.checker.evidence.hidden import sure_lease_ns
from tests.chaos.checker.evidence.jobs import HandOut
from tests.chaos.checker.evidence.moments import MS, NEVER, is_ok
from tests.chaos.checker.facts import Facts
from tests.chaos.workload.history import Done, Later


class Release(Struct):
    """The job went back to its queue between these times; NEVER: not at all, or at an unknown time."""

    earliest_ns: int
    latest_ns: int


def lease_over_ns(hand_out: HandOut, facts: Facts) -> int:
    """Return the time by which the lease has certainly ended, if nothing ended it before."""
    if not hand_out.get.expire_ms or facts.lease_late_ms is None:
        return NEVER
    return hand_out.latest_ns + (hand_out.get.expire_ms + facts.lease_late_ms) * MS


def lease_holds_ns(hand_out: HandOut, facts: Facts) -> int:
    """Return the time until which the lease certainly lasts, unless it is ended."""
    sure_ns = sure_lease_ns(hand_out.get, facts)
    return NEVER if sure_ns == NEVER else hand_out.earliest_ns + sure_ns


def release(hand_out: HandOut, following: HandOut | None, facts: Facts) -> Release:
    """Return when the job of `hand_out` went back; `following` is its next hand-out, as far as is known."""
    later = hand_out.later
    if later is not None:
        return Release(later.start_ns, latest_ns=later.end_ns or NEVER)
    ends = [end for end in hand_out.ends if isinstance(end.command, Later)]
    earliest_ns = min((end.start_ns for end in ends), default=NEVER)
    latest_ns = NEVER
    if not (hand_out.get.expire_ms and hand_out.get.then_done):
        earliest_ns = min(earliest_ns, lease_holds_ns(hand_out, facts))
        # A DONE that may have been executed: only if the job is seen again it is sure that it was not.
        if following is not None or not any(isinstance(end.command, Done) for end in hand_out.ends):
            latest_ns = lease_over_ns(hand_out, facts)
    return Release(max(earliest_ns, hand_out.earliest_ns), latest_ns)


def finish_after(hand_out: HandOut, facts: Facts) -> int:
    """Return the earliest time at which the job can have ended, if this was its last hand-out and no DONE was
    acknowledged.
    """
    earliest_ns = NEVER
    for end in hand_out.ends:
        if isinstance(end.command, Done) and not is_ok(end):
            earliest_ns = min(earliest_ns, end.start_ns)
    if hand_out.get.then_done and hand_out.get.expire_ms and hand_out.later is None:
        earliest_ns = min(earliest_ns, lease_holds_ns(hand_out, facts))
    return max(earliest_ns, hand_out.earliest_ns)
