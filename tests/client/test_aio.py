"""Features of the asyncio client alone. What it shares with the blocking one is tested with both."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import pytest
import sockpq
import uvloop
from sockpq import BadArguments, ClientClosed, Finished, JobNotFound, OutcomeUnknown, Unavailable, aio
from sockpq._backends.asyncio_stream import TransportStream

from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.client.scripted_server import ScriptedServer


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    """Runs a coroutine in a new event loop."""
    def run(main: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop if request.param == "uvloop" else None) as runner:
            return runner.run(main)
    return run


@asynccontextmanager
async def client_of(cluster: MemoryCluster, **settings: Any) -> AsyncIterator[aio.Client]:
    async with aio.Client(
        cluster.addresses, **{"timeout": 5, "server_timeout": 0.3, "connect_timeout": 0.5, **settings}
    ) as client:
        yield client


def test_a_job_is_taken_by_await_or_by_async_with(cluster: MemoryCluster, run: Any) -> None:
    async def main() -> None:
        async with client_of(cluster) as client:
            await client.put_many("q", [b"1", b"2", b"3", b"4"])
            job = await client.get("q", expire=30)
            assert job is not None
            assert await job.done() == Finished(False, False)
            async with client.get("q", block=True, expire=30) as job:
                assert job.data == b"2"
            with pytest.raises(RuntimeError):
                async with client.get("q", expire=30):
                    raise RuntimeError
            async with await client.get("q", block=True, expire=30) as job:
                assert job.data == b"4"
            async with client.get("empty", expire=30) as nothing:
                assert nothing is None
            assert cluster.bodies("q") == [b"3"]
            assert cluster.running == []

    run(main())


def test_a_call_is_a_coroutine_for_whoever_wants_one(cluster: MemoryCluster, run: Any) -> None:
    async def main() -> None:
        async with client_of(cluster) as client, asyncio.TaskGroup() as group:
            task = group.create_task(client.get("q", block=True, expire=30))
            call = group.create_task(client.call("in", b"x", "out", item="mine", expire=30))
            await client.put("q", b"1")
            await client.put("out", b"2", item="mine")
            assert [(await task).data, (await asyncio.wait_for(call, 60)).data] == [b"1", b"2"]

    run(main())


def test_wrong_arguments_are_refused_when_it_is_awaited(cluster: MemoryCluster, run: Any) -> None:
    async def main() -> None:
        async with client_of(cluster) as client:
            with pytest.raises(BadArguments):
                await client.get("no such name!")
            with pytest.raises(TypeError):
                await client.put("q", 5)                       # type: ignore[arg-type]

    run(main())


def test_tasks_share_a_client(cluster: MemoryCluster, run: Any) -> None:
    got: list[bytes] = []

    async def consume(client: aio.Client) -> None:
        while len(got) < 200:       # on a busy machine a wait may be over before the first put
            async for job in client.consume("q", expire=30, wait=0.5):
                await asyncio.sleep(0)
                got.append(job.data)

    async def main() -> None:
        async with client_of(cluster) as client, asyncio.TaskGroup() as group:
            for _ in range(30):
                group.create_task(consume(client))
            for number in range(200):
                group.create_task(client.put("q", b"%d" % number))

    run(main())
    assert sorted(got) == sorted(b"%d" % number for number in range(200))
    assert cluster.running == []


def test_a_cancelled_call_leaves_no_answer_for_the_next(cluster: MemoryCluster, run: Any) -> None:
    async def main() -> None:
        async with client_of(cluster) as client:
            await client.put_many("q", [b"1", b"2", b"3"])
            cluster.servers[0].fail("GET", Fault.EXECUTE_AND_STALL)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.get("q", expire=30), 0.1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.get("empty", block=True, expire=30)
            job = await client.get("q", expire=30)
            assert job is not None
            while len(left := cluster.bodies("q")) < 2:     # the job of the call that was cancelled goes back
                await asyncio.sleep(0.01)
            assert sorted([job.data, *left]) == [b"1", b"2", b"3"]
            await asyncio.sleep(0.1)
            await client.put("empty", b"for somebody else")
            assert cluster.bodies("empty") == [b"for somebody else"]

    run(main())


def test_a_cancelled_wait_is_no_time_without_a_server(
    cluster: MemoryCluster, run: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sockpq._engine.call_runner.SILENT_S", 0.2)

    async def main() -> None:
        async with client_of(cluster, server_timeout=5) as client:
            cluster.servers[0].fail("GETB", Fault.CLOSE)        # once; then it waits as it should
            waiting = asyncio.create_task(client.get("q", block=True, expire=30))
            await asyncio.sleep(0.5)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting

    run(main())
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_cancelled_search_for_the_leader_does_not_hinder_the_others(cluster: MemoryCluster, run: Any) -> None:
    async def main() -> None:
        async with client_of(cluster) as client:
            for server in cluster.servers:
                server.script.delay_s = 0.3
            first = asyncio.create_task(client.put("q", b"1"))
            others = [asyncio.create_task(client.put("q", b"%d" % number)) for number in range(2, 5)]
            await asyncio.sleep(0.1)
            first.cancel()
            await asyncio.gather(*others)
            assert len(cluster.bodies("q")) == 3

    run(main())


def test_a_cancelled_worker_puts_its_job_back(cluster: MemoryCluster, run: Any) -> None:
    async def work(client: aio.Client) -> None:
        async with client.get("q", block=True, expire=30):
            await asyncio.sleep(60)

    async def main() -> None:
        async with client_of(cluster) as client:
            await client.put("q", b"x")
            worker = asyncio.create_task(work(client))
            while not cluster.running:
                await asyncio.sleep(0.01)
            worker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await worker
            assert cluster.bodies("q") == [b"x"]

    run(main())


def test_a_consumer_that_is_left_puts_its_job_back(cluster: MemoryCluster, run: Any) -> None:
    async def main() -> None:
        async with client_of(cluster) as client:
            await client.put_many("q", [b"1", b"2"])
            async with aclosing(client.consume("q", expire=30)) as jobs:
                async for job in jobs:
                    if job.data == b"2":
                        break
            assert cluster.bodies("q") == [b"2"]
            async for _ in client.consume("q", expire=30):      # without aclosing it takes its time
                break
            while not cluster.bodies("q"):
                await asyncio.sleep(0.01)

    run(main())
    assert cluster.running == []


async def break_(client: aio.Client) -> None:
    async for _ in client.consume("q", expire=30):
        break


async def fail(client: aio.Client) -> None:
    async for _ in client.consume("q", expire=30):
        raise LookupError


async def be_cancelled(client: aio.Client) -> None:
    task = asyncio.current_task()
    assert task
    async for _ in client.consume("q", expire=30):
        asyncio.get_running_loop().call_soon(task.cancel)
        await asyncio.sleep(60)


@pytest.mark.parametrize("leave", [break_, fail, be_cancelled])
def test_a_consumer_that_is_left_puts_its_job_back_before_the_client_is_closed(
    cluster: MemoryCluster, run: Any, leave: Any
) -> None:
    async def main() -> None:
        async with client_of(cluster) as client:
            await client.put("q", b"x")
            await leave(client)

    with suppress(LookupError, asyncio.CancelledError):
        run(main())
    assert cluster.bodies("q") == [b"x"]


def test_a_server_that_hangs_up_at_once_is_no_error_of_the_loop(run: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def main(servers: list[str]) -> None:
        async with aio.Client(servers, timeout=0.5) as client:
            with pytest.raises(Unavailable):
                await client.put("q", b"x")

    with ScriptedServer(None) as one, ScriptedServer(None) as other:
        run(main([one.address, other.address]))
    assert caplog.messages == []


def test_a_closed_client_refuses_and_wakes_the_blocked(cluster: MemoryCluster, run: Any) -> None:
    async def main() -> None:
        async with client_of(cluster) as client:
            blocked = asyncio.create_task(client.get("q", block=True, expire=30))
            await asyncio.sleep(0.2)
            await client.close()
            with pytest.raises(OutcomeUnknown):         # a job may have been on its way to it
                await blocked
            with pytest.raises(ClientClosed):
                await client.put("q", b"x")

    run(main())


def test_a_closed_client_searches_no_more(cluster: MemoryCluster, run: Any) -> None:
    async def main() -> None:
        async with client_of(cluster, timeout=60) as client:
            cluster.lead(None)
            searching = asyncio.create_task(client.put("q", b"x"))
            await asyncio.sleep(0.2)
        with pytest.raises(ClientClosed):
            await asyncio.wait_for(searching, 60)

    run(main())


def test_a_client_belongs_to_one_loop(cluster: MemoryCluster, run: Any) -> None:
    client = aio.Client(cluster.addresses)

    async def main() -> None:
        async with client:
            await client.put("q", b"x")

    run(main())
    with pytest.raises(RuntimeError, match="another event loop"):
        run(client.put("q", b"x"))


def test_nothing_is_sent_behind_a_half_close(cluster: MemoryCluster, run: Any) -> None:
    host, port = cluster.addresses[0].rsplit(":", 1)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        _, stream = await loop.create_connection(TransportStream, host, int(port))
        stream.withdraw()
        stream.withdraw()
        assert await stream.send((b"PING\r\n",), 1) == 0      # as a closed one: the caller takes another connection
        stream.abort()
        await stream.ended

    run(main())


def test_large_bodies_pass(cluster: MemoryCluster, run: Any) -> None:
    large = [bytes([number]) * 700_000 for number in range(8)]

    async def main() -> None:
        async with client_of(cluster) as client:
            await client.put("big", bytes(8_000_000))
            await client.put_many("q", large)
            jobs = await client.get_many(8, "q", expire=30)
            assert [job.data for job in jobs] == large
            async with client.get("big", block=True, expire=30) as job:
                assert len(job.data) == 8_000_000

    run(main())


def test_errors_are_those_of_the_blocking_client(cluster: MemoryCluster, run: Any) -> None:
    async def main() -> None:
        async with client_of(cluster) as client:
            with pytest.raises(JobNotFound):
                await client.done(999)
            assert [view.id for view in await aio.survey(cluster.addresses)] == [1, 2, 3]

    run(main())


def calls(client: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(method)
        for name, method in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_") or name == "__init__"
    }


def test_both_clients_have_the_same_calls() -> None:
    blocking, asynchronous = calls(sockpq.Client), calls(aio.Client)
    assert list(blocking) == list(asynchronous)
    for name, signature in blocking.items():
        own, other = (list(one.parameters.values()) for one in (signature, asynchronous[name]))
        assert own == other, name
