"""Executes the calls that only read, on the state of the serving leader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sockpqd.beanstalk import U32_MAX, CallFailure, Result, calls
from sockpqd.cluster.api import Cluster
from sockpqd.core import EndState, JobCounts, JobState, JobView, Machine, Number, Selector
from sockpqd.gateway.beanstalkd.call_operations import MS
from sockpqd.gateway.beanstalkd.remote import RETRY, Outcome
from sockpqd.gateway.beanstalkd.services import NodeServices, Principal
from sockpqd.gateway.rights import Rights

FIRST_NUMBER = 1 << 40          # smaller ones are of hand-outs: of jobs that were put natively, without a number


def look_up(services: NodeServices, principal: Principal, call: calls.Lookup | None) -> Outcome:
    """Execute a call; None: return the index of the newest state. Retry: another node may lead by now."""
    if not services.cluster.holds_lease:
        return RETRY
    if call is None:
        return calls.NumberResult(services.cluster.machine.index)
    rights = None
    if services.access.required:
        rights = principal.guard(services).rights
        if rights is None:
            return CallFailure.FORBIDDEN
    return _LOOKUPS[type(call)](services.cluster, rights, call)


def find_job(machine: Machine, number: int) -> JobView | None:
    """Find the job that clients know by this number."""
    return machine.peek(Selector(number) if number < FIRST_NUMBER else Number(number))


def may(rights: Rights | None, kind: str, queue: str) -> bool:
    """Return whether the rights allow this kind of access to the queue; rights of None allow everything."""
    return rights is None or queue.startswith(getattr(rights, kind))


def priority_of(native: int) -> int:
    """Convert a job's priority to that of beanstalkd, where smaller ones come first."""
    return min(max(-native, 0), U32_MAX)


def _peek(cluster: Cluster, rights: Rights | None, call: calls.Peek) -> Result | CallFailure:
    job = _visible(cluster, rights, call.number)
    return job if isinstance(job, CallFailure) else _found(job)


def _peek_first(cluster: Cluster, rights: Rights | None, call: calls.PeekFirst) -> Result | CallFailure:
    if not may(rights, "queue", call.tube):
        return CallFailure.FORBIDDEN
    found = cluster.machine.peek_queue(call.tube, _STATES[call.state], 1)
    return _found(found[0]) if found else CallFailure.NOT_FOUND


def _job_stats(cluster: Cluster, rights: Rights | None, call: calls.JobStats) -> Result | CallFailure:
    job = _visible(cluster, rights, call.number)
    if isinstance(job, CallFailure):
        return job
    counts = job.counts or JobCounts(reserves=job.attempts)
    now_ms = cluster.time_ms
    until_ms = job.deadline_ms if job.state is JobState.RUNNING else job.due_ms
    return calls.JobFigures(
        call.number, job.queue, _NAMES[job.state], priority_of(job.priority),
        max(now_ms - job.created_ms, 0) // MS if job.number else 0, counts.delay_ms // MS,
        (job.own_lease_ms or 0) // MS,
        0 if until_ms is None or job.state not in _TIMED else max(until_ms - now_ms, 0) // MS,
        counts.reserves, counts.timeouts, counts.releases, counts.buries, counts.kicks,
    )


def _tube_stats(cluster: Cluster, rights: Rights | None, call: calls.TubeStats) -> Result | CallFailure:
    if not may(rights, "seen", call.tube):
        return CallFailure.FORBIDDEN
    found = cluster.machine.stat(call.tube, cluster.time_ms)
    if found is None:
        return calls.TubeFigures()
    figures, settings = dict(found), cluster.machine.queue_settings(call.tube)
    pause_left_ms = 0 if settings is None else max(settings.pause_ends_ms - cluster.time_ms, 0)
    return calls.TubeFigures(
        figures["URGENT"], figures["READY"], figures["RUNNING"], figures["DELAYED"], figures["BURIED"],
        figures["TOTAL_PUT"], figures["TOTAL_DONE"] + figures["TOTAL_DELETED"], figures["TOTAL_PAUSES"],
        figures["PAUSE_S"] if pause_left_ms else 0, pause_left_ms // MS, exists=True,
    )


def _visible(cluster: Cluster, rights: Rights | None, number: int) -> JobView | CallFailure:
    job = find_job(cluster.machine, number)
    if job is None or not may(rights, "queue", job.queue):     # so that nobody learns of the jobs of others
        return CallFailure.NOT_FOUND
    return job


def _found(job: JobView) -> calls.Found:
    return calls.Found(job.number or job.id or 0, job.body())


_NAMES: dict[JobState | EndState, str] = {
    JobState.READY: "ready", JobState.DELAYED: "delayed", JobState.RUNNING: "reserved", JobState.BURIED: "buried",
    JobState.DEAD: "buried",
}
_TIMED = (JobState.RUNNING, JobState.DELAYED)
_STATES = {"ready": JobState.READY, "delayed": JobState.DELAYED, "buried": JobState.BURIED}
_LOOKUPS: dict[type, Callable[[Cluster, Rights | None, Any], Result | CallFailure]] = {
    calls.Peek: _peek, calls.PeekFirst: _peek_first, calls.JobStats: _job_stats, calls.TubeStats: _tube_stats,
}
