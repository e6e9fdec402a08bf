"""Retries and dead letters of SockpqMiddleware."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from sockpq.names import escape_key
from sockpq_taskiq import SockpqBroker, SockpqMiddleware, SockpqResultBackend
from taskiq import Context, TaskiqDepends

from tests.taskiq.conftest import filled, receiving, started, until, until_true


def with_results(address: str, middleware: SockpqMiddleware) -> SockpqBroker:
    broker = SockpqBroker(address).with_result_backend(SockpqResultBackend(address))
    broker.add_middlewares(middleware)
    return broker


def test_a_task_is_retried_and_then_a_dead_letter_with_its_error(address: str) -> None:
    async def main() -> None:
        async with started(with_results(address, SockpqMiddleware(retries=2, backoff=(0.01, 0.02)))) as broker:
            attempts: list[int] = []

            @broker.task
            async def fail() -> None:
                (job,) = await broker.client.peek_queue("taskiq", "running")
                attempts.append(job.attempt)
                raise RuntimeError("the printer is on fire")

            sent = await fail.kiq()
            async with receiving(broker):
                result = await broker.result_backend.wait_result(sent.task_id, timeout=100)
            assert attempts == [1, 2, 3]
            assert isinstance(result.error, RuntimeError)
            (dead,) = await broker.client.peek_queue("taskiq", "dead", places=True)
            assert dead.reason == "RuntimeError"
            assert dead.place is not None
            assert "the printer is on fire" in (await broker.client.job_error(dead.place) or "")
            assert await broker.client.kick("taskiq", 1) == 1
            async with receiving(broker):
                await until(lambda: len(attempts) == 6)     # brought back, it has all its retries again

    asyncio.run(main())


def test_labels_say_how_often_a_task_is_retried(address: str) -> None:
    async def main() -> None:
        async with started(with_results(address, SockpqMiddleware(retries=5, backoff=(0.0, 0.0)))) as broker:
            ran: list[str] = []

            @broker.task
            async def fail(name: str) -> None:
                ran.append(name)
                raise RuntimeError

            await fail.kicker().with_labels(max_retries=1).kiq("once")
            await fail.kicker().with_labels(retry_on_error=False).kiq("never")
            async with receiving(broker):
                await until_true(lambda: _dead(broker, 2))
            assert sorted(ran) == ["never", "once", "once"]

    asyncio.run(main())


async def _dead(broker: SockpqBroker, count: int) -> bool:
    return len(await broker.client.peek_queue("taskiq", "dead", 9)) == count


def test_a_task_that_is_rejected_is_a_dead_letter_at_once(address: str) -> None:
    async def main() -> None:
        async with started(with_results(address, SockpqMiddleware(retries=5))) as broker:
            @broker.task
            async def reject(context: Annotated[Context, TaskiqDepends()]) -> None:
                context.reject()

            await reject.kiq()
            async with receiving(broker):
                await until_true(lambda: _dead(broker, 1))

    asyncio.run(main())


def test_without_dead_letters_a_failure_is_acknowledged(address: str) -> None:
    async def main() -> None:
        async with started(with_results(address, SockpqMiddleware(dead_letters=False))) as broker:
            @broker.task
            async def fail() -> None:
                raise RuntimeError

            sent = await fail.kiq()
            async with receiving(broker):
                result = await broker.result_backend.wait_result(sent.task_id, timeout=100)
            assert result.is_err
            assert await filled(broker.client) == ["taskiq.results"]

    asyncio.run(main())


def test_what_puts_itself_back_is_no_failure(address: str) -> None:
    async def main() -> None:
        async with started(with_results(address, SockpqMiddleware())) as broker:
            ran: list[int] = []

            @broker.task
            async def again(context: Annotated[Context, TaskiqDepends()]) -> None:
                ran.append(1)
                if len(ran) < 3:
                    await context.requeue()

            await again.kiq()
            async with receiving(broker):
                await until(lambda: len(ran) == 3)
            assert await filled(broker.client) == ["taskiq.results"]

    asyncio.run(main())


@pytest.mark.parametrize("task_id", ["a", "Bestellung 17: größer", "x" * 300])
def test_ids_of_tasks_may_be_any_text(address: str, task_id: str) -> None:
    async def main() -> None:
        async with started(with_results(address, SockpqMiddleware())) as broker:
            @broker.task
            async def one() -> Any:
                return 7

            await one.kicker().with_task_id(task_id).kiq()
            async with receiving(broker):
                assert (await broker.result_backend.wait_result(task_id, timeout=100)).return_value == 7
            (stored,) = await broker.client.peek_queue("taskiq.results")
            assert stored.key == escape_key(task_id)

    asyncio.run(main())
