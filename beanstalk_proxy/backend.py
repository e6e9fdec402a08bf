"""Executes the calls of one connection through the client library."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal, cast

from msgspec.structs import replace
from sockpq import (
    AuthError,
    Busy,
    ForbiddenError,
    ForeignCluster,
    JobNotFound,
    JobRunning,
    Number,
    PeekedJob,
    QueueFull,
    QueueNotFound,
    QueuePaused,
    SockpqError,
    local_id,
)
from sockpq.aio import Client, Job

from sockpqd.beanstalk import U32_MAX, Call, CallFailure, Done, Result, calls
from sockpqd.beanstalk_proxy.lease_cache import LeaseCache
from sockpqd.beanstalk_proxy.shared_sums import SharedSums

log = logging.getLogger("sockpq-beanstalkd")

LASTING_S = float(U32_MAX)      # the time of a job without any
SILENT_S = 30.0                 # without a leader for this long, the connection of a waiting client is closed
KICKED_MAX = 2**31 - 1
FIRST_NUMBER = 1 << 40          # smaller ones are of hand-outs: of jobs that were put natively, without a number


class SharedClient:
    """The client library's access to the cluster, shared by all connections."""

    def __init__(self, client: Client, leave: Callable[[ForeignCluster], None], looks_max: int) -> None:
        """`leave`: called when the servers belong to another cluster, where these jobs and numbers mean nothing.

        `looks_max`: the number of jobs fetched at the same time. Any number of clients can ask for one job, and it
        counts as memory of one of them only once it has arrived.
        """
        self.client = client
        self.looks = asyncio.Semaphore(looks_max)
        self.leave = leave
        self.leases = LeaseCache()
        self.sums = SharedSums(client)


class ClientBackend:
    """The backend of one connection; it has no state in the cluster except the jobs handed out to it."""

    def __init__(self, cluster: SharedClient, draining: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._draining = draining
        self._task: asyncio.Task[Result] | None = None

    def execute(self, call: Call, done: Done) -> None:
        if type(call) is calls.PutJob and self._draining():
            done(CallFailure.DRAINING)
            return
        def end(task: asyncio.Task[Result]) -> None:
            self._task = None           # it holds the result, which may be a large job
            done(_outcome(self._cluster, call, task))

        self._task = asyncio.get_running_loop().create_task(_DO[type(call)](self._cluster, call))
        self._task.add_done_callback(end)

    def cancel(self) -> None:
        """See Backend: the client library gives back jobs handed out in the meantime."""
        if self._task is not None:
            self._task.cancel()

    def leave(self) -> None:
        pass


def _outcome(cluster: SharedClient, call: Call, task: asyncio.Task[Result]) -> Result | CallFailure:
    if task.cancelled():
        return None
    error = task.exception()
    match error:
        case None:
            return task.result()
        case JobNotFound() | JobRunning() | QueueNotFound():
            return CallFailure.NOT_FOUND
        case QueueFull() | QueuePaused():
            return CallFailure.DRAINING
        case Busy():
            return CallFailure.OUT_OF_MEMORY
        case ForbiddenError() | AuthError():
            return CallFailure.FORBIDDEN
        case ForeignCluster():
            cluster.leave(error)
        case SockpqError():
            log.warning("%s: %s: %s", type(call).__name__, type(error).__name__, error)
        case _:
            log.error("%s failed: report it, with this line", type(call).__name__, exc_info=error)
    return CallFailure.GONE


def priority_of(native: int) -> int:
    """Return beanstalkd's priority of a job, where smaller ones come first."""
    return min(max(-native, 0), U32_MAX)


async def _put(cluster: SharedClient, call: calls.PutJob) -> Result:
    stored = await cluster.client.put(
        call.tube, call.body, -call.priority, delay=call.delay_s or None, number=True, lease=call.ttr_s,
    )
    assert stored.number is not None
    cluster.leases.note(stored.number, call.ttr_s)
    return calls.NumberResult(stored.number)


async def _reserve(cluster: SharedClient, call: calls.Reserve) -> Result:
    if call.wait_s == 0:
        job = await cluster.client.get(call.tubes, meta=True, policy="place", retry_unknown=True)
    else:
        job = await cluster.client.get(
            call.tubes, block=True, wait=call.wait_s, meta=True, policy="place", retry_unknown=True, timeout=SILENT_S)
    return None if job is None else await _reserved(cluster, job)


async def _reserve_job(cluster: SharedClient, call: calls.ReserveJob) -> Result:
    return await _reserved(cluster, await cluster.client.get_number(call.number, meta=True, retry_unknown=True))


async def _reserved(cluster: SharedClient, job: Job) -> calls.Reserved:
    """Return the job in beanstalkd's form. One put by the native protocol is known only by the id of its hand-out."""
    assert job.meta is not None
    if job.meta.number is None:
        return calls.Reserved(job.id, job.id, job.queue, LASTING_S, job.data)
    number = job.meta.number
    lease_s = cluster.leases.get(number)
    if lease_s is None:
        try:
            lease_s = (await cluster.client.job_stat(number)).lease or LASTING_S
            cluster.leases.note(number, lease_s)
        except (SockpqError, asyncio.CancelledError):       # the job is reserved nevertheless, and must be reported
            lease_s = LASTING_S
    return calls.Reserved(number, job.id, job.queue, lease_s, job.data)


async def _delete(cluster: SharedClient, call: calls.DeleteJob) -> Result:
    if call.handle is not None:
        try:
            await cluster.client.done(call.handle, last=True, retry_unknown=True)
            return None
        except JobNotFound:             # its time has ended, and it may be ready again
            pass
    job = await cluster.client.job_stat(call.number)
    await cluster.client.delete(Number(call.number), untaken=True)
    return calls.Names((job.queue,))


async def _release(cluster: SharedClient, call: calls.Release) -> Result:
    if call.delay_s:
        await cluster.client.later(call.handle, delay=call.delay_s, priority=-call.priority)
    else:
        await cluster.client.later(call.handle, priority=-call.priority, first=True)
    return None


async def _bury(cluster: SharedClient, call: calls.Bury) -> Result:
    await cluster.client.bury(call.handle, priority=-call.priority, here=True)
    return None


async def _touch(cluster: SharedClient, call: calls.TouchJob) -> Result:
    await cluster.client.touch(call.handle)
    return None


async def _peek(cluster: SharedClient, call: calls.Peek) -> Result:
    return _found(await _look(cluster, call.number))


async def _look(cluster: SharedClient, number: int) -> PeekedJob:
    """Return the job of this number; raises JobNotFound."""
    async with cluster.looks:
        job = await cluster.client.peek(number if local_id(number) < FIRST_NUMBER else Number(number))
    if job is None:
        raise JobNotFound("there is no such job")
    return job


def _found(job: PeekedJob) -> calls.Found:
    return calls.Found(job.number or job.id or 0, job.data)


async def _peek_first(cluster: SharedClient, call: calls.PeekFirst) -> Result:
    state = cast(Literal["ready", "delayed", "buried"], call.state)
    async with cluster.looks:
        found = await cluster.client.peek_queue(call.tube, state)
    if not found:
        raise JobNotFound("there is no such job")
    return _found(found[0])


async def _kick(cluster: SharedClient, call: calls.KickTube) -> Result:
    count = min(call.count, KICKED_MAX)
    return calls.NumberResult(await cluster.client.kick(call.tube, count, here=True) if count else 0)


async def _kick_job(cluster: SharedClient, call: calls.KickJob) -> Result:
    await cluster.client.kick_job(call.number)
    return None


async def _pause(cluster: SharedClient, call: calls.Pause) -> Result:
    if not call.known:
        raise QueueNotFound("404 Queue Not Found")
    await cluster.client.queue_pause(call.tube, "out", seconds=call.seconds)
    return None


async def _job_stats(cluster: SharedClient, call: calls.JobStats) -> Result:
    if local_id(call.number) < FIRST_NUMBER:
        running = await _look(cluster, call.number)
        return calls.JobFigures(
            call.number, running.queue, "reserved", priority_of(running.priority), 0, 0, 0, 0, running.attempt, 0, 0, 0,
            0,
        )
    job = await cluster.client.job_stat(call.number)
    return calls.JobFigures(
        call.number, job.queue, _STATES.get(job.state, job.state), priority_of(job.priority), job.age, int(job.delay),
        int(job.lease or 0), job.left, job.reserves, job.timeouts, job.releases, job.buries, job.kicks,
    )


_STATES = {"running": "reserved", "dead": "buried"}     # natively, and there


async def _tube_stats(cluster: SharedClient, call: calls.TubeStats) -> Result:
    try:
        found = await cluster.client.queue_stat(call.tube)
    except QueueNotFound:
        return calls.TubeFigures()
    pause_left_s = found["pause_left_s"]                # rounded up, and there down
    return calls.TubeFigures(
        found["urgent"], found["ready"], found["running"], found["delayed"], found["buried"], found["total_put"],
        found["total_done"] + found["total_deleted"], found["total_pauses"], found["pause_s"] if pause_left_s else 0,
        max(pause_left_s - 1, 0), exists=True,
    )


async def _tubes(cluster: SharedClient, call: calls.ListTubes) -> Result:
    found = await cluster.client.queues()
    used = [one.name for one in found if one.ready or one.delayed or one.running or one.buried]   # dead: in another one
    return calls.Names(tuple(dict.fromkeys(used)))


async def _totals(cluster: SharedClient, call: calls.Totals) -> Result:
    sums, tubes = await cluster.sums.get()
    return replace(sums, tubes=len(tubes) + sum(name not in tubes for name in call.beside))


async def _give_back(cluster: SharedClient, call: calls.GiveBack) -> Result:
    await cluster.client.later_many(call.handles, first=True)
    for handle in call.undelivered:
        with suppress(JobNotFound):
            await cluster.client.later(handle, first=True, yielded=True)
    return None


_DO: dict[type, Callable[[SharedClient, Any], Coroutine[Any, Any, Result]]] = {
    calls.PutJob: _put, calls.Reserve: _reserve, calls.ReserveJob: _reserve_job, calls.DeleteJob: _delete,
    calls.Release: _release, calls.Bury: _bury, calls.TouchJob: _touch, calls.Peek: _peek, calls.PeekFirst: _peek_first,
    calls.KickTube: _kick, calls.KickJob: _kick_job, calls.Pause: _pause, calls.JobStats: _job_stats,
    calls.TubeStats: _tube_stats, calls.ListTubes: _tubes, calls.Totals: _totals, calls.GiveBack: _give_back,
}
