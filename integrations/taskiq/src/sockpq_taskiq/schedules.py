"""Schedules in the cluster: a task for a certain time is a job that waits, others are kept for the scheduler."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC

from sockpq import JobNotFound, Key, QueueNotFound
from sockpq.names import escape_key, escape_name
from taskiq import ScheduledTask, ScheduleSource, TaskiqMessage, TaskiqMiddleware
from taskiq.utils import maybe_awaitable

from sockpq_taskiq.broker import SockpqBroker, firing
from sockpq_taskiq.labels import put_options

QUEUE = "taskiq.schedules"
SCHEDULES_MAX = 10_000


class SockpqScheduleSource(ScheduleSource):
    """Keeps schedules in the cluster.

    `schedule_by_time` needs no scheduler: the task is put at once and becomes ready at its time. `schedule_by_cron` and
    `schedule_by_interval` need one, the program `taskiq scheduler`; with several schedulers, each time of a cron is
    accepted from one.
    """

    def __init__(self, broker: SockpqBroker) -> None:
        """`broker`: of the tasks; its cluster keeps the schedules."""
        self._broker = broker
        self._queue = escape_name(QUEUE, broker.prefix)

    async def get_schedules(self) -> list[ScheduledTask]:
        """Return the schedules by cron and interval, up to 10,000."""
        with suppress(QueueNotFound):
            kept = await self._broker.client.peek_queue(self._queue, "ready", SCHEDULES_MAX)
            return [ScheduledTask.model_validate_json(job.data) for job in kept]
        return []

    async def add_schedule(self, schedule: ScheduledTask) -> None:
        """Keep a schedule, replacing an earlier one with this id; one by time is put as a job."""
        if schedule.time is not None:
            await self._put(schedule)
            return
        await self._broker.client.put(
            self._queue, schedule.model_dump_json(), key=escape_key(schedule.schedule_id), on_duplicate="replace",
            headers={"task": schedule.task_name},
        )

    async def delete_schedule(self, schedule_id: str) -> None:
        """Remove a schedule, or the job of one by time if it has not begun; nothing happens if there is none."""
        client = self._broker.client
        names = dict.fromkeys((self._broker.queue_name, *self._broker.queues))
        queues = [self._broker.name_of(name) for name in names]
        for key in (Key(self._queue, escape_key(schedule_id)), *(Key(queue, _key(schedule_id)) for queue in queues)):
            with suppress(JobNotFound, QueueNotFound):
                await client.delete(key)
                return
        async for job in client.find(key=_key(schedule_id)):        # of a queue that its label names
            with suppress(JobNotFound, QueueNotFound):
                await client.delete(Key(job.queue, _key(schedule_id)))

    def pre_send(self, task: ScheduledTask) -> None:
        """Record which run of a cron is sent, so that the cluster takes it once."""
        minute = int(time.time()) // 60
        firing.set(escape_key(f"{task.schedule_id}@{minute}") if task.cron is not None else None)

    def post_send(self, task: ScheduledTask) -> None:
        """Forget the run of a cron that was sent."""
        firing.set(None)

    async def _put(self, schedule: ScheduledTask) -> None:
        """Put the task of a schedule by time, as `kiq` would send it then."""
        broker = self._broker
        message = TaskiqMessage(
            task_id=schedule.task_id or broker.id_generator(), task_name=schedule.task_name,
            labels={**schedule.labels, "schedule_id": schedule.schedule_id}, args=schedule.args, kwargs=schedule.kwargs,
        )
        for middleware in broker.middlewares:
            if middleware.__class__.pre_send != TaskiqMiddleware.pre_send:
                message = await maybe_awaitable(middleware.pre_send(message))
        assert schedule.time is not None
        at = schedule.time if schedule.time.tzinfo else schedule.time.replace(tzinfo=UTC)
        options = put_options(message.labels, retried=True)
        await broker.send(broker.formatter.dumps(message), options._replace(
            delay=None, at=at.timestamp(), key=_key(schedule.schedule_id), on_duplicate="replace",
        ))
        for middleware in reversed(broker.middlewares):
            if middleware.__class__.post_send != TaskiqMiddleware.post_send:
                await maybe_awaitable(middleware.post_send(message))


def _key(schedule_id: str) -> str:
    """Return the key of the job of a schedule by time."""
    return escape_key(f"schedule:{schedule_id}")
