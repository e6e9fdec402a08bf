"""Checks that no acknowledged job is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.checker.evidence.hidden import Hidden
from tests.chaos.checker.evidence.jobs import Job, Jobs
from tests.chaos.checker.evidence.moments import is_ok
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Done, Outcome, Put


def lost(jobs: Jobs, hidden: Hidden, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check that after the drain each acknowledged job is done, was dropped by its lease, or runs."""
    if not facts.drained:
        return
    running = {one.body for one in facts.running}
    missed: dict[str, list[Job]] = defaultdict(list)
    for job in jobs.sound:
        if job.put is not None and is_ok(job.put) and job.body not in running and not _accounted(job):
            missed[job.queue].append(job)
    for queue, group in missed.items():
        dropped = hidden.dropped(queue)
        if len(group) > dropped:
            yield from _tell(group, dropped, teller)
    if facts.waiting and not hidden.all() and not _late_puts(jobs):
        yield Violation("lost", f"{facts.waiting} jobs wait after the drain, which was told that there are none", ())


def _accounted(job: Job) -> bool:
    if job.done is not None:
        return True
    last = job.last
    if last is None:
        return False
    if last.get.then_done and last.get.expire_ms and last.later is None:
        return True
    return any(isinstance(end.command, Done) for end in last.ends)


def _late_puts(jobs: Jobs) -> bool:
    """Return whether there is a PUT that may still be executed."""
    puts = ((job.put, job.hand_outs) for job in jobs.sound if job.put is not None)
    return jobs.late_puts or any(put.outcome is Outcome.UNKNOWN and not hand_outs for put, hand_outs in puts)


def _tell(group: list[Job], dropped: int, teller: Teller) -> Iterator[Violation]:
    doubt = f" ({len(group)} such jobs, of which {dropped} may have been dropped unseen)" if dropped else ""
    for job in group:
        put, last = job.put, job.last
        assert put is not None
        assert isinstance(put.command, Put)
        if last is None:
            text = f"{job.body} was put and never seen again{doubt}: {teller.record(put)}"
            yield Violation("lost", text, (put,))
        else:
            text = f"{job.body} was not seen again after it ran as {last.id}{doubt}: {teller.record(last.record)}"
            yield Violation("lost", text, (put, last.record))
