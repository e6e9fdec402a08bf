"""Results and progress in the cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sockpq_taskiq import ResultIsMissing, SockpqResultBackend
from taskiq import TaskiqResult, TaskiqResultTimeoutError
from taskiq.depends.progress_tracker import TaskProgress, TaskState
from taskiq.serializers import PickleSerializer

from tests.taskiq.conftest import until


def result(value: Any, error: BaseException | None = None) -> TaskiqResult[Any]:
    return TaskiqResult(is_err=error is not None, log="l", return_value=value, execution_time=0.1, error=error)


def peeks(backend: SockpqResultBackend) -> int:
    """The number of times that the client has looked at a job."""
    calls = backend.client.stats().calls
    return calls["PEEK"].calls if "PEEK" in calls else 0


def test_a_wait_asks_twice_however_long_it_takes(address: str) -> None:
    async def main() -> None:
        backend, other = SockpqResultBackend(address), SockpqResultBackend(address)
        waiting = asyncio.create_task(backend.wait_result("t1", timeout=100))
        await until(lambda: peeks(backend) == 2)
        await asyncio.sleep(0.5)
        assert peeks(backend) == 2
        await other.set_result("t2", result(8))         # another one's
        await other.set_result("t1", result(7))
        assert (await waiting).return_value == 7
        assert peeks(backend) == 4                      # is it there, and what is it
        assert await backend.client.items() == []
        await backend.shutdown()
        await other.shutdown()

    asyncio.run(main())


def test_a_wait_has_an_end(address: str) -> None:
    async def main() -> None:
        backend = SockpqResultBackend(address)
        with pytest.raises(TaskiqResultTimeoutError):
            await backend.wait_result("t1", timeout=0.1)
        with pytest.raises(ResultIsMissing, match="There is no result"):
            await backend.get_result("t1")
        await backend.set_result("t1", result(7))
        assert (await backend.wait_result("t1", timeout=0)).return_value == 7
        await backend.shutdown()

    asyncio.run(main())


def test_results_are_removed_after_their_time(address: str) -> None:
    async def main() -> None:
        backend = SockpqResultBackend(address, keep=0.2, prefix="shop.")
        await backend.set_result("t1", result(7))
        await backend.set_progress("t1", TaskProgress(state=TaskState.STARTED, meta=1))
        assert [queue.name for queue in await backend.client.queues("shop.")] != []
        async with asyncio.timeout(100):
            while await backend.client.queues():
                await asyncio.sleep(0.02)
        await backend.shutdown()

    asyncio.run(main())


def test_other_serializers(address: str) -> None:
    async def main() -> None:
        backend = SockpqResultBackend(address, serializer=PickleSerializer())
        await backend.set_result("t1", result({1, 2}))
        assert (await backend.get_result("t1")).return_value == {1, 2}
        await backend.set_result("t2", result(None, ValueError("no")))
        assert isinstance((await backend.get_result("t2")).error, ValueError)
        await backend.shutdown()

    asyncio.run(main())


def test_progress_is_replaced(address: str) -> None:
    async def main() -> None:
        backend = SockpqResultBackend(address)
        assert await backend.get_progress("t1") is None
        for done in 1, 2:
            await backend.set_progress("t1", TaskProgress(state=TaskState.STARTED, meta={"done": done}))
        found = await backend.get_progress("t1")
        assert found is not None
        assert (found.state, found.meta) == (TaskState.STARTED, {"done": 2})
        await backend.shutdown()

    asyncio.run(main())
