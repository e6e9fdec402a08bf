"""Checks that ids are unique, and rise with each hand-out."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.evidence.jobs import HandOut, Jobs
from tests.chaos.checker.violation import Teller, Violation


def ids(jobs: Jobs, teller: Teller) -> Iterator[Violation]:
    """Check that no id occurs twice, and that ids never fall."""
    before: HandOut | None = None       # of those with smaller ids the one that began last
    last: HandOut | None = None
    for hand_out in jobs.numbered:
        if last is not None and last.id == hand_out.id:
            yield Violation(
                "ids",
                f"id {hand_out.id} was given twice: {teller.record(last.record)}; {teller.record(hand_out.record)}",
                (last.record, hand_out.record),
            )
        if before is not None and hand_out.latest_ns < before.earliest_ns:
            yield Violation(
                "ids",
                f"id {hand_out.id} was given before id {before.id}: {teller.record(hand_out.record)}; "
                f"{teller.record(before.record)}",
                (hand_out.record, before.record),
            )
        if before is None or hand_out.earliest_ns > before.earliest_ns:
            before = hand_out
        last = hand_out
