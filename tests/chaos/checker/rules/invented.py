"""Checks that what is handed out was put with these bytes and not refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.chaos.checker.evidence.hidden import Hidden
from tests.chaos.checker.evidence.jobs import HandOut, Job, Jobs
from tests.chaos.checker.evidence.moments import is_ok
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Outcome, Record

MADE_ITEM = re.compile(r"i\d+")     # the name of an item made for NEW (spec/state-machine 5.3)


def invented(jobs: Jobs, hidden: Hidden, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check that each job handed out, or running at the end, was put with these properties."""
    for job in jobs.by_body.values():
        put = job.put
        if put is None or put.outcome is not Outcome.NOT_EXECUTED:
            for hand_out in job.hand_outs:
                wrong = _wrong(job, hand_out, teller)
                if wrong:
                    records = (hand_out.record,) if put is None else (put, hand_out.record)
                    yield Violation("invented", f"{wrong}: {teller.record(hand_out.record)}", records)
                    break
    yield from _running(jobs, hidden, facts)


def _wrong(job: Job, hand_out: HandOut, teller: Teller) -> str | None:
    handed, get, put = hand_out.handed, hand_out.get, job.put
    if put is None:
        return f"nobody put {handed.body}"
    if handed.queue != job.queue:
        return f"{job.body} was put into {job.queue} and came from {handed.queue}"
    if handed.priority != job.priority:
        return f"{job.body} was put with priority {job.priority} and came with {handed.priority}"
    if handed.item != job.item or _made_up(job, put):
        return f"{job.body} came as one of item {handed.item}, put was {teller.record(put)}"
    if put.start_ns > hand_out.latest_ns:
        return f"{job.body} was handed out before {teller.record(put)}"
    if get.queues and handed.queue not in get.queues:
        return f"{job.body} came from {handed.queue}, which was not asked for"
    if get.item is not None and handed.item != get.item:
        return f"{job.body} is not of item {get.item}"
    return None


def _made_up(job: Job, put: Record) -> bool:
    """Return whether the item's name is invented; an unanswered PUT with NEW may have made it."""
    given = getattr(put.command, "item", None)
    return given is None and job.item is not None and (is_ok(put) or MADE_ITEM.fullmatch(job.item) is None)


def _running(jobs: Jobs, hidden: Hidden, facts: Facts) -> Iterator[Violation]:
    known = {hand_out.id for hand_out in jobs.numbered}
    for one in facts.running:
        if one.body not in jobs.by_body or jobs.by_body[one.body].put is None:
            yield Violation("invented", f"{one.body}, which nobody put, runs at the end as {one.id}", ())
    unknown = [one for one in facts.running if one.id not in known]
    if len(unknown) > hidden.all():
        listed = ", ".join(f"{one.body} as {one.id}" for one in unknown[:10])
        yield Violation(
            "invented",
            f"at the end {len(unknown)} jobs run under ids that no client was told, and only {hidden.all()} answers to "
            f"a GET were lost: {listed}",
            (),
        )


def refused(jobs: Jobs, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Find jobs whose PUT was answered `500`, which means that it was not executed."""
    running = {one.body: one.id for one in facts.running}
    for job in jobs.by_body.values():
        put = job.put
        if put is None or put.outcome is not Outcome.NOT_EXECUTED:
            continue
        if job.hand_outs:
            seen = job.hand_outs[0].record
            yield Violation(
                "refused",
                f"{job.body} was handed out although its PUT was not executed: {teller.record(put)}; "
                f"{teller.record(seen)}",
                (put, seen),
            )
        elif job.body in running:
            yield Violation(
                "refused",
                f"{job.body} runs at the end as {running[job.body]} although its PUT was not executed: "
                f"{teller.record(put)}",
                (put,),
            )
