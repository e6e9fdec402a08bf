"""Derives from when to when a job was unfinished: put, and not yet done or dropped."""

from __future__ import annotations

from msgspec import Struct

from tests.chaos.checker.evidence.hidden import Hidden
from tests.chaos.checker.evidence.jobs import Job
from tests.chaos.checker.evidence.moments import NEVER, is_ok, latest
from tests.chaos.checker.evidence.releases import finish_after, lease_over_ns
from tests.chaos.checker.facts import Facts


class Life(Struct, eq=False):
    """Bounds of a job's beginning and end; NEVER as the latest time: perhaps not at all."""

    job: Job
    born_earliest_ns: int
    born_latest_ns: int
    over_earliest_ns: int
    over_latest_ns: int


def life(job: Job, hidden: Hidden, facts: Facts, running: frozenset[str]) -> Life | None:
    """Return the life of a sound job; None if it certainly had none. `running`: the bodies that run at the end."""
    put = job.put
    assert put is not None
    last = job.last
    born_latest_ns = latest(put)
    if last is not None:
        born_latest_ns = min(born_latest_ns, job.hand_outs[0].latest_ns)
    done = job.done
    if done is not None:
        return Life(job, put.start_ns, born_latest_ns, done.start_ns, latest(done))
    if job.body in running:
        return Life(job, put.start_ns, born_latest_ns, NEVER, NEVER)
    over_earliest_ns = min(hidden.first_drop_ns(job.queue), NEVER if last is None else finish_after(last, facts))
    over_latest_ns = NEVER
    # The drain takes all remaining jobs. A job that it has not seen ended before: not executed, done or dropped.
    if facts.drained and not hidden.dropped(job.queue):
        if last is None and not is_ok(put):
            return None
        if last is not None and last.later is None:
            over_latest_ns = lease_over_ns(last, facts)
    return Life(job, put.start_ns, born_latest_ns, over_earliest_ns, over_latest_ns)
