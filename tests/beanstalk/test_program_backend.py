"""A connection's backend in the program: a reserved job is announced whatever happens to the question for its time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sockpq import JobNotFound, Number, Unavailable

from sockpqd.beanstalk import CallFailure, Result, calls
from sockpqd.beanstalk_proxy.backend import ClientBackend, SharedClient

LOOKS_MAX = 2

NUMBER = 1 << 41


class FakeClient:
    """A client library with one job, whose time it does not return yet."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.deleted: list[tuple[Number, bool]] = []
        self.looking: list[asyncio.Future[Any]] = []

    async def peek(self, number: Number) -> Any:
        self.looking.append(asyncio.get_running_loop().create_future())
        return await self.looking[-1]

    async def peek_queue(self, queue: str, state: str) -> Any:
        return [await self.peek(Number(NUMBER))]

    async def get(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(id=7, queue="q", data=b"x", meta=SimpleNamespace(number=NUMBER))

    async def job_stat(self, number: int) -> Any:
        self.asked.set()
        return await self.told

    async def delete(self, number: Number, *, untaken: bool) -> None:
        self.deleted.append((number, untaken))


class Place:
    """A backend, and the result of its last call."""

    def __init__(self) -> None:
        self.client = FakeClient()
        self.cluster = SharedClient(cast(Any, self.client), pytest.fail, LOOKS_MAX)
        self.backend = ClientBackend(self.cluster, lambda: False)

    async def begin(self, call: calls.Call) -> asyncio.Future[Result | CallFailure]:
        result: asyncio.Future[Result | CallFailure] = asyncio.get_running_loop().create_future()
        self.backend.execute(call, result.set_result)
        async with asyncio.timeout(60):
            await self.client.asked.wait()
        return result


@pytest.mark.parametrize("event", ["cancelled", "disconnected", "gone"])
def test_a_reserved_job_whose_time_is_not_known_is_told_of(event: str) -> None:
    async def test() -> None:
        place = Place()
        result = await place.begin(calls.Reserve(("q",), None))
        if event == "cancelled":
            place.backend.cancel()
        else:
            place.client.told.set_exception(Unavailable("x") if event == "disconnected" else JobNotFound("x"))
        reserved = await result
        assert isinstance(reserved, calls.Reserved)
        assert (reserved.number, reserved.handle) == (NUMBER, 7)
    asyncio.run(test())


def test_a_job_that_nobody_has_is_deleted_at_once() -> None:
    async def test() -> None:
        place = Place()
        result = await place.begin(calls.DeleteJob(NUMBER))
        place.client.told.set_result(SimpleNamespace(queue="q"))
        assert await result == calls.Names(("q",))
        assert place.client.deleted == [(Number(NUMBER), True)]
    asyncio.run(test())


def test_few_jobs_are_looked_at_at_a_time_and_none_is_kept() -> None:
    """One job can be looked at by any number of clients, and does not count before it has come."""
    async def test() -> None:
        place = Place()
        results = []
        backends = [ClientBackend(place.cluster, lambda: False) for _ in range(3 * LOOKS_MAX)]
        for number, backend in enumerate(backends):
            result: asyncio.Future[Result | CallFailure] = asyncio.get_running_loop().create_future()
            backend.execute(calls.PeekFirst("q", "ready") if number % 2 else calls.Peek(NUMBER), result.set_result)
            results.append(result)
        for turn in range(1, 4):
            await asyncio.sleep(0.01)
            assert len(place.client.looking) == turn * LOOKS_MAX
            for looking in place.client.looking:
                if not looking.done():
                    looking.set_result(SimpleNamespace(number=NUMBER, id=None, data=b"x"))
        found = await asyncio.gather(*results)
        assert found == [calls.Found(NUMBER, b"x")] * len(backends)
        assert [backend._task for backend in backends] == [None] * len(backends)
    asyncio.run(test())
