"""Schedules: tasks for a certain time wait in the cluster, others are kept for the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sockpq_taskiq import SockpqBroker, SockpqScheduleSource
from taskiq import SmartRetryMiddleware, TaskiqScheduler

from tests.taskiq.conftest import filled, receiving, started, until


@asynccontextmanager
async def scheduling(address: str) -> AsyncIterator[tuple[SockpqBroker, SockpqScheduleSource, Any, list[int]]]:
    """A broker, a source, a task, and what the task was run with."""
    broker = SockpqBroker(address)
    ran: list[int] = []

    @broker.task(task_name="one")
    async def one(number: int) -> None:
        ran.append(number)

    async with started(broker):
        yield broker, SockpqScheduleSource(broker), one, ran


def test_a_task_for_a_time_waits_in_the_cluster_without_a_scheduler(address: str) -> None:
    async def main() -> None:
        async with scheduling(address) as (broker, source, one, ran):
            at = datetime.now(UTC) + timedelta(hours=3)
            created = await one.schedule_by_time(source, at, 1)
            (job,) = await broker.client.peek_queue("taskiq", "delayed", 9)
            assert job.at is not None
            assert at.timestamp() <= job.at <= at.timestamp() + 1
            assert await source.get_schedules() == []
            await created.unschedule()
            assert await filled(broker.client) == []
            await created.unschedule()
            await one.schedule_by_time(source, datetime.now(UTC) + timedelta(seconds=0.2), 2)
            await one.schedule_by_time(source, datetime(2020, 1, 1), 3)      # UTC, as in Taskiq
            async with receiving(broker):
                await until(lambda: sorted(ran) == [2, 3])

    asyncio.run(main())


def test_a_schedule_by_time_is_found_in_the_queue_of_its_label(address: str) -> None:
    async def main() -> None:
        async with scheduling(address) as (broker, source, one, _):
            at = datetime.now(UTC) + timedelta(hours=3)
            await one.kicker().with_schedule_id("s1").with_labels(queue_name="mail").schedule_by_time(source, at, 1)
            await one.kicker().with_schedule_id("s11").with_labels(queue_name="mail").schedule_by_time(source, at, 1)
            await source.delete_schedule("s1")
            assert [job.key for job in await broker.client.peek_queue("mail", "delayed", 9)] == ["schedule:3As11"]

    asyncio.run(main())


def test_schedules_by_cron_and_interval_are_kept(address: str) -> None:
    async def main() -> None:
        async with scheduling(address) as (broker, source, one, _):
            cron = await one.kicker().with_labels(priority=7).schedule_by_cron(source, "*/5 * * * *", 1)
            every = await one.schedule_by_interval(source, timedelta(seconds=10), 2)
            kept = {schedule.schedule_id: schedule for schedule in await source.get_schedules()}
            assert kept[cron.schedule_id].cron == "*/5 * * * *"
            assert kept[cron.schedule_id].labels == {"priority": "7"}
            assert (kept[every.schedule_id].interval, kept[every.schedule_id].args) == (timedelta(seconds=10), [2])
            assert await broker.client.peek_queue("taskiq", count=9) == []
            await cron.unschedule()
            assert [schedule.schedule_id for schedule in await source.get_schedules()] == [every.schedule_id]

    asyncio.run(main())


def test_two_schedulers_send_each_run_of_a_cron_once(address: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("sockpq_taskiq.schedules.time.time", lambda: minutes[0] * 60.0)
    minutes = [100]

    async def main() -> None:
        async with scheduling(address) as (broker, source, one, _), started(SockpqBroker(address)) as second:
            await one.schedule_by_cron(source, "* * * * *", 1)
            (cron,) = await source.get_schedules()
            schedulers = TaskiqScheduler(broker, [source]), TaskiqScheduler(second, [SockpqScheduleSource(second)])
            for minute in 100, 101:
                minutes[0] = minute
                for scheduler in schedulers:
                    await scheduler.on_ready(scheduler.sources[0], cron)
            assert len(await broker.client.peek_queue("taskiq", count=9)) == 2
            every = await one.schedule_by_interval(source, timedelta(seconds=10), 2)
            for _ in range(2):                  # of an interval each scheduler knows its own runs only
                await schedulers[0].on_ready(source, every.task)
            assert len(await broker.client.peek_queue("taskiq", count=9)) == 4

    asyncio.run(main())


def test_a_retry_by_a_schedule_is_the_same_job(address: str) -> None:
    async def main() -> None:
        broker = SockpqBroker(address)
        source = SockpqScheduleSource(broker)
        broker.add_middlewares(SmartRetryMiddleware(
            default_retry_count=2, default_retry_label=True, default_delay=0.05, schedule_source=source,
        ))
        async with started(broker):
            attempts: list[int] = []

            @broker.task
            async def fail() -> None:
                (job,) = await broker.client.peek_queue("taskiq", "running", 9)
                attempts.append(job.attempt)
                raise RuntimeError

            await fail.kiq()
            async with receiving(broker):
                await until(lambda: len(attempts) == 2)
            assert attempts == [1, 2]
            assert await filled(broker.client) == []

    asyncio.run(main())
