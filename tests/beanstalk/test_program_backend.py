"""A connection's place in the program: a reserved job is told of whatever happens to the question for its time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sockpq import JobNotFound, Number, Unavailable

from sockpqd.beanstalk import CallFailure, Result, calls
from sockpqd.beanstalk_proxy.backend import ClientBackend, SharedClient

NUMBER = 1 << 41


class FakeClient:
    """A client library with one job, whose time it does not tell yet."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.deleted: list[tuple[Number, bool]] = []

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
        self.backend = ClientBackend(SharedClient(cast(Any, self.client), pytest.fail), lambda: False)

    async def begin(self, call: calls.Call) -> asyncio.Future[Result | CallFailure]:
        result: asyncio.Future[Result | CallFailure] = asyncio.get_running_loop().create_future()
        self.backend.execute(call, result.set_result)
        async with asyncio.timeout(20):
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
