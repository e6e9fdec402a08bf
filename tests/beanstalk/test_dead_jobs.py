"""Tubes whose jobs have all died: the program lists and counts the same ones, as a node's listener does."""

from __future__ import annotations

import asyncio

import pytest
from sockpq.aio import Client

from sockpqd.beanstalk import Call, CallFailure, Result, calls
from sockpqd.beanstalk_proxy.backend import ClientBackend, SharedClient
from tests.client.real_server import RealServer


def test_a_dead_job_is_in_the_tube_in_which_it_lies() -> None:
    async def test(address: str) -> None:
        async with Client(address) as client, asyncio.timeout(60):
            backend = ClientBackend(SharedClient(client, pytest.fail, 1), lambda: False)

            async def say(call: Call) -> Result | CallFailure:
                result: asyncio.Future[Result | CallFailure] = asyncio.get_running_loop().create_future()
                backend.execute(call, result.set_result)
                return await result

            await client.queue_config("post", tries=1)
            await client.put("post", b"x")
            job = await client.get("post", expire=60)
            assert job is not None
            await client.later(job)                     # its only try
            assert await say(calls.ListTubes()) == calls.Names(("post_dead",))
            sums = await say(calls.Totals())
            assert isinstance(sums, calls.Sums)
            assert (sums.tubes, sums.ready) == (1, 1)

    with RealServer() as server:
        asyncio.run(test(server.address))
