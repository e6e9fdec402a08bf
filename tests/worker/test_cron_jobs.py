"""Periodic tasks without a scheduler: first runs, next runs, missed ones, changed and removed schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sockpq import Client, Key
from sockpq.aio import Client as AsyncClient
from sockpq.model import Handed
from sockpq.worker import App
from sockpq.worker.cron_jobs import CronJobs

from tests.client.real_server import RealServer


class Clock:
    """The clock of the servers, years behind that of this machine, which no worker asks."""

    def __init__(self, server: RealServer) -> None:
        self._server = server

    def __call__(self) -> float:
        return self._server.do(lambda cluster: cluster.now_ms) / 1000


def app_with(line: str = "*/5 * * * *", name: str = "app", task: str = "tick", **more: Any) -> App:
    app = App(name=name)
    app.cron(line, name=task, **more)(lambda: None)
    return app


def on_server(test: Callable[[RealServer, Client, AsyncClient, Clock], Awaitable[None]]) -> None:
    async def main() -> None:
        with RealServer() as server, Client(server.address) as client:
            async with AsyncClient(server.address) as pool_client:
                await test(server, client, pool_client, Clock(server))

    asyncio.run(main())


def keys(client: Client, state: str = "delayed", queue: str = "cron") -> list[str | None]:
    return [job.key for job in client.peek_queue(queue, state, 100)]        # type: ignore[arg-type]


async def take(client: Client) -> Handed:
    job = client.get("cron", expire=60, meta=True)
    assert job
    return Handed(job.id, job.queue, job.priority, job.data, job.item, job.meta)


def five(clock: Clock, periods: int = 1) -> int:
    """Return the end of the n-th five minutes from now."""
    return (int(clock()) // 300 + periods) * 300


def test_each_start_puts_the_first_run_and_there_is_one() -> None:
    async def test(server: RealServer, client: Client, pool: AsyncClient, clock: Clock) -> None:
        for _ in range(10):
            await CronJobs(app_with()).start(pool)
        assert keys(client) == [f"tick.{five(clock)}"]
        (job,) = client.peek_queue("cron", "delayed")
        assert job.at == five(clock)
        assert float(client.queue_config("cron")["keep"]) == 86_400
        (found,) = client.find("cron", header=("task", "tick"))
        assert found.meta.key == job.key
    on_server(test)


def test_before_the_work_the_next_run_is_put_by_whoever_comes_first() -> None:
    async def test(server: RealServer, client: Client, pool: AsyncClient, clock: Clock) -> None:
        first = five(clock)
        await CronJobs(app_with()).start(pool)
        server.pass_time(first - clock())
        job = await take(client)
        assert await CronJobs(app_with()).before_work(job, pool)
        assert keys(client) == [f"tick.{first + 300}"]
        assert await CronJobs(app_with()).before_work(job, pool)     # as after a killed worker
        assert keys(client) == [f"tick.{first + 300}"]
        client.done(job.id)
        client.delete(Key("cron", f"tick.{first + 300}"))
        assert clock() == first                     # the run was, and is not put again
        await CronJobs(app_with()).start(pool)
        assert keys(client) == []
        assert keys(client, "ready") == []
    on_server(test)


@pytest.mark.parametrize(("catch_up", "runs"), [("none", 0), ("one", 1), ("all", 4)])
def test_missed_times(catch_up: str, runs: int) -> None:
    async def test(server: RealServer, client: Client, pool: AsyncClient, clock: Clock) -> None:
        cron = CronJobs(app_with(catch_up=catch_up))
        first = five(clock)
        await cron.start(pool)
        server.pass_time(first - clock() + 3 * 300 + 10)        # four times are over, and no worker was there
        ran = 0
        while keys(client, "ready"):
            job = await take(client)
            ran += await cron.before_work(job, pool)
            client.done(job.id)
        assert ran == runs
        assert keys(client) == [f"tick.{first + 4 * 300}"]
    on_server(test)


def test_a_clock_that_a_crash_has_left_behind_is_no_work() -> None:
    async def test(server: RealServer, client: Client, pool: AsyncClient, clock: Clock) -> None:
        cron = CronJobs(app_with())
        client.queue_create("cron")
        pool_delete, pool.delete = pool.delete, None        # type: ignore[method-assign,assignment]
        with pytest.raises(TypeError):
            await cron.start(pool)
        pool.delete = pool_delete                           # type: ignore[method-assign]
        server.pass_time(86_401)
        assert not await cron.before_work(await take(client), pool)
    on_server(test)


def test_a_failed_run_that_is_tried_again_late_was_not_missed() -> None:
    async def test(server: RealServer, client: Client, pool: AsyncClient, clock: Clock) -> None:
        cron = CronJobs(app_with(catch_up="none"))
        await cron.start(pool)
        server.pass_time(five(clock) - clock() + 1)
        job = await take(client)
        assert await cron.before_work(job, pool)
        client.later(job.id, delay=700)
        server.pass_time(701)
        found = [await take(client), await take(client)]
        (again,) = [one for one in found if one.data == job.data]
        assert await cron.before_work(again, pool)
    on_server(test)


def test_a_changed_schedule_and_a_removed_task_are_noticed_at_the_start() -> None:
    async def test(server: RealServer, client: Client, pool: AsyncClient, clock: Clock) -> None:
        old = app_with()
        old.cron("0 0 * * *", name="gone")(lambda: None)
        await CronJobs(old).start(pool)
        await CronJobs(app_with(name="other", task="theirs")).start(pool)
        client.put("cron", b"not ours", key="x", delay=60)
        assert len(keys(client)) == 4
        await CronJobs(app_with("7 7 * * *")).start(pool)
        left = [str(key).partition(".")[0] for key in keys(client)]
        assert sorted(left) == ["theirs", "tick", "x"]
        (tick,) = [job for job in client.peek_queue("cron", "delayed", 9) if str(job.key).startswith("tick")]
        assert b"7 7 * * *" in tick.data
    on_server(test)


def test_a_run_of_an_unknown_task_and_other_jobs_are_left_alone() -> None:
    async def test(server: RealServer, client: Client, pool: AsyncClient, clock: Clock) -> None:
        await CronJobs(app_with(task="theirs")).start(pool)
        server.pass_time(five(clock) - clock() + 1)
        assert await CronJobs(app_with()).before_work(await take(client), pool)
        client.put("cron", b"\xff")
        assert await CronJobs(app_with()).before_work(await take(client), pool)
        assert keys(client) == []
    on_server(test)


def test_what_is_no_periodic_task_is_refused() -> None:
    app = App()
    with pytest.raises(TypeError, match="missing"):
        app.cron("@daily", name="a")(lambda x: None)        # type: ignore[misc]
    with pytest.raises(ValueError, match="is not a crontab line"):
        app.cron("now")
    with pytest.raises(ValueError, match="catch_up is"):
        app.cron("@daily", catch_up="some")     # type: ignore[arg-type]
    with pytest.raises(ValueError, match="name of a periodic task"):
        app.cron("@daily", name="a b")(lambda: None)
