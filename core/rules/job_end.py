"""The end of a job: the record that it leaves in a queue with RETAIN, and its return (spec/state-machine 10.4)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.fair.group_by import group_in
from sockpqd.core.ops.jobs import AnySelector, Number
from sockpqd.core.ops.queues import EndState
from sockpqd.core.ops.replies import JobEnded
from sockpqd.core.ops.settings import QueueSettings
from sockpqd.core.records.record import JobRecord
from sockpqd.core.records.records import FoundRecord
from sockpqd.core.state import State
from sockpqd.core.store.body import bytes_of
from sockpqd.core.store.job import (
    AnyJob,
    Extras,
    Job,
    RunningJob,
    counted,
    keeps_place,
    with_number,
)


def note_end(state: State, job: AnyJob, settings: QueueSettings | None, how: EndState, result: bytes = b"") -> None:
    """Keep the record of a job that has just ended, if its queue keeps records, and notify clients that await the end.

    `settings`: the settings of its queue. Raises PageLost.
    """
    extras = job.extras
    if settings is not None and settings.retain_ms and extras is not None and extras.counts is not None:
        data = bytes_of(job.data)
        state.spent += len(data)
        if isinstance(job, RunningJob):
            priority, started_ms = job.priority, job.started_ms
        else:
            priority, started_ms = -job.rank, None
        record = JobRecord(     # keywords would take twice as long
            extras.counts.number or job.seq, how, state.clock_ms, priority, job.item, data, job.attempts, extras,
            result, b"" if extras.error is None else state.error_of(job), started_ms,
        )
        state.records.add(job.queue, settings, record, state.settings.retained_bytes, state.undo)
    if job.seq in state.watches:
        state.tell_end(job.seq, JobEnded(job.queue, how, result))


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
        group=group_in(queue.settings, old.group, item, record.data, old.head),
        lease_ms=old.lease_ms, counts=old.counts, head=old.head,
    )
    job = Job(
        -record.priority, 0, record.number if keeps_place(old) else state.new_seq(), queue.name,
        state.held(record.data), item, 0, None, with_number(counted(extras, kicks=1), record.number),
    )
    state.make_ready(queue, job)
    state.events.tell("PUT", queue.name, record.priority)
