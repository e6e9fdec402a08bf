"""Checks that a job runs under one id at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.checker.evidence.jobs import HandOut, Job, Jobs
from tests.chaos.checker.evidence.moments import NEVER
from tests.chaos.checker.evidence.releases import release
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Teller, Violation


def rule_of(job: Job, rule: str) -> str:
    """Return the rule that is broken: if one PUT in a session became two jobs, it is the session's promise."""
    return "dedupe" if job.in_session else rule


def leases(jobs: Jobs, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check that no job is handed out while another client certainly holds it.

    This also finds a LATER of a void id: it was acknowledged, so the job ran under that id until then.
    """
    for job in jobs.sound:
        for hand_out, following in pairwise(job.hand_outs):
            if both_hold(hand_out, following, facts):
                yield _tell(job, hand_out, following, facts, teller)
    yield from _running(jobs, facts, teller)


def both_hold(first: HandOut, second: HandOut, facts: Facts) -> bool:
    """Return whether the job was handed out again before it can have been given back, or done."""
    done = first.done
    freed_ns = release(first, None, facts).earliest_ns
    return second.latest_ns < (freed_ns if done is None else min(freed_ns, done.start_ns))


def _tell(job: Job, first: HandOut, second: HandOut, facts: Facts, teller: Teller) -> Violation:
    freed_ns = release(first, None, facts).earliest_ns
    until = "nobody gave it back" if freed_ns == NEVER else f"it was not free before {teller.at(freed_ns)}"
    return Violation(
        rule_of(job, "lease"),
        f"{job.body} was handed out as {second.id} to {second.record.client} by {teller.at(second.latest_ns)}, "
        f"although {first.record.client} held it as {first.id} and {until}: {teller.record(first.record)}; "
        f"{teller.record(second.record)}",
        (first.record, second.record),
    )


def _running(jobs: Jobs, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check RUNLIST after the drain: each body once, and under its last id."""
    seen: dict[str, int] = {}
    for one in facts.running:
        job = jobs.by_body.get(one.body)
        if job is None or not job.sound:
            continue
        if one.body in seen:
            yield Violation(rule_of(job, "lease"), f"{one.body} runs at the end as {seen[one.body]} and {one.id}", ())
        elif job.last is not None and one.id < job.last.id:
            yield Violation(
                rule_of(job, "lease"),
                f"{one.body} runs at the end as {one.id}, but it was {teller.record(job.last.record)}",
                (job.last.record,),
            )
        seen[one.body] = one.id
