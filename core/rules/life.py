"""The life of a numbered job, as META LIFE shows it (spec/state-machine 8.5)."""

from __future__ import annotations

from sockpqd.core.limits import SEQ_BITS
from sockpqd.core.ops.replies import Life
from sockpqd.core.state import State
from sockpqd.core.store.job import AnyJob, Extras, RunningJob


def life_of_counts(created_ms: int, extras: Extras) -> Life | None:
    """Return the life of a job that is not running; None if it has no number."""
    counts = extras.counts
    return None if counts is None else Life(created_ms, counts.first_ms, counts.last_ms, counts.reserves, extras.origin)


def life_of(state: State, job: AnyJob) -> Life | None:
    """Return the life of a job so far; None if it has no number."""
    extras = job.extras
    if extras is None or extras.counts is None:
        return None
    first_ms, last_ms = extras.counts.first_ms, extras.counts.last_ms
    if isinstance(job, RunningJob):
        last_ms = job.started_ms
        first_ms = last_ms if first_ms is None else first_ms
    created_ms = max((extras.counts.number or job.seq) >> SEQ_BITS, state.seqs_since_ms)
    return Life(created_ms, first_ms, last_ms, extras.counts.reserves, extras.origin)
