"""Between the program and the servers is a proxy that ends both directions of a connection when one has ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest
from sockpq.aio import Client

from sockpqd.beanstalk import CallFailure, Result, calls
from sockpqd.beanstalk_proxy.backend import ClientBackend, SharedClient
from tests.client.hasty_proxy import HastyProxy
from tests.client.real_server import RealServer

TIME_S = 60


@pytest.fixture
def server() -> Iterator[RealServer]:
    with RealServer() as one:
        yield one


@pytest.fixture
def proxy(server: RealServer) -> Iterator[HastyProxy]:
    with contextlib.closing(HastyProxy(server.address)) as one:
        yield one


async def put(server: RealServer) -> int:
    async with Client(server.address) as near:
        stored = await near.put("q", b"x", number=True, lease=TIME_S)
        assert stored.number is not None
        return stored.number


def test_a_job_that_comes_when_a_reserve_ends_is_reserved(server: RealServer, proxy: HastyProxy) -> None:
    async def test() -> None:
        async with Client(proxy.address) as client, asyncio.timeout(30):
            result: asyncio.Future[Result | CallFailure] = asyncio.get_running_loop().create_future()
            backend = ClientBackend(SharedClient(client, pytest.fail, 1), lambda: False)
            backend.execute(calls.Reserve(("q",), 1), result.set_result)
            number = await put(server)
            reserved = await result
            assert proxy.lost.is_set()
            assert isinstance(reserved, calls.Reserved), "it was told TIMED_OUT, and has the job"
            assert (reserved.number, reserved.body) == (number, b"x")

    asyncio.run(test())


def test_a_job_that_comes_when_its_client_goes_away_is_ready_again(server: RealServer, proxy: HastyProxy) -> None:
    async def test() -> None:
        async with Client(proxy.address) as client, asyncio.timeout(30):
            result: asyncio.Future[Result | CallFailure] = asyncio.get_running_loop().create_future()
            backend = ClientBackend(SharedClient(client, pytest.fail, 1), lambda: False)
            backend.execute(calls.Reserve(("q",), None), result.set_result)
            await put(server)
            assert await asyncio.to_thread(proxy.lost.wait, 20)
            backend.cancel()
            assert await result is None
            assert server.ready_and_running("q") == (1, 0)

    asyncio.run(test())
