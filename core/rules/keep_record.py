"""The record that an ended job leaves in a queue with RETAIN, and its way back (spec/state-machine 10.4)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.ops.jobs import AnySelector, Number
from sockpqd.core.ops.queues import EndState
from sockpqd.core.ops.settings import QueueSettings
from sockpqd.core.records.record import JobRecord
from sockpqd.core.records.records import FoundRecord
from sockpqd.core.state import State
from sockpqd.core.store.body import bytes_of
from sockpqd.core.store.job import (
    AnyJob,
    Extras,
    Job,
    JobCounts,
    RunningJob,
    counted,
    counts_after_attempt,
    keeps_place,
    number_of,
    with_number,
)


def keep_record(
    state: State, job: AnyJob, settings: QueueSettings | None, how: EndState, result: bytes = b"",
    reason: str | None = None,
) -> None:
    """Keep the record of a job that has just ended in this way, if its queue keeps records and it has a number.

    `reason`: of the end, instead of the job's own. Raises PageLost.
    """
    if settings is None or not settings.retain_ms or (number := number_of(job)) is None:
        return
    extras = job.extras
    assert extras is not None
    counts = extras.counts
    if isinstance(job, RunningJob) and counts is not None:
        counts = counts_after_attempt(counts, job.started_ms)
    data = bytes_of(job.data)
    text = None if extras.error is None else state.errors.find(extras.error)
    state.spent += len(data)
    record = JobRecord(     # keywords would take twice as long, also below
        number, how, state.clock_ms, job.priority if isinstance(job, RunningJob) else -job.rank, job.item, data,
        job.attempts, _kept(extras, counts, reason), result, b"" if text is None else bytes_of(text),
    )
    state.records.add(job.queue, settings, record, state.settings.retained_bytes, state.undo)


def _kept(extras: Extras, counts: JobCounts | None, reason: str | None) -> Extras:
    """The part of the extras that a record keeps."""
    return Extras(
        extras.key, extras.tries, extras.ttl_ms, None, None, extras.origin, (), None, reason or extras.reason,
        extras.group, None, extras.lease_ms, counts, extras.head,
    )


def take_record(state: State, selector: AnySelector) -> FoundRecord | None:
    """Remove the record of this number, if no job has it; returns it. Raises PageLost."""
    if not isinstance(selector, Number) or state.numbered(selector.number) is not None:
        return None
    found = state.records.find(selector.number, state.clock_ms)
    if found is not None:
        state.spent += limits.STEP * limits.RECORD_WORK + found.record.kept_bytes
        state.records.remove(found, state.undo)
    return found


def put_again(state: State, found: FoundRecord) -> None:
    """Make the job of a record READY in its queue, with no attempt counted; its TTL counts from now."""
    record, old = found.record, found.record.extras
    queue = state.queues.get_or_create(found.queue)
    item = None if record.item is None else state.items.open(record.item).name
    extras = Extras(
        key=None if queue.keys is not None and old.key in queue.keys else old.key, tries=old.tries, ttl_ms=old.ttl_ms,
        group=old.group, lease_ms=old.lease_ms, counts=old.counts, head=old.head,
    )
    job = Job(
        -record.priority, 0, record.number if keeps_place(old) else state.new_seq(), queue.name,
        state.held(record.data), item, 0, None, with_number(counted(extras, kicks=1), record.number),
    )
    state.make_ready(queue, job)
    state.events.tell("PUT", queue.name, record.priority)
