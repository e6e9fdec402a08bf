"""Tasks in the cluster: their labels, what workers take, and what they give back."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

import pytest
from sockpq import BadArguments, JobExists
from sockpq_taskiq import SockpqBroker
from taskiq import BrokerMessage, SendTaskError, SimpleRetryMiddleware, SmartRetryMiddleware
from taskiq.acks import AcknowledgeType

from tests.taskiq.conftest import filled, receiving, started, until, until_true


def message(body: bytes = b"body", **labels: Any) -> BrokerMessage:
    return BrokerMessage(task_id=uuid.uuid4().hex, task_name="t", message=body, labels=labels)


def test_labels_say_how_a_task_is_put(address: str) -> None:
    async def main() -> None:
        async with started(SockpqBroker(address, prefix="shop.")) as broker:
            await broker.kick(message(b"1", priority="3", key="Order 17", group="Ann B", queue_name="mail"))
            await broker.kick(message(b"2", x_delay="3600"))
            await broker.kick(message(b"3", delay=60))
            await broker.kick(message(b"4", ttl=30, priority=None))
            (mail,) = await broker.client.peek_queue("shop.mail", headers=True)
            assert (mail.priority, mail.key, mail.group) == (3, "Order:2017", "Ann:20B")
            assert mail.headers is not None
            assert mail.headers["task"] == "t"
            assert len(mail.headers["id"]) == 32
            soon, late = await broker.client.peek_queue("shop.taskiq", "delayed", 2)
            assert (soon.data, late.data) == (b"3", b"2")
            assert soon.at is not None
            assert late.at is not None
            assert 0 <= soon.at - time.time() <= 61
            assert 3500 < late.at - time.time() <= 3601
            assert [job.data for job in await broker.client.peek_queue("shop.taskiq")] == [b"4"]

    asyncio.run(main())


def test_a_key_is_there_once(address: str) -> None:
    async def main() -> None:
        async with started(SockpqBroker(address)) as broker:
            await broker.kick(message(b"1", key="a"))
            with pytest.raises(JobExists):
                await broker.kick(message(b"2", key="a"))
            await broker.kick(message(b"3", key="a", on_duplicate="ignore"))
            assert [job.data for job in await broker.client.peek_queue("taskiq", count=9)] == [b"1"]
            await broker.kick(message(b"4", key="a", on_duplicate="replace"))
            assert [job.data for job in await broker.client.peek_queue("taskiq", count=9)] == [b"4"]

    asyncio.run(main())


@pytest.mark.parametrize("labels", [{"priority": "high"}, {"delay": "soon"}, {"on_duplicate": "never"}])
def test_a_label_that_cannot_be_read_is_refused(address: str, labels: dict[str, str]) -> None:
    async def main() -> None:
        async with started(SockpqBroker(address)) as broker:
            @broker.task
            async def one() -> None: ...

            with pytest.raises(SendTaskError) as raised:
                await one.kicker().with_labels(**labels).kiq()
            assert isinstance(raised.value.__cause__, BadArguments)
            assert next(iter(labels)) in str(raised.value.__cause__)

    asyncio.run(main())


def test_the_delay_between_retries_does_not_delay_the_first_attempt(address: str) -> None:
    async def main() -> None:
        broker = SockpqBroker(address)
        broker.add_middlewares(SmartRetryMiddleware(default_retry_count=2, default_retry_label=True))
        async with started(broker):
            ran: list[float] = []

            @broker.task(delay=0.3)
            async def fail() -> None:
                ran.append(time.monotonic())
                raise RuntimeError

            await fail.kiq()
            assert len(await broker.client.peek_queue("taskiq", "ready")) == 1
            async with receiving(broker):
                await until(lambda: len(ran) == 2)
            assert ran[1] - ran[0] >= 0.29
            await fail.kicker().with_labels(retry_on_error=False).kiq()
            assert len(await broker.client.peek_queue("taskiq", "delayed", 9)) == 1

    asyncio.run(main())


def test_a_worker_is_given_the_greatest_priority_of_all_its_queues(address: str) -> None:
    async def main() -> None:
        broker = SockpqBroker(address, queues=["low", "high"], prefetch=1)
        async with started(broker):
            ran: list[int] = []

            @broker.task
            async def one(number: int) -> None:
                ran.append(number)

            for queue, priority in ("low", 1), ("high", 2), ("low", 3), ("high", 4):
                await one.kicker().with_labels(queue_name=queue, priority=priority).kiq(priority)
            async with receiving(broker, max_async_tasks=1):
                await until(lambda: len(ran) == 4)
            assert ran == [4, 3, 2, 1]

    asyncio.run(main())


def test_a_retry_of_taskiqs_middleware_is_the_same_job(address: str) -> None:
    async def main() -> None:
        broker = SockpqBroker(address)
        broker.add_middlewares(SimpleRetryMiddleware(default_retry_count=3))
        async with started(broker):
            attempts: list[Any] = []

            @broker.task(retry_on_error=True, key="only one")
            async def fail() -> None:
                (job,) = await broker.client.peek_queue("taskiq", "running", 9)
                attempts.append((job.key, job.attempt))
                raise RuntimeError

            await fail.kiq()
            async with receiving(broker):
                await until(lambda: len(attempts) == 3)
            assert attempts == [("only:20one", 1), ("only:20one", 2), ("only:20one", 3)]
            assert await filled(broker.client) == []

    asyncio.run(main())


def test_a_retry_of_a_task_that_is_gone_makes_no_copy(address: str) -> None:
    async def main() -> None:
        broker = SockpqBroker(address)
        broker.add_middlewares(SimpleRetryMiddleware(default_retry_count=3))
        async with started(broker):
            ran: list[int] = []

            @broker.task(retry_on_error=True)
            async def fail() -> None:
                ran.append(1)
                (job,) = await broker.client.peek_queue("taskiq", "running", 9)
                assert job.id is not None
                await broker.client.delete(job.id)      # as when its session had ended and another worker was done
                raise RuntimeError

            await fail.kiq()
            async with receiving(broker):
                await until(lambda: ran)
            assert await filled(broker.client) == []
            assert ran == [1]

    asyncio.run(main())


def test_a_retry_may_go_to_another_queue(address: str) -> None:
    async def main() -> None:
        broker = SockpqBroker(address)
        async with started(broker):
            ran: list[int] = []

            @broker.task
            async def moving(task_id: str) -> None:
                ran.append(1)
                await moving.kicker().with_task_id(task_id).with_labels(queue_name="slow", priority=5).kiq(task_id)

            await moving.kicker().with_task_id("t1").kiq("t1")
            async with receiving(broker):
                await until(lambda: ran)
            (job,) = await broker.client.peek_queue("slow", count=9)
            assert job.priority == 5
            assert await filled(broker.client) == ["slow"]

    asyncio.run(main())


def test_a_task_that_nobody_here_knows_is_offered_again_and_not_counted(address: str) -> None:
    async def main() -> None:
        async with started(SockpqBroker(address)) as sender, started(SockpqBroker(address)) as worker:
            @sender.task(task_name="new")
            async def new() -> None: ...

            await new.kiq()
            async with receiving(worker):
                await until_true(lambda: sender.client.peek_queue("taskiq", "delayed"))
            (job,) = await sender.client.peek_queue("taskiq", "delayed")
            assert (job.attempt, job.reason) == (0, "UnknownTask")

    asyncio.run(main())


def test_what_is_no_task_becomes_a_dead_letter(address: str) -> None:
    async def main() -> None:
        async with started(SockpqBroker(address)) as broker:
            await broker.client.put("taskiq", b"no JSON")
            async with receiving(broker):
                await until_true(lambda: broker.client.peek_queue("taskiq", "dead"))
            (dead,) = await broker.client.peek_queue("taskiq", "dead")
            assert (dead.data, dead.reason) == (b"no JSON", "Undecodable")

    asyncio.run(main())


def test_tasks_that_were_not_begun_go_back_at_the_stop_uncounted(address: str) -> None:
    async def main() -> None:
        async with started(SockpqBroker(address)) as other:
            broker = SockpqBroker(address, prefetch=10)
            begun, go_on = asyncio.Event(), asyncio.Event()

            @broker.task
            async def slow(number: int) -> None:
                begun.set()
                await go_on.wait()

            await broker.startup()
            for number in range(5):
                await slow.kiq(number)
            async with receiving(broker, max_async_tasks=1):
                await begun.wait()
                await until_true(lambda: _running(other, 5))
                asyncio.get_running_loop().call_later(0.2, go_on.set)
            await broker.shutdown()
            jobs = await other.client.peek_queue("taskiq", count=9)
            # Taskiq's worker runs what it had asked for when it was stopped: here one or two of them.
            assert 3 <= len(jobs) <= 4
            assert {job.attempt for job in jobs} == {0}

    asyncio.run(main())


def test_a_task_that_was_taken_and_not_begun_goes_back_at_the_stop_uncounted(address: str) -> None:
    async def main() -> None:
        async with started(SockpqBroker(address)) as other:
            broker = SockpqBroker(address)

            @broker.task
            async def one() -> None: ...

            await broker.startup()
            await one.kiq()
            listening = broker.listen()
            await anext(listening)              # and the worker that asked for it is cancelled
            await broker.shutdown()
            (job,) = await other.client.peek_queue("taskiq", count=9)
            assert job.attempt == 0
            await listening.aclose()

    asyncio.run(main())


async def _running(broker: SockpqBroker, count: int) -> bool:
    return (await broker.client.queue_stat("taskiq"))["running"] == count


def test_a_task_that_is_cancelled_goes_back(address: str) -> None:
    async def main() -> None:
        broker = SockpqBroker(address)
        async with started(broker):
            ran: list[int] = []

            @broker.task
            async def stopped() -> None:
                ran.append(1)
                if len(ran) == 1:
                    raise asyncio.CancelledError

            await stopped.kiq()
            async with receiving(broker):
                await until(lambda: len(ran) == 2)
            assert await filled(broker.client) == []

    asyncio.run(main())


def test_a_task_may_acknowledge_by_hand(address: str) -> None:
    async def main() -> None:
        broker = SockpqBroker(address)
        async with started(broker):
            begun, go_on = asyncio.Event(), asyncio.Event()

            @broker.task(ack_type=AcknowledgeType.MANUAL.value)
            async def manual() -> None:
                begun.set()
                await go_on.wait()

            await manual.kiq()
            async with receiving(broker):
                await begun.wait()
                assert await _running(broker, 1)
                go_on.set()
            assert await _running(broker, 1)    # nobody has acknowledged it
        async with started(SockpqBroker(address)) as other:
            assert len(await other.client.peek_queue("taskiq")) == 1

    asyncio.run(main())


def test_an_acknowledgement_is_repeated_until_the_cluster_has_it(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    from sockpq import Unavailable
    from sockpq.aio import Job

    done, failures = Job.done, [1, 2]

    async def sometimes(self: Job, **options: Any) -> Any:
        if failures:
            failures.pop()
            raise Unavailable("no leader")
        return await done(self, **options)

    monkeypatch.setattr(Job, "done", sometimes)
    monkeypatch.setattr("sockpq_taskiq.held_task.PAUSE_S", 0.01)

    async def main() -> None:
        async with started(SockpqBroker(address)) as broker:
            @broker.task
            async def one() -> None: ...

            await one.kiq()
            async with receiving(broker):
                await until_true(lambda: _empty(broker))

    asyncio.run(main())
    assert caplog.text.count("it is tried again: no leader") == 2


async def _empty(broker: SockpqBroker) -> bool:
    return not await filled(broker.client)
