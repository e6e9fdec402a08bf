"""Checks that a queue with a rate exceeds it in no window of time (spec/pulse 2.1, 6.1)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.evidence.jobs import Jobs
from tests.chaos.checker.evidence.moments import SECOND, latest
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.grants import too_many
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.turns import Grant


def rates(jobs: Jobs, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Count a hand-out as written between the start and the end of its GET; only what surely was in a window counts."""
    for queue, (rate, per_s) in facts.rates.items():
        grants = [
            Grant(one.id, 0, None, None, one.record.start_ns / SECOND, latest(one.record) / SECOND)
            for one in jobs.portions if one.handed.queue == queue
        ]
        records = {one.id: one.record for one in jobs.portions}
        for group in too_many(grants, rate, per_s):
            first, last = records[group[0].ticket], records[group[-1].ticket]
            text = (
                f"{len(group)} jobs of {queue} within {per_s:g} s, and its rate is {rate}: from "
                f"{teller.record(first)} to {teller.record(last)}"
            )
            yield Violation("rate", text, (first, last))
