"""Checks that DONE is final, happens once, and finds the job while the lease holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.checker.evidence.jobs import HandOut, Job, Jobs
from tests.chaos.checker.evidence.moments import NEVER, acted, latest, may_have_acted
from tests.chaos.checker.evidence.releases import lease_holds_ns
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.rules.leases import both_hold, rule_of
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Done, Later, Record


def done(jobs: Jobs, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check that no job is handed out or ended after its DONE, and that no DONE or LATER misses a job that certainly
    runs.
    """
    running = {one.body: one.id for one in facts.running}
    for job in jobs.sound:
        if job.done is not None:
            yield from _final(job, job.done, running.get(job.body), facts, teller)
    by_id = {hand_out.id: hand_out for hand_out in jobs.hand_outs}
    for record in jobs.missing:
        assert isinstance(record.command, Done | Later)
        hand_out = by_id.get(record.command.id)
        if hand_out is not None:
            yield from _missed(record, hand_out, jobs, facts, teller)


def _final(job: Job, first: Record, running: int | None, facts: Facts, teller: Teller) -> Iterator[Violation]:
    assert isinstance(first.command, Done)
    rule = rule_of(job, "done")
    if running is not None:
        yield Violation(rule, f"{job.body} runs at the end as {running}, in spite of {teller.record(first)}", (first,))
    pairs = ((one, other) for one, other in pairwise(job.hand_outs) if one.id == first.command.id)
    ended, again = next(pairs, (None, None))
    others = [end for hand_out in job.hand_outs for end in hand_out.ends if acted(end) and end is not first]
    for other in others:
        if isinstance(other.command, Done) or other.command == Later(first.command.id):
            yield Violation(
                rule,
                f"{job.body} was ended twice: {teller.record(first)}, {teller.record(other)}",
                (first, other),
            )
            return
    if ended is not None and again is not None and not both_hold(ended, again, facts):
        yield Violation(
            rule,
            f"{job.body} was handed out as {again.id} to {again.record.client} although it was done as "
            f"{first.command.id}: {teller.record(first)}; {teller.record(again.record)}",
            (first, again.record),
        )


def _missed(record: Record, hand_out: HandOut, jobs: Jobs, facts: Facts, teller: Teller) -> Iterator[Violation]:
    until_ns = lease_holds_ns(hand_out, facts)
    by_ns = latest(record)
    if by_ns >= until_ns or by_ns == NEVER or record.start_ns < hand_out.latest_ns:
        return
    if any(may_have_acted(end) and end.start_ns <= by_ns for end in hand_out.ends):
        return
    job = jobs.by_body[hand_out.handed.body]
    lease = "without a lease" if until_ns == NEVER else f"until {teller.at(until_ns)} at least"
    yield Violation(
        rule_of(job, "done"),
        f"{teller.record(record)} found no job, but {job.body} ran as {hand_out.id} {lease}: "
        f"{teller.record(hand_out.record)}",
        (hand_out.record, record),
    )
