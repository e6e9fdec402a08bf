"""Checks that a leader that was cut off falls silent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.chaos.checker.evidence.moments import MS, is_ok
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Cut, Record


def stale(records: Iterable[Record], cuts: Iterable[Cut], facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check that a node without a majority acknowledges nothing new, neither after a while nor after others do."""
    answered = [record for record in records if is_ok(record) and record.server is not None]
    for cut in cuts:
        inside = [one for one in answered if one.start_ns >= cut.start_ns and _end(one) <= cut.end_ns]
        others = [one for one in inside if one.server != cut.node]
        first = min(others, key=_end, default=None)
        for one in inside:
            if one.server != cut.node:
                continue
            silence = f"{cut.node} was cut off from {teller.at(cut.start_ns)} to {teller.at(cut.end_ns)}"
            if first is not None and one.start_ns > _end(first):
                yield Violation(
                    "stale",
                    f"{silence} and {first.server} had taken over, but: {teller.record(one)}, "
                    f"after {teller.record(first)}",
                    (first, one),
                )
            elif one.start_ns > cut.start_ns + facts.cut_grace_ms * MS:
                yield Violation("stale", f"{silence}, but: {teller.record(one)}", (one,))


def _end(record: Record) -> int:
    assert record.end_ns is not None
    return record.end_ns
