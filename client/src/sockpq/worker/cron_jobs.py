"""Periodic tasks without a scheduler: each run is a job with a key and a time, put by the worker of the run before.

The key is `<task>.<unix time>`: another worker that puts the same run finds it, even for a day after it was done (the
queue's KEEP). The schedule is in the body, so that workers of an older and of a newer program do not conflict; changed
schedules are corrected when a worker starts. The cluster's time is used, which is sent with each run: a worker whose
clock is ahead would mistake future runs for missed ones.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

from sockpq._async.client import Client
from sockpq.errors import (
    ForbiddenError,
    JobNotFound,
    JobRunning,
    NotSupported,
    ProtocolError,
    QueueNotFound,
    SockpqError,
)
from sockpq.model import Handed, Key, PeekedJob
from sockpq.worker import cron_times
from sockpq.worker.app import App
from sockpq.worker.envelope import Envelope, opened
from sockpq.worker.errors import BadJob
from sockpq.worker.task import Schedule, Task, headers_of_call

LOG = logging.getLogger("sockpq.worker")

KEEP_S = 86_400
CLOCK = "sockpq:clock"      # a job that is put to see when it would be active, and removed at once
CLOCK_S = 86_400.0
LOOK_JOBS_MAX = 10_000


class Run(NamedTuple):
    """One run of a periodic task: its time, schedule and app."""

    task: str
    at: int
    schedule: Schedule
    app: str

    @property
    def key(self) -> str:
        """The key of its job."""
        return f"{self.task}.{self.at}"


class CronJobs:
    """The periodic tasks of an app."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._tasks = {task.name: task for task in app.tasks.values() if task.schedule}

    async def start(self, client: Client) -> None:
        """Put the first run of each task, as every worker does at its start; remove those no longer wanted."""
        queues = dict.fromkeys(task.queue for task in self._tasks.values())
        for queue in queues:
            await _keep_keys(client, queue)
            await self._remove_unwanted(client, queue)
        for task in self._tasks.values():
            if not await self._waiting_runs(client, task):
                assert task.schedule
                now = await self._time_of(client, task.queue)
                at = cron_times.next_time(task.schedule.line, task.schedule.tz, now)
                await self._put(client, task.queue, Run(task.name, at, task.schedule, self._app.name))

    async def before_work(self, job: Handed, client: Client) -> bool:
        """Put the run after this one; returns False if this one must be skipped (`catch_up="none"`)."""
        run = run_of(job.data, self._app)
        if run is None or run.task not in self._app.tasks:      # of no schedule, or of a task of other workers only
            return job.meta is None or not (job.meta.key or "").startswith(CLOCK)
        now = await self._time_at(client, job)
        following = cron_times.next_time(run.schedule.line, run.schedule.tz, run.at)
        missed = following <= now
        if missed and run.schedule.catch_up != "all":
            following = cron_times.next_time(run.schedule.line, run.schedule.tz, now)
        await self._put(client, job.queue, run._replace(at=following))
        again = job.meta is not None and job.meta.attempt > 1      # it failed: then it is late, and not missed
        return again or not (missed and run.schedule.catch_up == "none")

    async def _time_at(self, client: Client, job: Handed) -> int:
        """Return the cluster's time, from the lease of a job that was taken; a second is cut off, as it rounds up."""
        lease = self._app.lease_of(job.queue)
        ends = await client.touch(job.id, lease)
        return int((ends or 0) - lease) - 1

    async def _time_of(self, client: Client, queue: str) -> int:
        """Return the cluster's time, from a job that is put for later."""
        key = Key(queue, f"{CLOCK}:{uuid4().hex}")
        await client.put(queue, Envelope(CLOCK, [], {}).encoded(self._app.codec), delay=CLOCK_S, key=key.key)
        found = await client.peek(key)
        await client.delete(key)
        if found is None or found.at is None:
            raise ProtocolError("a job that was put for later is not there, or has no time")
        return int(found.at - CLOCK_S) - 1

    async def _put(self, client: Client, queue: str, run: Run) -> None:
        fields = {"at": run.at, "app": run.app, **run.schedule._asdict()}
        body = Envelope(run.task, [], {}, cron=fields).encoded(self._app.codec)
        put = partial(client.put, queue, body, at=run.at, key=run.key, on_duplicate="ignore")
        try:
            await put(headers=headers_of_call(run.task))
        except NotSupported:            # an older server: the job has no headers
            await put()

    async def _waiting_runs(self, client: Client, task: Task[Any, Any]) -> list[Run]:
        """Return the runs of this task that are queued already, by its current schedule."""
        runs = [run for _, run in await self._runs(client, task.queue)]
        return [run for run in runs if run.task == task.name and run.schedule == task.schedule]

    async def _remove_unwanted(self, client: Client, queue: str) -> None:
        """Remove the runs of this app's tasks that are gone, or have another schedule now."""
        for job, run in await self._runs(client, queue):
            task = self._tasks.get(run.task)
            if run.app != self._app.name or job.key is None or (task and task.schedule == run.schedule):
                continue
            try:
                await client.delete(Key(queue, job.key))
                LOG.info("removed the next run of %s: its schedule is another now, or none", run.task)
            except (JobNotFound, JobRunning):
                pass                # it is just being worked on

    async def _runs(self, client: Client, queue: str) -> list[tuple[PeekedJob, Run]]:
        found = []
        for state in ("delayed", "ready"):
            for job in await client.peek_queue(queue, state, LOOK_JOBS_MAX):
                run = run_of(job.data, self._app)
                if run:
                    found.append((job, run))
        return found


def run_of(data: bytes, app: App) -> Run | None:
    """Return the run that the body of a job describes, None if it is not a run."""
    try:
        envelope = opened(data, app.codec)
    except BadJob:
        return None
    return _run(envelope.task, envelope.cron)


def _run(task: Any, fields: Any) -> Run | None:
    if not isinstance(task, str) or not isinstance(fields, dict):
        return None
    at, app = fields.get("at"), fields.get("app")
    words = [fields.get(name) for name in Schedule._fields]
    if not isinstance(at, int) or not isinstance(app, str) or not all(isinstance(word, str) for word in words):
        return None
    line, tz, catch_up = (str(word) for word in words)
    try:
        cron_times.check(line, tz)
    except SockpqError:
        return None
    return Run(task, at, Schedule(line, tz, catch_up), app)


async def _keep_keys(client: Client, queue: str) -> None:
    """Make the queue remember the keys of its finished jobs for at least a day."""
    try:
        try:
            settings = await client.queue_config(queue)
        except QueueNotFound:
            settings = {}
        if int(float(settings.get("keep", "0"))) < KEEP_S:
            await client.queue_config(queue, keep=KEEP_S)
    except (ForbiddenError, NotSupported) as error:
        LOG.warning("cannot make queue %s keep the keys of finished jobs for a day: %s", queue, error)
